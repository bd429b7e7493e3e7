"""What several commands do with their options."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

import typer

from ssdfl.cli import ranks
from ssdfl.errors import InputError

PROJECT_FILE = "ssdfl.toml"
"""The experiment of a folder, for commands that are given none."""


def find_modules_in(folder: Path) -> None:
    """Let `module:function` find modules in a folder; last, so that none shadows a library."""
    sys.path.append(str(folder.resolve()))


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Refuse a value that is none of the choices.

    Examples:
        >>> check_choice("--mixing", "lazy", ["metropolis", "lazy"])
    """
    if value not in choices:
        raise InputError(option, value, f"one of {', '.join(choices)}", "Choose one of them.")


def check_picture(option: str, path: Path | None) -> None:
    """Refuse a file name whose ending says no format that figures are written in.

    Examples:
        >>> check_picture("--picture", Path("network.pdf"))
    """
    if path is not None and path.suffix not in (".png", ".pdf"):
        remedy = "Choose a name that ends in one of them."
        raise InputError(option, str(path), "a .png or .pdf file", remedy)


def experiment_file(given: Path | None, search: bool = True) -> Path | None:
    """The experiment to read: the given one, else the working folder's, if there is one.

    Args:
        search: whether the working folder's may be taken.
    """
    if given is not None or not search:
        return given
    return _project_file()


def _project_file() -> Path | None:
    """The working folder's experiment, if there is one; says so."""
    found = Path(PROJECT_FILE)
    if not found.is_file():
        return None
    if ranks.number() is None:  # of several processes, the one that started them says it
        typer.echo(f"Experiment: {found}", err=True)
    return found
