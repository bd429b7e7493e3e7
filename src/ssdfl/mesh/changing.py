"""Sign changes of membership and write newcomers' folders, with the authority's key.

MESH/changes/1.json, 2.json, …    all changes so far; device folders here get each of them, too
"""

from __future__ import annotations

import math
import shutil
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict

from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.graph import Network, joined, load_network, to_json, without
from ssdfl.learning import parse_optimizer
from ssdfl.mesh.certificates import Authority, write_secret
from ssdfl.mesh.change import Change, Newcomer, SignedChange, signed_change, text_digest
from ssdfl.mesh.editions import drawn_optimizer
from ssdfl.mesh.flood import FACTS, describe
from ssdfl.mesh.folder import (
    INITIAL,
    DeviceConfig,
    device_folders,
    read_device,
    removed_on_failure,
    write_config,
)
from ssdfl.mesh.hosts import Host, loopback_hosts
from ssdfl.mesh.member import PLAN, Member
from ssdfl.mesh.membership import CHANGES, Membership
from ssdfl.mesh.names import check_names
from ssdfl.mesh.own_data import ENCODING, TRAIN, hand_out_files
from ssdfl.mesh.processes import device_status
from ssdfl.mesh.routes import check_dialling
from ssdfl.preparation import given_plan
from ssdfl.records.config import load_experiment

FLOOD_S = 10.0
"""The default time for a change to reach all devices before it takes effect."""
LEAST_CYCLES = 2
_COPIED = ("network.json", "experiment.toml", "authority.pem", INITIAL, ENCODING)


@dataclass(frozen=True, eq=False)
class Mesh:
    """A mesh, seen by the holder of its authority's key.

    Attributes:
        folder: with the devices' folders, as `ssdfl mesh init` wrote them.
        authority: its own.
        changes: all so far.
    """

    folder: Path
    authority: Authority
    changes: tuple[SignedChange, ...]

    @classmethod
    def of_folder(cls, folder: Path, authority: Path | None = None) -> Mesh:
        """The mesh of a folder.

        Args:
            authority: the folder with ``authority.key`` and ``authority.pem``; by default ``ca``.

        Raises:
            InputError: no mesh, no key, or changes that are not its own.
        """
        found = Authority.of_folder(authority or folder / "ca")
        text = (device_folders(folder)[0] / "network.json").read_text(encoding="utf-8")
        known = Membership(folder, found.certificate, text)
        written = len(list((folder / CHANGES).glob("*.json")))
        if written != known.version:
            got = f"{known.version} of {written} files"
            expected = "all to be signed by this authority, one after the other"
            raise InputError(f"changes in {folder / CHANGES}", got, expected, "Restore them.")
        return cls(folder, found, known.changes)

    @property
    def devices(self) -> list[Path]:
        """The folders of devices that are or were in it."""
        return device_folders(self.folder)

    @property
    def network(self) -> Network:
        """After the last change."""
        if self.changes:
            return self.changes[-1].change.devices
        return load_network(str(self.devices[0] / "network.json"))

    @property
    def addresses(self) -> dict[str, str]:
        """Where devices listen, after the last change."""
        if self.changes:
            return dict(self.changes[-1].change.addresses)
        return {config.name: config.listen for config in map(read_device, self.devices)}

    def next_change(
        self,
        network: Network,
        addresses: Mapping[str, str],
        joins: Mapping[str, Newcomer],
        cycle: int,
    ) -> SignedChange:
        """The change that follows the last one, signed."""
        text = (self.devices[0] / "network.json").read_text(encoding="utf-8")
        change = Change(
            version=len(self.changes) + 1,
            previous=self.changes[-1].digest if self.changes else text_digest(text),
            cycle=cycle,
            network=to_json(network),
            addresses={name: addresses[name] for name in network.names},
            joins=dict(joins),
        )
        return signed_change(change, self.authority.key())

    def publish(self, change: SignedChange) -> None:
        """Put a change where devices find it, and where the next one looks for it."""
        for folder in (*self.devices, self.folder):
            write_text(folder / CHANGES / f"{change.change.version}.json", change.text)

    def cycle(self, asked: int | None) -> int:
        """The cycle after which a change takes effect: as asked, or soon after the devices' own.

        Raises:
            InputError: the devices' cycles are unknown, or the cycle has passed or precedes another
                change.
        """
        after = max((known.change.cycle for known in self.changes), default=0)
        found = max(self._soon(), after + 1) if asked is None else asked
        last = load_experiment(self.devices[0] / "experiment.toml").cycles - 1
        if not after < found <= last:
            expected = f"{after + 1} to {last}: after the change before, and before training ends"
            raise InputError("--cycle", found, expected, "Choose another.")
        return found

    def _soon(self) -> int:
        """Some cycles from now, by what devices on this host say."""
        statuses = list(filter(lambda status: "cycle" in status, map(device_status, self.devices)))
        if not statuses:
            expected = "the cycle to take effect after, as no device on this host says where it is"
            raise InputError(
                "--cycle", "nothing", expected, "Give one that all devices have yet to reach."
            )
        at = max(int(status["cycle"]) for status in statuses)
        cycle_s = statistics.median(map(_cycle_s, statuses))  # of newcomers it is far too short
        return at + max(LEAST_CYCLES, math.ceil(FLOOD_S / cycle_s))


