"""The folders of a mesh: one for each device, to be copied to its host.

ca/authority.key, authority.pem     the authority; its key only makes certificates: keep it safe
NAME/device.json                    name, where it listens, its neighbours' addresses
NAME/experiment.toml, network.json, and initial.safetensors if the experiment names parameters
NAME/train.parquet, encoding.json   its own data, if the experiment names a folder with a file each
NAME/key.pem, certificate.pem, authority.pem

The device itself writes:

NAME/plan.json, facts.binpb, own-fact.binpb, checkpoint.safetensors, metrics.jsonl, status.json,
device.log,                         and at the end model.safetensors

A device's name is the network's.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ssdfl.clusters import Plan, fitting_plan, read_plan, write_plan
from ssdfl.engine import Job
from ssdfl.errors import InputError, check_range, unfit_value
from ssdfl.files import write_text
from ssdfl.graph import Network, check_mixing, load_network, to_json
from ssdfl.mesh.certificates import Authority, write_secret
from ssdfl.mesh.hosts import Host, loopback_hosts
from ssdfl.mesh.names import check_names
from ssdfl.mesh.neighbours import PING_DEADLINE_S
from ssdfl.mesh.own_data import hand_out_data, own_settings
from ssdfl.mesh.routes import check_dialling
from ssdfl.mesh.transport import MAX_MESSAGE_BYTES
from ssdfl.methods import find_method
from ssdfl.records.config import Experiment, write_experiment

PATIENCE_S = 60.0
INITIAL = "initial.safetensors"
STATUS = "status.json"
LOCK = "device.lock"


@dataclass(frozen=True)
class DeviceConfig:
    """What ``device.json`` holds.

    Attributes:
        index: which device of the network it is.
        names: of all devices, by index.
        listen: ``host:port``, or empty for a device that cannot be dialled.
        neighbours: where each neighbour listens, or empty for one that cannot be dialled.
        patience_s: how long to wait for a neighbour that is there but slow.
        ping_deadline_s: how soon neighbours must answer pings; one that misses two in a row is
            gone.
        adaptive: continue at once without a neighbour that is silent for longer than usual.
        joins: the version of the change of membership that brought it in, to whose network `index`
            and `names` refer; 0 for devices that were there at the start.
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
    adaptive: bool = False
    joins: int = 0


_CONFIG = TypeAdapter(DeviceConfig)


def init_mesh(
    experiment: Experiment,
    out: Path,
    *,
    method: str,
    seed: int,
    hosts: Sequence[Host] | None = None,
    patience_s: float = PATIENCE_S,
    ping_deadline_s: float = PING_DEADLINE_S,
    adaptive: bool = False,
    certificates: bool = True,
) -> list[Path]:
    """Write a folder for each device of a mesh; returns them.

    Args:
        hosts: where devices are; without them, all on free ports of this machine.
        certificates: make an authority and certificates; without, put your own into the folders.

    Raises:
        InputError: the folder already holds a mesh, a name cannot be a folder, or two neighbours
            cannot reach each other.
    """
    if holds_mesh(out):
        raise InputError("--out", str(out), "a folder with no mesh in it", "Choose another.")
    _check_settings(experiment, method, patience_s, ping_deadline_s)
    network = load_network(experiment.network.spec, default_seed=seed)
    plan = _plan_from_file(experiment, network)
    names = network.names
    check_names(names)
    hosts = loopback_hosts(names) if hosts is None else hosts
    address = [host.address for host in hosts]
    check_dialling(network, address)
    folders = [out / name for name in names]
    one_run = _experiment_of_device(experiment, method, seed)
    with removed_on_failure([*folders, out / "ca"]):
        for index, folder in enumerate(folders):
            config = DeviceConfig(
                name=names[index],
                index=index,
                names=names,
                method=method,
                seed=seed,
                listen=address[index],
                neighbours={names[j]: address[j] for j in network.neighbours(index)},
                patience_s=patience_s,
                ping_deadline_s=ping_deadline_s,
                adaptive=adaptive,
            )
            _write_folder(folder, config, one_run, network, plan)
            if experiment.model.initial:
                shutil.copyfile(experiment.model.initial, folder / INITIAL)
        hand_out_data(experiment.data, folders)
        if certificates:
            _write_certificates(out, folders)
    return folders


def _check_settings(
    experiment: Experiment, method: str, patience_s: float, ping_deadline_s: float
) -> None:
    find_method(method)
    check_range("--patience", patience_s, 0)
    check_range("--ping-deadline", ping_deadline_s, 0.1)
    if experiment.engine.device != "cpu":
        raise InputError(
            "engine.device", experiment.engine.device, "cpu on a mesh", "Leave it at cpu."
        )
    _check_tested_models(experiment.evaluate.models)


def _check_tested_models(models: str) -> None:
    if models != "all":
        remedy = "Set it to all."
        raise InputError(
            "evaluate.models", models, "all on a mesh: no device has the mean model", remedy
        )


def _plan_from_file(experiment: Experiment, network: Network) -> Plan | None:
    """The plan that the experiment names; without one, devices form their own."""
    given = experiment.clusters.plan
    return fitting_plan(read_plan(Path(given)), network) if given else None


