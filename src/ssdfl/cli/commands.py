"""The commands of ``ssdfl``, each imported when it is asked for."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "run": "run:run",
    "new": "new:new",
    "report": "report:report",
    "export": "export:export",
    "methods": "methods:methods",
    "graph": "graph:graph",
    "plan": "plan:plan",
    "bounds": "bounds:bounds",
    "reproduce": "reproduce:reproduce",
    "sweep": "sweep:sweep",
    "device": "device:device",
    "mesh": "mesh:app",
    "data": "data:app",
}
"""Where each command is in this package, in the order that help shows."""


class LazyCommands(TyperGroup):
    """Imports only the command that is called, so that a small device does not pay for others."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by its name; None if there is none."""
        if COMMANDS.get(cmd_name):
            return _imported(cmd_name)
        self.commands.update({name: _imported(name) for name in COMMANDS})  # to suggest one
        return None


@cache
def _imported(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(importlib.import_module(f"ssdfl.cli.{module}"), attribute)
    group = typer.Typer(rich_markup_mode="markdown")
    group.callback()(_nothing)  # so that one command alone is a group, too
    if isinstance(found, typer.Typer):
        group.add_typer(found, name=name)
    else:
        group.command(name)(found)
    return typer.main.get_group(group).commands[name]


def _nothing() -> None:
    pass
