"""``ssdfl methods``: list the methods, with equations, options and references."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ssdfl.methods import Entry


def methods(
    name: Annotated[
        str, typer.Argument(help="A name, or a method such as ssdfl+gt, whose parts are shown.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List schedules, rules and the other parts of methods, or describe one.

    A method is `schedule[+rule]`, each with options: `matcha:budget=0.3+atc`. A schedule decides
    when devices train and which matrix mixes. A rule decides what devices send, and what they do
    with what they receive.
    """
    from ssdfl.methods import catalogue, find_entries

    entries = find_entries(name) if name else catalogue()
    if as_json:
        typer.echo(
            json.dumps(
                [asdict(entry) for entry in entries], indent=1, ensure_ascii=False, default=str
            )
        )
    elif name:
        _describe(entries)
    else:
        _list(entries)


def _list(entries: list[Entry]) -> None:
    table = Table("kind", "name", "options", "summary", box=None)
    before = ""
    for entry in entries:
        kind = entry.kind if entry.kind != before else ""
        before = entry.kind
        table.add_row(kind, entry.name, *map(Text, (_options(entry), entry.summary)))
    console = Console()
    console.print(table, highlight=False)
    console.print("\nDescribe one: ssdfl methods NAME. Guide: docs/methods.md.", highlight=False)


def _describe(entries: list[Entry]) -> None:
    for entry in entries:
        options = f"\n\nOptions: {_options(entry)}" if entry.options else "\n\nNo options."
        typer.echo(f"{entry.name} ({entry.kind})\n\n{entry.text}{options}\n")


def _options(entry: Entry) -> str:
    return ", ".join(map(str, entry.options))
