"""``ssdfl plan --diff OLD NEW``: what a new plan changes."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console

from ssdfl.cli.progress import say


def show_difference(
    files: tuple[Path, Path], network: str | None, html: Path | None, as_json: bool
) -> None:
    """Compare two plans, on a network if one is given."""
    from ssdfl.clusters import compare_plans, read_plan
    from ssdfl.graph import load_network

    old, new = map(read_plan, files)
    found = compare_plans(old, new, None if network is None else load_network(network))
    if html is not None:
        from ssdfl.report import write_difference_page

        write_difference_page(found, str(files[0]), str(files[1]), html)
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=1))
        return
    for line in found.lines():
        say(Console(), line)
