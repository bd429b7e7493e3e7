"""A page that shows what a new plan changes."""

from __future__ import annotations

from html import escape
from pathlib import Path

from ssdfl.clusters import PlanDifference
from ssdfl.files import write_text
from ssdfl.report.page import fill, html_table, page, palette


def write_difference_page(found: PlanDifference, old: str, new: str, path: Path | str) -> None:
    """Write what changes from one plan to another; ``old`` and ``new`` name them."""
    moves = ((one.device, str(one.before), str(one.after)) for one in found.moves)
    lines = (f"<li>{escape(line)}</li>" for line in found.lines(most=0) if not line.startswith("…"))
    others = [*((name, "new") for name in found.new), *((name, "gone") for name in found.gone)]
    body = fill(
        "difference.html",
        title=escape(f"From {old} to {new}"),
        lines="".join(lines),
        moves=html_table(("device", "cluster before", "cluster now"), moves),
        others=html_table(("device", ""), others),
    )
    write_text(path, page(f"ssdfl plan: {old} and {new}", body, palette(), ["base.js"]))
