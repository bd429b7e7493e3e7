"""``ssdfl mesh add``, ``remove`` and ``renew``: change the devices of a running mesh."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ssdfl.mesh.change import SignedChange
    from ssdfl.mesh.hosts import Host

MeshFolder = Annotated[Path, typer.Argument(help="The mesh's folder, from ssdfl mesh init.")]
Cycle = Annotated[
    int | None,
    typer.Option(help="Apply the change after this cycle. Without it, soon, if devices run here."),
]
AuthorityFolder = Annotated[
    Path | None,
    typer.Option("--ca", help="Folder of authority.key and authority.pem; by default MESH/ca."),
]


def add(
    mesh: MeshFolder,
    change: Annotated[
        Path,
        typer.Argument(
            metavar="NETWORK-CHANGE",
            help="New devices and their links, in any network format: "
            "CSV `source,target,latency_ms,…`.",
        ),
    ],
    hosts: Annotated[
        Path | None,
        typer.Option(help="CSV `device,address` of the new devices. Without it, loopback."),
    ] = None,
    cycle: Cycle = None,
    optimizer: Annotated[
        str,
        typer.Option(help="The new devices' optimizer. Without it, drawn as the experiment says."),
    ] = "",
    files: Annotated[
        Path | None,
        typer.Option(help="Folder with a table NAME.csv or NAME.parquet for each new device."),
    ] = None,
    ca: AuthorityFolder = None,
    own_certificates: Annotated[
        bool, typer.Option("--own-certificates", help="Make no certificates for the new devices.")
    ] = False,
) -> None:
    """Let devices join a running mesh: sign a change, and write the new devices' folders.

    Devices in MESH get the change at once. On other hosts, copy it into `changes/` of any one
    device's folder: neighbours pass it on. At the given cycle, all devices repair the plan, and the
    new ones start from their neighbours' parameters.
    """
    from ssdfl.graph import read_network
    from ssdfl.mesh.changing import Mesh, add_devices

    found, additions = Mesh.of_folder(mesh, ca), read_network(change, connected=False)
    new = [name for name in additions.names if name not in found.network.names]
    signed = add_devices(
        found,
        additions,
        hosts=_hosts(hosts, new),
        cycle=cycle,
        optimizer=optimizer,
        files=files,
        certificates=not own_certificates,
    )
    _say(mesh, signed, f"{', '.join(new)} join" if new else "links change")
    for name in new:
        typer.echo(f"Start it, now or later: ssdfl device {mesh / name}")


def remove(
    mesh: MeshFolder,
    devices: Annotated[list[str], typer.Argument(help="Names of the devices that leave for good.")],
    cycle: Cycle = None,
    ca: AuthorityFolder = None,
) -> None:
    """Remove devices from a running mesh for good, whether they still run or not.

    A removed device stops by itself and keeps its model; the others repair the plan.
    """
    from ssdfl.mesh.changing import Mesh, remove_devices

    signed = remove_devices(Mesh.of_folder(mesh, ca), devices, cycle)
    _say(mesh, signed, f"{', '.join(devices)} leave")


def renew(
    mesh: MeshFolder,
    devices: Annotated[
        list[str] | None, typer.Argument(help="Names of devices; without any, all.")
    ] = None,
    new_keys: Annotated[bool, typer.Option("--new-keys", help="Also make new keys.")] = False,
    ca: AuthorityFolder = None,
) -> None:
    """Write new certificates from the same authority, valid for 825 days.

    A device uses its new certificate after a restart. Old and new certificates work together, so
    restart the devices one by one.
    """
    from ssdfl.mesh.renewal import RENEWED, renew_certificates

    folders = renew_certificates(mesh, devices or (), new_keys, ca)
    files = ", ".join(("key.pem", *RENEWED) if new_keys else RENEWED)
    typer.echo(f"Renewed {files} of {', '.join(folder.name for folder in folders)}.")
    typer.echo("Copy them to the devices' hosts, and restart the devices one by one.")


def _hosts(path: Path | None, new: Sequence[str]) -> list[Host] | None:
    """The addresses of new devices, if a file gives them."""
    from ssdfl.mesh.hosts import read_hosts

    return None if path is None else read_hosts(path, new)


def _say(mesh: Path, signed: SignedChange, what: str) -> None:
    version, cycle = signed.change.version, signed.change.cycle
    typer.echo(f"Change {version}: {what} after cycle {cycle}.")
    path = mesh / "changes" / f"{version}.json"
    typer.echo(f"On other hosts: copy {path} into changes/ of any one device's folder.")
