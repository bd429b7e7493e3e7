"""``ssdfl mesh``: real devices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from ssdfl.cli import membership
from ssdfl.cli.options import Data, experiment_file, find_modules_in
from ssdfl.cli.progress import say

app = typer.Typer(
    no_args_is_help=True, help="Run devices on real hosts.", rich_markup_mode="markdown"
)

UNKNOWN = "–"


@app.command("init")
def init(
    out: Annotated[Path, typer.Option(help="Folder for the devices' folders.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="Experiment (TOML). Without it, ./ssdfl.toml, else the default one."),
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(
            help="CSV `device,address`; leave the address empty if a device cannot be dialled. "
            "Without it, loopback."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Set one value. Repeatable.")
    ] = None,
    method: Annotated[str, typer.Option(help="The method to run.")] = "ssdfl",
    seed: Annotated[int, typer.Option(help="The seed to run.")] = 0,
    patience: Annotated[float, typer.Option(help="Seconds to wait for a slow neighbour.")] = 60.0,
    ping_deadline: Annotated[
        float,
        typer.Option(
            help="Seconds to wait for a ping's answer; after two misses a neighbour counts as gone."
        ),
    ] = 1.5,
    adaptive: Annotated[
        bool,
        typer.Option(
            "--adaptive/--strict",
            help="Continue at once without a neighbour that is silent for longer than usual.",
        ),
    ] = False,
    own_certificates: Annotated[
        bool,
        typer.Option(
            "--own-certificates",
            help="Make no certificates: you put key.pem, certificate.pem and authority.pem into "
            "each folder.",
        ),
    ] = False,
) -> None:
    """Write one folder per device: configuration, neighbours' addresses, key and certificate.

    Copy each folder to its host and start it there with `ssdfl device`. The authority's key in
    `ca/` stays with you.
    """
    from ssdfl.graph import load_network
    from ssdfl.mesh.folder import init_mesh
    from ssdfl.mesh.hosts import read_hosts
    from ssdfl.records import load_experiment

    file = experiment_file(file)
    experiment = load_experiment(file, settings or [])
    if file is not None:
        find_modules_in(file.parent)
    names = load_network(experiment.network.spec, default_seed=seed).names
    folders = init_mesh(
        experiment,
        out,
        method=method,
        seed=seed,
        hosts=read_hosts(hosts, names) if hosts is not None else None,
        patience_s=patience,
        ping_deadline_s=ping_deadline,
        adaptive=adaptive,
        certificates=not own_certificates,
    )
    typer.echo(f"{len(folders)} devices in {out}. Start one: ssdfl device {folders[0]}")
    typer.echo(
        f"All on this host: ssdfl mesh up {out}. "
        f"Keep {out / 'ca' / 'authority.key'} off the devices."
    )


@app.command("up")
def up(
    mesh: Annotated[Path, typer.Argument(help="The mesh's folder.")],
    data: Data = None,
    metrics: Annotated[
        int | None,
        typer.Option(help="Port for the first device's metrics; others take the next ones."),
    ] = None,
) -> None:
    """Run all devices of this host with a live table. Ctrl-C stops them; run it again to continue.

    MESH/progress.log gets a line for each cycle that all devices have finished.
    """
    from ssdfl.mesh.processes import MeshProcesses, watch_statuses
    from ssdfl.mesh.progress import ProgressFile

    console, progress = Console(stderr=True), ProgressFile(mesh)
    processes = MeshProcesses(mesh, data, metrics)
    try:
        processes.start()
        with Live(console=console, refresh_per_second=2) as live:
            before: list[dict[str, Any]] = []
            for statuses in watch_statuses(processes):
                live.update(_table(statuses, before))
                progress.note(statuses)
                before = statuses
        progress.note(processes.statuses(), always=True)
    except KeyboardInterrupt:
        processes.stop()
        say(console, f"Stopped; finished work is kept. Continue with: ssdfl mesh up {mesh}")
        raise typer.Exit(130) from None
    finally:
        processes.stop()
    say(console, f"All devices have finished. Gather their records: ssdfl mesh collect {mesh}")


@app.command("collect")
def collect(
    mesh: Annotated[
        Path, typer.Argument(help="The mesh's folder, with the devices' folders in it.")
    ],
    out: Annotated[Path | None, typer.Option(help="The run's folder; by default MESH/run.")] = None,
) -> None:
    """Gather devices' records into an ordinary run folder, with figures and a report.

    If devices have their own data and these are in the folder too, every model is tested on every
    device's held-out data.
    """
    from ssdfl.experiments.cross_tests import write_cross_tests
    from ssdfl.mesh.processes import collect as gather
    from ssdfl.report import write_report

    run = gather(mesh, out or mesh / "run")
    write_cross_tests(mesh, run)
    typer.echo(f"{write_report(run)}")


for _command in (membership.add, membership.remove, membership.renew):
    app.command(_command.__name__)(_command)


def _table(statuses: list[dict[str, Any]], before: list[dict[str, Any]]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for column in ("device", "step", "score", "neighbours", "kB/s in", "refused"):
        table.add_column(column, justify="left" if column == "device" else "right")
    earlier = {status["device"]: status for status in before}
    for status in statuses:
        table.add_row(*_cells(status, earlier.get(status["device"], {})))
    return table


def _cells(status: dict[str, Any], before: dict[str, Any]) -> tuple[str, ...]:
    """A device's row of the table, from its current and its previous status."""
    return (
        status["device"],
        str(status.get("step", UNKNOWN)),
        status.get("shown_score") or UNKNOWN,
        _standing(status),
        _receiving_rate(status, before),
        str(status.get("refused", UNKNOWN)),
    )


def _standing(status: dict[str, Any]) -> str:
    """The number of neighbours that a device hears, or why the device is missing."""
    if "failed" in status:
        return f"failed ({status['failed']})"
    absent = [kind for kind in ("left", "joining") if kind in status]
    return absent[0] if absent else str(status.get("neighbours", UNKNOWN))


def _receiving_rate(status: dict[str, Any], before: dict[str, Any]) -> str:
    """The receiving rate in kB/s since the previous status."""
    seconds = status.get("real_s", 0) - before.get("real_s", 0)
    if not before or seconds <= 0:
        return UNKNOWN
    messages = status.get("received", 0) - before.get("received", 0)
    return f"{messages * status.get('message_bytes', 0) / seconds / 1000:,.0f}"