@contextmanager
def removed_on_failure(folders: Sequence[Path]) -> Iterator[None]:
    """Leave no half-written mesh behind."""
    try:
        yield
    except BaseException:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_folder(
    folder: Path, config: DeviceConfig, experiment: Experiment, network: Network, plan: Plan | None
) -> None:
    write_config(folder, config)
    write_text(folder / "network.json", to_json(network))
    write_experiment(experiment, folder / "experiment.toml")
    if plan is not None:
        write_plan(plan, folder / "plan.json")


def renew_experiment(mesh: Path, experiment: Experiment) -> None:
    """Give all devices of a mesh a new experiment, which may differ only in cycles."""
    for folder in device_folders(mesh):
        config = read_device(folder)
        one_run = _experiment_of_device(experiment, config.method, config.seed)
        write_experiment(one_run, folder / "experiment.toml")


def move_to_free_ports(mesh: Path) -> None:
    """Give all devices of a mesh on loopback new ports: the old ones may be taken by now."""
    folders = device_folders(mesh)
    names = [read_device(folder).name for folder in folders]
    address = {host.device: host.address for host in loopback_hosts(names)}
    for folder in folders:
        config = read_device(folder)
        neighbours = {name: address[name] for name in config.neighbours}
        write_config(folder, replace(config, listen=address[config.name], neighbours=neighbours))


def write_config(folder: Path, config: DeviceConfig) -> None:
    """Write ``device.json``."""
    write_text(folder / "device.json", json.dumps(asdict(config), indent=1) + "\n")


def _experiment_of_device(experiment: Experiment, method: str, seed: int) -> Experiment:
    """The experiment that every device gets: one method, one seed, and the network in a file."""
    return experiment.model_copy(
        update={
            "network": experiment.network.model_copy(update={"spec": "network.json"}),
            "clusters": experiment.clusters.model_copy(update={"plan": ""}),
            "engine": experiment.engine.model_copy(update={"name": "mesh"}),
            "model": experiment.model.model_copy(
                update={"initial": INITIAL if experiment.model.initial else ""}
            ),
            "methods": (method,),
            "seeds": (seed,),
            **own_settings(experiment),
        }
    )


def _write_certificates(out: Path, folders: Sequence[Path]) -> None:
    """Write an authority into a folder of its own, and a key and certificate into each device's."""
    authority = Authority()
    write_secret(out / "ca" / "authority.key", authority.key())
    for folder in (out / "ca", *folders):
        write_text(folder / "authority.pem", authority.certificate.decode())
    for folder in folders:
        key, certificate = authority.issue(folder.name)
        write_secret(folder / "key.pem", key)
        write_text(folder / "certificate.pem", certificate.decode())


def check_reach(method: str, job: Job) -> None:
    """Refuse what real devices cannot run: they hear only neighbours, and messages have a limit.

    Raises:
        InputError: the method mixes devices without a link, the model is too large, or the mean
            model, which no device has, is to be tested.
    """
    _check_tested_models(job.tested_models)
    limit = MAX_MESSAGE_BYTES - 1024  # room for the rest of the message
    if job.message_bytes > limit:
        raise InputError(
            "bytes of the model", job.message_bytes, f"at most {limit}", "Take a smaller one."
        )
    steps = map(job.schedule, range(job.steps_per_cycle))
    for W in {id(step.W): step.W for step in steps}.values():  # most steps share theirs
        try:
            check_mixing(W, job.network.adjacency)
        except InputError as error:
            expected = (
                f"one that mixes linked devices only, as a mesh has to ({error.what} {error.got})"
            )
            raise InputError(
                "method", method, expected, "Leave it out, or choose another engine."
            ) from None


def read_device(folder: Path) -> DeviceConfig:
    """What ``device.json`` of a folder says.

    Raises:
        InputError: the folder is not a device's.
    """
    try:
        text = (folder / "device.json").read_text(encoding="utf-8")
        config = _CONFIG.validate_json(text, strict=True)
        _check_config(config)
    except ValidationError as error:
        where = str(folder / "device.json")
        raise unfit_value(error.errors()[0], where, "Write it again: ssdfl mesh init.") from None
    except (OSError, ValueError) as error:
        expected = "a folder that ssdfl mesh init made"
        raise InputError("device folder", str(folder), expected, f"({error})") from None
    return config


def _check_config(config: DeviceConfig) -> None:
    """Refuse contradictory settings.

    Raises:
        ValueError: with the reason.
    """
    if config.names[config.index : config.index + 1] != (config.name,) or config.index < 0:
        raise ValueError(f"{config.name} is not device {config.index} of its names")
    if not config.neighbours.keys() <= set(config.names):
        raise ValueError("a neighbour is not among its names")
    if not 0 <= config.patience_s < math.inf or not 0 < config.ping_deadline_s < math.inf:
        raise ValueError("patience or the deadline of pings is no number of seconds")


def holds_mesh(folder: Path) -> bool:
    """Whether there are devices' folders in a folder."""
    return any(folder.glob("*/device.json"))


def device_folders(mesh: Path) -> list[Path]:
    """The devices of a mesh that are on this host, in the network's order.

    Raises:
        InputError: there are none.
    """
    if not holds_mesh(mesh):
        raise InputError("mesh", str(mesh), "a folder that ssdfl mesh init made", "Check the path.")
    folders = (path.parent for path in mesh.glob("*/device.json"))
    found = {folder: read_device(folder) for folder in folders}
    return sorted(found, key=lambda folder: (found[folder].joins, found[folder].index))
