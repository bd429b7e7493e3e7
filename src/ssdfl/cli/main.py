"""The ``ssdfl`` command: it parses arguments and calls the library."""

from __future__ import annotations

import errno
import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated, TextIO

import typer

import ssdfl
from ssdfl.cli.commands import LazyCommands
from ssdfl.cli.options import find_modules_in
from ssdfl.cli.ranks import report_mistake
from ssdfl.errors import InputError, InputWarning, OtherRankError

app = typer.Typer(
    name="ssdfl",
    cls=LazyCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
    help="Serverless semi-decentralized federated learning: "
    "compare methods, plan networks, run devices.",
    epilog="Start with `ssdfl run`: "
    "it compares seven methods on a small network in about a minute.",
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"ssdfl {ssdfl.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show warnings of this package as one line, and others as Python does."""
    text = f"ssdfl: {message}\n"
    if not issubclass(category, InputWarning):
        text = warnings.formatwarning(message, category, filename, lineno)
    sys.stderr.write(text)


def main() -> None:
    """Run the command; errors end with one line and exit code 2, or 75 if trying again may help.

    SIGTERM has the same effect as Ctrl-C: finished work is kept, and child processes end too.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warnings.showwarning = _print_warning
    find_modules_in(Path())
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except OtherRankError:
        sys.exit(report_mistake(""))
    except InputError as error:
        sys.exit(report_mistake(f"ssdfl: {error}", error.exit_code))
    except OSError as error:
        sys.exit(report_mistake(f"ssdfl: {_in_words(error)}"))


def _in_words(error: OSError) -> str:
    """The system's error, the file it concerns, and the remedy, as one line."""
    path, says = error.filename or "file", error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path} = {says}: expected free space. Make room, or write elsewhere with --out."
    return f"{path} = {says}: expected a usable path. Check it."