def _cycle_s(status: Mapping[str, Any]) -> float:
    """Seconds that a device took for a cycle."""
    seconds, cycles = float(status["real_s"]), int(status["cycle"])
    return max(seconds / max(cycles, 1), 1e-3)


def remove_devices(mesh: Mesh, names: Collection[str], cycle: int | None = None) -> SignedChange:
    """Sign a change after which some devices are no longer in a mesh.

    Raises:
        InputError: an unknown device, a remainder that is not connected or lacks a relay, or an
            impossible cycle.
    """
    rest = without(mesh.network, names)
    check_dialling(rest, [mesh.addresses[name] for name in rest.names])
    change = mesh.next_change(rest, mesh.addresses, {}, mesh.cycle(cycle))
    mesh.publish(change)
    return change


def add_devices(
    mesh: Mesh,
    additions: Network,
    *,
    hosts: Sequence[Host] | None = None,
    cycle: int | None = None,
    optimizer: str = "",
    files: Path | None = None,
    certificates: bool = True,
) -> SignedChange:
    """Sign a change after which devices have joined a mesh, and write their folders.

    Args:
        additions: links between newcomers and the mesh's devices, or others, by name.
        hosts: where newcomers listen; without them, on free ports if the whole mesh is on loopback.
        optimizer: the newcomers'; by default it is drawn as at the start.
        files: a folder with a table for each newcomer, named after it, if devices have their own
            data.
        certificates: make certificates; without, put your own into the folders.

    Raises:
        InputError: an impossible name, link, address or cycle.
    """
    network = joined(mesh.network, additions)
    new = network.names[mesh.network.num_devices :]
    check_names(network.names)
    found = mesh.cycle(cycle)
    addresses = mesh.addresses | _addresses(mesh, new, hosts)
    check_dialling(network, [addresses[name] for name in network.names])
    optimizers = _optimizers(mesh, new, optimizer)
    folders = [mesh.folder / name for name in new]
    _check_free(folders)
    with removed_on_failure(folders):
        for name in new:
            _write_newcomer(mesh, _config(mesh, network, name, addresses), certificates)
        _hand_out(files, folders)
        joins = {name: _newcomer(mesh, network, name, optimizers[name]) for name in new}
        change = mesh.next_change(network, addresses, joins, found)
        mesh.publish(change)
    return change


def _hand_out(files: Path | None, folders: Sequence[Path]) -> None:
    if files is not None:
        hand_out_files(files, folders)


