"""Helpers for options that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from ssdfl.cli import ranks
from ssdfl.errors import InputError

Data = Annotated[Path | None, typer.Option(help="Folder with data sets, as SSDFL_DATA.")]

PROJECT_FILE = "ssdfl.toml"
"""The experiment file that commands read if they are given none."""


def find_modules_in(folder: Path) -> None:
    """Let `module:function` find modules in a folder.

    The folder is searched last, so that its modules shadow no library.
    """
    sys.path.append(str(folder.resolve()))


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Refuse a value that is not among the choices.

    Examples:
        >>> check_choice("--mixing", "lazy", ["metropolis", "lazy"])
    """
    if value not in choices:
        raise InputError(option, value, f"one of {', '.join(choices)}", "Choose one of them.")


def check_picture(option: str, path: Path | None) -> None:
    """Refuse a file name whose suffix is not a format for figures.

    Examples:
        >>> check_picture("--picture", Path("network.pdf"))
    """
    if path is not None and path.suffix not in (".png", ".pdf"):
        remedy = "Choose a name that ends in one of them."
        raise InputError(option, str(path), "a .png or .pdf file", remedy)


def experiment_file(given: Path | None, search: bool = True) -> Path | None:
    """The experiment to read: the given one, or else the one in the working folder, if any.

    Args:
        search: whether to look in the working folder.
    """
    if given is not None or not search:
        return given
    return _project_file()


def _project_file() -> Path | None:
    """The working folder's experiment, if any; prints a line that says so."""
    found = Path(PROJECT_FILE)
    if not found.is_file():
        return None
    if ranks.number() is None:  # among several ranks, only the process that started them prints it
        typer.echo(f"Experiment: {found}", err=True)
    return found
