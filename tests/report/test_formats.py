"""Tables as files: what a LaTeX document, a Markdown page and a program can read."""

import csv

from hypothesis import given
from hypothesis import strategies as st

from ssdfl.report import Table
from ssdfl.report.formats import latex_table, latex_text, write_csv, write_table_files

SPECIAL = "%&$#_{}~^\\"


def test_a_table_has_a_line_for_each_row_and_escapes_what_latex_would_read(tmp_path):
    table = Table(["method", "accuracy %"], [["a_b & c", "69.3 ±1.9"], ["d", "–"]])
    markdown, latex = write_table_files(tmp_path / "results", table, "demo")
    assert latex.read_text(encoding="utf-8").splitlines() == [
        "% demo",
        "\\begin{tabular}{lr}",
        "\\toprule",
        "method & accuracy \\% \\\\",
        "\\midrule",
        "a\\_b \\& c & 69.3 $\\pm$1.9 \\\\",
        "d & -- \\\\",
        "\\bottomrule",
        "\\end{tabular}",
    ]
    assert markdown.read_text(encoding="utf-8").splitlines()[2:] == [
        "| method | accuracy % |",
        "|---|---:|",
        "| a_b & c | 69.3 ±1.9 |",
        "| d | – |",
    ]


def test_a_head_may_have_two_lines():
    found = latex_table([["", "\\multicolumn{2}{c}{mild}"], ["", "a", "b"]], [["x", "1", "2"]], "")
    assert "\\begin{tabular}{lrr}" in found
    assert found.index("mild") < found.index(" & a & b") < found.index("\\midrule")


@given(st.text(alphabet=SPECIAL + "ab τ"))
def test_no_special_character_is_left_bare(text):
    """Outside the commands that stand for them, each is preceded by a backslash."""
    found = latex_text(text)
    for command in ("\\textbackslash{}", "\\textasciitilde{}", "\\textasciicircum{}"):
        found = found.replace(command, "")
    for math in ("$\\tau_a$", "$\\tau_r$"):
        found = found.replace(math, "")
    for place, character in enumerate(found):
        if character in SPECIAL and character != "\\":
            assert found[place - 1] == "\\"


def test_csv_keeps_numbers_whole_and_leaves_cells_empty(tmp_path):
    write_csv(tmp_path / "a.csv", ["method", "score"], [["x, y", 0.1 + 0.2], ["z", None]])
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["method", "score"],
            ["x, y", "0.30000000000000004"],
            ["z", ""],
        ]
