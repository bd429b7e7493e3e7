"""The ``ssdfl`` command: it reads what the user asks for and hands it to the library."""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

import ssdfl
from ssdfl.cli import bounds, data, graph, mesh, plan, report, reproduce, run, sweep
from ssdfl.cli.ranks import report_mistake
from ssdfl.errors import InputError, InputWarning, OtherRankError

app = typer.Typer(
    name="ssdfl",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
    help="Serverless semi-decentralized federated learning: compare methods, plan networks, run devices.",
    epilog="Start with `ssdfl run`: it compares six methods on a small network in under a minute.",
)
app.command("run")(run.run)
app.command("report")(report.report)
app.command("graph")(graph.graph)
app.command("plan")(plan.plan)
app.command("bounds")(bounds.bounds)
app.command("reproduce")(reproduce.reproduce)
app.command("sweep")(sweep.sweep)
app.command("device")(mesh.device)
app.add_typer(mesh.app, name="mesh")
app.add_typer(data.app, name="data")


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"ssdfl {ssdfl.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """One line for what in a user's file is not read; other warnings as Python has them."""
    if issubclass(category, InputWarning):
        return f"ssdfl: note: {message}\n"
    return f"{filename}:{lineno}: {category.__name__}: {message}\n"


def main() -> None:
    """Run the command; a user's mistake ends with one line and exit code 2.

    Being told to end is the same as Ctrl-C: what is done is kept, and processes of ours are ended, too.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warnings.formatwarning = _format_warning
    sys.path.append(str(Path.cwd()))  # last: a user's file must not stand in for a library
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except OtherRankError:
        sys.exit(report_mistake(""))
    except InputError as error:
        sys.exit(report_mistake(f"ssdfl: {error}"))
    except OSError as error:
        path = error.filename or "file"
        sys.exit(report_mistake(f"ssdfl: {path} = {error.strerror}: expected a usable path. Check it."))
