"""Say how fast published designs and formed clusters reach an accuracy on real underlays.

python docs/studies/underlays/report.py       # prints the tables as Markdown, writes figure.png
python docs/studies/underlays/report.py --seed 1
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from itertools import product
from statistics import geometric_mean

from matplotlib.figure import Figure
from measure import ACCESS_BPS, CYCLES, HERE, MESSAGE_BYTES, RESULTS, read
from underlays import FILES

from ssdfl.report import save
from ssdfl.report.figures import COLOURS

PUBLISHED = {
    ("Gaia", "10 Gbit/s"): (390.9, 138.1, 118.1),
    ("Gaia", "100 Mbit/s"): (9_293, 1_442, 522.8),
    ("AWS North America", "10 Gbit/s"): (288.1, 89.7, 81.3),
    ("AWS North America", "100 Mbit/s"): (18_983, 1_386, 485.9),
    ("Géant", "10 Gbit/s"): (622.3, 101.0, 109.0),
    ("Géant", "100 Mbit/s"): (35_188, 2_754, 491.1),
    ("Exodus", "10 Gbit/s"): (911.9, 145.3, 103.9),
    ("Exodus", "100 Mbit/s"): (70_351, 3_177, 488.1),
    ("Ebone", "10 Gbit/s"): (901.7, 121.8, 95.3),
    ("Ebone", "100 Mbit/s"): (77_463, 4_123, 482.2),
}
"""Milliseconds of a cycle of star, MST and ring, as the designs' own program prints them."""
DESIGNS = ("star", "MST", "ring", "MATCHA")
OURS = {"ssdfl": "ssdfl+cta", "ssdfl+extra": "ssdfl+extra", "int8": "ssdfl+extra:compressor=int8"}

Row = dict[str, str]
Case = tuple[str, str, str]


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def cycle_table() -> str:
    """Cycle times by our clock beside the published ones."""
    ours = {
        (row["network"], row["access"], row["design"]): float(row["cycle_ms"])
        for row in read(CYCLES)
    }
    lines = []
    for (network, access), published in PUBLISHED.items():
        cells = []
        for design, theirs in zip(DESIGNS, published, strict=False):
            mine = ours[network, access, design]
            cells += [f"{theirs:,g}", f"{mine:,.1f}", f"{mine / theirs - 1:+.1%}"]
        lines.append([network, access, *cells])
    heads = [
        head for design in ("star", "MST", "ring") for head in (f"{design}, theirs", "ours", "")
    ]
    return table(["network", "access", *heads], lines)


def rows_of(seed: str) -> list[Row]:
    """What was measured with a seed."""
    return [row for row in read(RESULTS) if row["seed"] == seed]


def cases(rows: Sequence[Row]) -> list[Case]:
    """All cases that were measured, in order."""
    found = {(row["network"], row["access"], row["message"]) for row in rows}
    return [case for case in product(FILES, ACCESS_BPS, MESSAGE_BYTES) if case in found]


def best(rows: Sequence[Row], designs: Sequence[str], variants: Sequence[str]) -> tuple[float, str]:
    """The least seconds to the target of some designs, and whose they are."""
    found = [
        (float(row["seconds"]), f"{row['design']}, {row['variant']}")
        for row in rows
        if row["design"] in designs and row["variant"] in variants
    ]
    return min(found)


def compared(rows: Sequence[Row]) -> dict[Case, dict[str, tuple[float, str]]]:
    """Of each case, the best of others and each of ours."""
    answer = {}
    for case in cases(rows):
        of_case = [row for row in rows if (row["network"], row["access"], row["message"]) == case]
        answer[case] = {
            "published": best(of_case, DESIGNS, ("as published",)),
            "others": best(of_case, DESIGNS, ("as published", "early", "local steps")),
            "with extra": best(of_case, DESIGNS, ("with extra",)),
            **{name: best(of_case, ("formed",), (variant,)) for name, variant in OURS.items()},
        }
    return answer


