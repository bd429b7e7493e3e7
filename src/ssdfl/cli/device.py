"""``ssdfl device``: one real device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ssdfl.cli.options import Data, find_modules_in
from ssdfl.lazy import collecting_later


def device(
    folder: Annotated[Path, typer.Argument(help="The device's folder, from ssdfl mesh init.")],
    data: Data = None,
    metrics: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="Serve Prometheus metrics on this port of loopback."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only print, as JSON, everything it would send to others."),
    ] = False,
) -> None:
    """Run one device from its folder; it continues from its checkpoint and logs there.

    A method, model or loss of your own is named `module:function`; the module lies in the device's
    folder, in the working folder, or on PYTHONPATH.
    """
    find_modules_in(folder)
    if dry_run:
        from ssdfl.mesh.dry_run import facts_to_tell

        typer.echo(json.dumps(facts_to_tell(folder, data), indent=1, ensure_ascii=False))
        return
    with collecting_later():
        from ssdfl.mesh.device import run_device

    if not run_device(folder, data, metrics):
        typer.echo(f"Stopped; continue with: ssdfl device {folder}", err=True)
        raise typer.Exit(130)