def _check_free(folders: Sequence[Path]) -> None:
    for folder in folders:
        if folder.exists():
            remedy = "Move it away, or rename the device."
            raise InputError("newcomer's folder", str(folder), "none yet", remedy)


def _addresses(mesh: Mesh, new: Sequence[str], hosts: Sequence[Host] | None) -> dict[str, str]:
    """Where newcomers listen."""
    found = _loopback(mesh, new) if hosts is None else hosts
    return {host.device: host.address for host in found}


def _loopback(mesh: Mesh, new: Sequence[str]) -> list[Host]:
    """Free ports, if the whole mesh is on this machine."""
    if not all(one.startswith("127.0.0.1:") for one in mesh.addresses.values()):
        expected = "newcomers' addresses, as the mesh is not on loopback"
        raise InputError("--hosts", "nothing", expected, "Give a CSV file `device,address`.")
    return loopback_hosts(new)


def _config(mesh: Mesh, network: Network, name: str, addresses: Mapping[str, str]) -> DeviceConfig:
    like, index = read_device(mesh.devices[0]), network.names.index(name)
    return DeviceConfig(
        name=name,
        index=index,
        names=network.names,
        method=like.method,
        seed=like.seed,
        listen=addresses[name],
        neighbours={
            network.names[j]: addresses[network.names[j]] for j in network.neighbours(index)
        },
        patience_s=like.patience_s,
        ping_deadline_s=like.ping_deadline_s,
        adaptive=like.adaptive,
        joins=len(mesh.changes) + 1,
    )


def _write_newcomer(mesh: Mesh, config: DeviceConfig, certificates: bool) -> None:
    """Write a newcomer's folder, but for the change that brings it in."""
    folder = mesh.folder / config.name
    _copy_settings(mesh.devices[0], folder)
    if certificates:
        key, certificate = mesh.authority.issue(config.name)
        write_secret(folder / "key.pem", key)
        write_text(folder / "certificate.pem", certificate.decode())
    for earlier in mesh.changes:
        write_text(folder / CHANGES / f"{earlier.change.version}.json", earlier.text)
    write_config(folder, config)


def _copy_settings(like: Path, folder: Path) -> None:
    """Give a newcomer the shared settings and modules; it forms a formed plan for itself."""
    folder.mkdir(parents=True, exist_ok=True)
    modules = [path.name for path in like.glob("*.py")]
    given = [] if (like / FACTS).exists() else [PLAN]
    for name in (*_COPIED, *modules, *given):
        _copy_if_there(like / name, folder / name)


def _copy_if_there(source: Path, target: Path) -> None:
    if source.exists():
        shutil.copyfile(source, target)


def _optimizers(mesh: Mesh, new: Sequence[str], asked: str) -> dict[str, str]:
    """Each newcomer's optimizer."""
    if asked:
        return {name: str(parse_optimizer(asked)) for name in new}
    experiment = load_experiment(mesh.devices[0] / "experiment.toml")
    seed, version = read_device(mesh.devices[0]).seed, len(mesh.changes) + 1
    return {name: drawn_optimizer(experiment, seed, version, k) for k, name in enumerate(new)}


def _newcomer(mesh: Mesh, network: Network, name: str, optimizer: str) -> Newcomer:
    """What a change says of a newcomer: what it would share of its data, if they are at hand."""
    folder = mesh.folder / name
    experiment = load_experiment(folder / "experiment.toml")
    data = experiment.data
    at_hand = (data.encoding, data.train) == (ENCODING, TRAIN) and (folder / TRAIN).exists()
    if not at_hand:  # or only the devices know together how to encode them
        return Newcomer(optimizer)
    member = Member.of_folder(folder).moved(
        network, [parse_optimizer(optimizer)] * network.num_devices
    )
    samples = member.samples_to_tell()
    if given_plan(experiment, network) is not None:
        return Newcomer(optimizer, samples=samples)
    facts = MessageToDict(
        describe(name, member.described(), None), preserving_proto_field_name=True
    )
    return Newcomer(optimizer, facts, samples)
