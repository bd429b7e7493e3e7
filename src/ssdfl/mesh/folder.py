"""The folders of a mesh: one for each device, to be copied to its host.

ca/authority.key, authority.pem     the authority; its key is needed only to make certificates: keep it safe
device-00/device.json               name, where it listens, its neighbours' addresses
device-00/experiment.toml, network.json
device-00/key.pem, certificate.pem, authority.pem
device-00/plan.json, facts.binpb, checkpoint.safetensors    written by the device, as the next
device-00/metrics.jsonl, status.json, device.log
"""

from __future__ import annotations

import csv
import json
import shutil
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ssdfl.clusters import read_plan, write_plan
from ssdfl.engine import Job
from ssdfl.errors import InputError, check_range
from ssdfl.files import write_text
from ssdfl.graph import Network, check_mixing, load_network, to_json
from ssdfl.mesh.certificates import Authority, write_secret
from ssdfl.mesh.neighbours import PING_DEADLINE_S
from ssdfl.mesh.transport import MOST_BYTES
from ssdfl.methods import find_method
from ssdfl.preparation import fitting_plan
from ssdfl.records.config import Experiment, write_experiment

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Host:
    """Where a device is.

    Attributes:
        device: its name.
        address: ``host:port`` where it listens, or empty if nobody can dial it.
    """

    device: str
    address: str


@dataclass(frozen=True)
class DeviceConfig:
    """What ``device.json`` holds.

    Attributes:
        index: which device of the network it is.
        names: of all devices, by index.
        listen: ``host:port``, or empty for a device that cannot be dialled.
        neighbours: where each neighbour listens, or empty for one that cannot be dialled.
        patience_s: how long to wait for a neighbour that is there but slow.
        ping_deadline_s: how soon neighbours have to answer pings; who misses two in a row is gone.
    """

    name: str
    index: int
    names: tuple[str, ...]
    method: str
    seed: int
    listen: str
    neighbours: dict[str, str]
    patience_s: float = PATIENCE_S
    ping_deadline_s: float = PING_DEADLINE_S


def device_names(num_devices: int) -> tuple[str, ...]:
    """``device-00``, ``device-01``, …: as many digits as needed, two at least."""
    digits = max(2, len(str(num_devices - 1)))
    return tuple(f"device-{index:0{digits}d}" for index in range(num_devices))


