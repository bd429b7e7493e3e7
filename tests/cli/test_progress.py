"""What a terminal and a file get to see of a run."""

import io

import pytest
from rich.console import Console

from ssdfl.cli.progress import say, showing_progress
from ssdfl.records import Experiment, RunFolder

ERASED_LINE = "\x1b[2K"


@pytest.fixture
def shown(tmp_path):
    """What is written while a run is prepared, to a terminal or a file."""

    def of(is_terminal):
        out = io.StringIO()
        console = Console(file=out, force_terminal=is_terminal, width=100)
        with showing_progress(console, Experiment(), RunFolder(tmp_path)) as view:
            view.download("fmnist", 1_500_000, 3_000_000)
            view.bars.refresh()
        return out.getvalue()

    return of


def test_bars_go_when_a_run_has_ended(shown):
    text = shown(is_terminal=True)
    assert "downloading fmnist: 1.5 of 3.0 MB" in text
    assert text.endswith(ERASED_LINE)


def test_a_file_gets_no_bars(shown):
    assert shown(is_terminal=False).strip() == ""


def test_lines_are_said_as_they_are():
    out = io.StringIO()
    text = "runs/[bold]mine[/bold]/" + "long/" * 30
    say(Console(file=out, force_terminal=True, width=40), text)
    assert out.getvalue() == f"{text}\n"