def overlays(rows: Sequence[Row], case: Case) -> str:
    """What was formed for uncompressed messages."""
    of_case = [row for row in rows if (row["network"], row["access"], row["message"]) == case]
    return next(row["overlay"] for row in of_case if row["variant"] == OURS["ssdfl+extra"])


def seconds(value: float) -> str:
    """Seconds for a table; a dash if the target was not reached."""
    return f"{value:.3g}" if math.isfinite(value) else "–"


def result_table(rows: Sequence[Row]) -> str:
    """Seconds to the target by case, and how many times as long the best of the others takes."""
    lines = []
    for case, found in compared(rows).items():
        others_s, who = found["others"]
        ours_s = found["ssdfl+extra"][0]
        lines.append(
            [
                *case,
                seconds(found["published"][0]),
                f"{seconds(others_s)} ({who})",
                seconds(found["with extra"][0]),
                *(seconds(found[name][0]) for name in OURS),
                overlays(rows, case),
                f"**{others_s / ours_s:.2f}**",
            ]
        )
    heads = [
        "as published",
        "best of others",
        "MST, ring with extra",
        "`ssdfl`",
        "`ssdfl+extra`",
        "int8",
    ]
    return table(["network", "access", "message", *heads, "formed", "gain"], lines)


def gain_table(rows: Sequence[Row]) -> str:
    """Geometric means of gains by network, and the least of all cases."""
    found = compared(rows)
    lines = []
    for network in [name for name in FILES if any(case[0] == name for case in found)] + ["all"]:
        of_network = [one for case, one in found.items() if network in (case[0], "all")]
        lines.append([network, *(cell for pair in GAINS for cell in _gain(of_network, *pair))])
    heads = [head for than, ours in GAINS for head in (f"{ours} than {than}", "least")]
    return table(["network", *heads], lines)


GAINS = (
    ("published", "ssdfl+extra"),
    ("others", "ssdfl+extra"),
    ("others", "ssdfl"),
    ("with extra", "ssdfl+extra"),
    ("others", "int8"),
)
"""Of which two the seconds are compared."""


def _gain(found: Sequence[dict[str, tuple[float, str]]], than: str, ours: str) -> tuple[str, str]:
    ratios = [one[than][0] / one[ours][0] for one in found if math.isfinite(one[than][0])]
    if not all(ratios):
        return "–", "never"
    return f"{geometric_mean(ratios):.2f}", f"{min(ratios):.2f}"


def draw(rows: Sequence[Row]) -> Figure:
    """Seconds to the target of each design, a panel per access link, for the larger message."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    panels = figure.subplots(1, len(ACCESS_BPS))
    found = compared(rows)
    names = {"published": "best design, as published", "others": "best design, any variant"}
    names |= {"with extra": "MST or ring with extra"}
    names |= {"ssdfl": "ssdfl", "ssdfl+extra": "ssdfl+extra", "int8": "ssdfl+extra, int8"}
    for axes, access in zip(panels, ACCESS_BPS, strict=True):
        for k, (name, label) in enumerate(names.items()):
            points = [
                (place, found[network, access, "45 Mbit"][name][0])
                for place, network in enumerate(FILES)
                if (network, access, "45 Mbit") in found
            ]
            axes.plot(*zip(*points, strict=True), "o", color=COLOURS[k], label=label, alpha=0.9)
        axes.set_yscale("log")
        axes.set_title(f"access {access}", fontsize=10)
        axes.set_xticks(
            range(len(FILES)), [name.split()[0] for name in FILES], rotation=30, fontsize=8
        )
        axes.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("simulated seconds to 85 %")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
    )
    return figure


def main() -> None:
    """Print all tables of a seed; draw the figure of the first."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", default="0", help="what silos hold, and the first model")
    seed = parser.parse_args().seed
    rows = rows_of(seed)
    print(cycle_table(), gain_table(rows), result_table(rows), sep="\n\n")
    if seed == "0":
        save(draw(rows), HERE / "figure.png")


if __name__ == "__main__":
    main()