def read_hosts(path: Path, names: Sequence[str]) -> list[Host]:
    """Hosts from a CSV file ``device,address``; an empty address is a device that cannot be dialled.

    Raises:
        InputError: a missing, unknown or repeated device, or an address that is none.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            rows = list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("hosts", str(path), "a CSV file", f"The reader says: {error}.") from None
    found: dict[str, Host] = {}
    for line, row in enumerate(rows, start=2):
        name, address = (row.get("device") or "").strip(), (row.get("address") or "").strip()
        name = names[int(name)] if name.isdecimal() and int(name) < len(names) else name
        if name not in names or name in found:
            expected = f"each of {names[0]} … {names[-1]} once"
            raise InputError(f"{path} line {line}: device", name, expected, "Mend the line.")
        host, _, port = address.rpartition(":")
        if address and not (host and port.isdecimal() and int(port) < 1 << 16):
            raise InputError(
                f"{path} line {line}: address", address, "host:port, or nothing", "Mend the line."
            )
        found[name] = Host(name, address)
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise InputError(f"{path}: device", missing, "a line for each device", "Add its line.")
    return [found[name] for name in names]


def loopback_hosts(names: Sequence[str]) -> list[Host]:
    """Free ports of this machine."""
    sockets = [socket.socket() for _ in names]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [
            Host(name, f"127.0.0.1:{one.getsockname()[1]}") for name, one in zip(names, sockets, strict=True)
        ]
    finally:
        for one in sockets:
            one.close()


def init_mesh(
    experiment: Experiment,
    out: Path,
    *,
    method: str,
    seed: int,
    hosts: Sequence[Host] | None = None,
    patience_s: float = PATIENCE_S,
    ping_deadline_s: float = PING_DEADLINE_S,
    certificates: bool = True,
) -> list[Path]:
    """Write a folder for each device of a mesh; returns them.

    Args:
        hosts: where devices are; without them, all on free ports of this machine.
        certificates: make an authority and certificates; without, put your own into the folders.

    Raises:
        InputError: the folder holds a mesh already, or two neighbours of which neither can be dialled.
    """
    if any(out.glob("device-*")):
        raise InputError("--out", str(out), "a folder with no mesh in it", "Choose another.")
    find_method(method)
    check_range("--patience", patience_s, 0)
    check_range("--ping-deadline", ping_deadline_s, 0.1)
    if experiment.engine.device != "cpu":
        raise InputError("engine.device", experiment.engine.device, "cpu on a mesh", "Leave it at cpu.")
    network = load_network(experiment.network.spec, default_seed=seed)
    given = experiment.clusters.plan
    plan = fitting_plan(read_plan(Path(given)), network) if given else None
    names = device_names(network.num_devices)
    places = list(hosts) if hosts is not None else loopback_hosts(names)
    _check_links(network, names, places)
    of_device = _experiment_of_device(experiment, method, seed)
    folders = [out / name for name in names]
    configs = [
        DeviceConfig(
            name=names[index],
            index=index,
            names=names,
            method=method,
            seed=seed,
            listen=places[index].address,
            neighbours={names[j]: places[j].address for j in network.neighbours(index)},
            patience_s=patience_s,
            ping_deadline_s=ping_deadline_s,
        )
        for index in range(len(names))
    ]
    try:
        for folder, config in zip(folders, configs, strict=True):
            _write_config(folder, config)
            write_text(folder / "network.json", to_json(network))
            write_experiment(of_device, folder / "experiment.toml")
            if plan is not None:
                write_plan(plan, folder / "plan.json")
        if certificates:
            _write_certificates(out, folders)
    except BaseException:
        for folder in (*folders, out / "ca"):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return folders


def move_to_free_ports(mesh: Path) -> None:
    """Give all devices of a mesh on loopback new ports: those of before may be taken by now."""
    folders = device_folders(mesh)
    configs = [read_device(folder) for folder in folders]
    address = {host.device: host.address for host in loopback_hosts([config.name for config in configs])}
    for folder, config in zip(folders, configs, strict=True):
        neighbours = {name: address[name] for name in config.neighbours}
        _write_config(folder, replace(config, listen=address[config.name], neighbours=neighbours))


def _write_config(folder: Path, config: DeviceConfig) -> None:
    write_text(folder / "device.json", json.dumps(asdict(config), indent=1) + "\n")


def _experiment_of_device(experiment: Experiment, method: str, seed: int) -> Experiment:
    """The experiment as every device gets it: one method and seed, and the network beside it."""
    return experiment.model_copy(
        update={
            "network": experiment.network.model_copy(update={"spec": "network.json"}),
            "clusters": experiment.clusters.model_copy(update={"plan": ""}),
            "engine": experiment.engine.model_copy(update={"name": "mesh"}),
            "methods": (method,),
            "seeds": (seed,),
        }
    )


def _write_certificates(out: Path, folders: Sequence[Path]) -> None:
    """An authority into a folder of its own, and into each device's folder its key and certificate."""
    authority = Authority()
    write_secret(out / "ca" / "authority.key", authority.key())
    for folder in (out / "ca", *folders):
        write_text(folder / "authority.pem", authority.certificate.decode())
    for folder in folders:
        key, certificate = authority.issue(folder.name)
        write_secret(folder / "key.pem", key)
        write_text(folder / "certificate.pem", certificate.decode())


def check_reach(method: str, job: Job) -> None:
    """Refuse what real devices cannot run: they hear their neighbours only, and messages have a limit.

    Raises:
        InputError: the method mixes devices without a link, or the model is too large.
    """
    most = MOST_BYTES - 1024
    if job.message_bytes > most:
        raise InputError("bytes of the model", job.message_bytes, f"at most {most}", "Take a smaller one.")
    for t in range(job.steps_per_cycle):
        try:
            check_mixing(job.schedule(t).W, job.network.adjacency)
        except InputError as error:
            expected = f"one that mixes linked devices only, as a mesh has to ({error.what} {error.got})"
            raise InputError("method", method, expected, "Leave it out, or choose another engine.") from None


def _check_links(network: Network, names: Sequence[str], hosts: Sequence[Host]) -> None:
    for a, b in network.links.tolist():
        if not hosts[a].address and not hosts[b].address:
            pair = f"{names[a]} and {names[b]}"
            raise InputError("addresses of neighbours", pair, "at least one of two", "Give one an address.")


def read_device(folder: Path) -> DeviceConfig:
    """What ``device.json`` of a folder says.

    Raises:
        InputError: it is no folder of a device.
    """
    try:
        values: dict[str, Any] = json.loads((folder / "device.json").read_text(encoding="utf-8"))
        return DeviceConfig(**{**values, "names": tuple(values["names"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        expected = "a folder that ssdfl mesh init made"
        raise InputError("device folder", str(folder), expected, f"({error})") from None


def device_folders(mesh: Path) -> list[Path]:
    """The devices of a mesh that are on this host.

    Raises:
        InputError: there are none.
    """
    folders = sorted(path.parent for path in mesh.glob("*/device.json"))
    if not folders:
        raise InputError("mesh", str(mesh), "a folder that ssdfl mesh init made", "Check the path.")
    return folders
