"""``ssdfl new``: write a small project that runs at once, to be replaced file by file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from ssdfl.cli.options import PROJECT_FILE
from ssdfl.errors import InputError

TEMPLATES = {
    "README.md": "README.md.txt",
    PROJECT_FILE: "ssdfl.toml.txt",
    "network.csv": "network.csv.txt",
    "my_data.py": "my_data.py.txt",
    "my_model.py": "my_model.py.txt",
    "test_project.py": "project_test.py.txt",
    ".gitignore": "gitignore.txt",
}
"""The files of a project, and the template of each."""


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the project and of its folder.")
    ],
) -> None:
    """Write a small project of your own: network, data, model, experiment, a test and a README.

    Try it at once: `cd NAME`, then `ssdfl run`. Then replace its files with yours, one at a time.
    Commands read `ssdfl.toml` in the working folder.
    """
    folder = Path(name)
    _check_name(name)
    write_project(folder, {"name": name})
    typer.echo(f"Wrote {', '.join(TEMPLATES)} into {folder}/. Try it:")
    typer.echo(f"  cd {folder} && ssdfl run")


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z]\w*(-\w+)*", name, re.ASCII):
        expected = "letters, digits, - and _, starting with a letter"
        raise InputError(
            "NAME", name, expected, "It becomes a folder here and the experiment's name."
        )


def write_project(folder: Path, values: Mapping[str, str]) -> None:
    """Write all files of a project into a folder that does not exist yet, or none of them.

    Raises:
        InputError: the folder exists.
    """
    _make_folder(folder)
    try:
        for file, template in TEMPLATES.items():
            (folder / file).write_text(_filled(template, values), encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir()
    except FileExistsError:
        expected = "a name that no file or folder here has"
        raise InputError("NAME", str(folder), expected, "Choose another one.") from None


def _filled(template: str, values: Mapping[str, str]) -> str:
    """A template's text with values in their places."""
    text = files("ssdfl.cli").joinpath("project", template).read_text(encoding="utf-8")
    return Template(text).substitute(values)
