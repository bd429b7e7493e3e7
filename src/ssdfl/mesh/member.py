"""One device as its folder describes it: settings, data, task, optimizer, and what it shares."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path

from ssdfl.arrays import IntArray
from ssdfl.clusters import Device, Plan, fitting_plan, read_plan
from ssdfl.engine import Job
from ssdfl.engine.saved_models import about_model, read_model
from ssdfl.files import write_text
from ssdfl.graph import Network, load_network
from ssdfl.learning import (
    Dataset,
    DeviceConstants,
    Optimizer,
    Task,
    load_data,
    load_own_data,
)
from ssdfl.learning.export import write_model
from ssdfl.learning.parameters import fill_model
from ssdfl.learning.shards import Shards
from ssdfl.mesh.folder import DeviceConfig, check_reach, read_device
from ssdfl.mesh.holdings import Holders, known_summary, save_holdings, saved_holdings
from ssdfl.mesh.mesh_pb2 import Holding
from ssdfl.mesh.node import Node
from ssdfl.mesh.own_data import ENCODING
from ssdfl.mesh.signing import Signer
from ssdfl.preparation import (
    Prepared,
    dealt_shards,
    dealt_task,
    draw_optimizers_of,
    given_plan,
    make_job,
    measure_device,
    measuring,
    own_shards,
    own_task,
    shared_devices,
)
from ssdfl.records.config import Experiment, load_experiment
from ssdfl.records.folder import CHECKPOINT
from ssdfl.records.scores import OWN_TESTS

PLAN = "plan.json"
MODEL = "model.safetensors"


@dataclass(eq=False)
class Member:
    """What one device knows by itself, and later of all.

    Attributes:
        data: its own, or the whole data set if that is dealt by number.
        sizes: (N,) everyone's samples, if they matter.
        task, optimizers: from `draw` on.
    """

    folder: Path
    config: DeviceConfig
    experiment: Experiment
    network: Network
    data: Dataset
    sizes: IntArray | None = None
    task: Task = field(init=False)
    optimizers: tuple[Optimizer, ...] = field(init=False)

    @classmethod
    def of_folder(cls, folder: Path, data: Path | None = None) -> Member:
        """The device of a folder.

        Args:
            data: the folder with data sets, for those that are dealt by number.

        Raises:
            InputError: something in the folder cannot be used.
        """
        config, experiment = read_device(folder), load_experiment(folder / "experiment.toml")
        network = load_network(experiment.network.spec)
        section = experiment.data
        if section.train:
            held = load_own_data(section, folder, known_summary(folder, section, network.names))
        else:
            held = load_data(section, data)
        return cls(folder, config, experiment, network, held)

    @property
    def has_own_data(self) -> bool:
        """Whether it has only data of its own."""
        return bool(self.experiment.data.train)

    @property
    def notes(self) -> list[str]:
        """What was done to the data, and whose tests are on."""
        return [*self.data.notes, *([OWN_TESTS] if self.has_own_data else [])]

    def holding(self) -> Holding | None:
        """What it tells before there is a task; None if nobody needs it.

        That is a summary, if no file says how all data are encoded, and its number of samples, if
        devices are weighted by it.
        """
        told_before = saved_holdings(self.folder).get(self.config.name)
        if told_before is not None or not self.has_own_data:
            return told_before
        text, samples = self._summary_to_tell(), self.samples_to_tell()
        needed = bool(text or samples)
        return Holding(device=self.config.name, summary=text, samples=samples) if needed else None

    def _summary_to_tell(self) -> str:
        """How its data are encoded, unless that is known, or they come ready from a function."""
        summary = self.data.summary
        return "" if self.experiment.data.encoding or summary is None else summary.to_json()

    def samples_to_tell(self) -> int:
        """How many training samples it has, if devices are weighed by that; else 0."""
        return len(self.data.train_targets) if self.experiment.data.weights == "size" else 0

    @property
    def knows_all(self) -> bool:
        """Whether it has gathered what all devices tell of their data."""
        return set(self.network.names) <= saved_holdings(self.folder).keys()

    def agree_on_data(self, node: Node, signer: Signer, timeout_s: float) -> None:
        """Agree with all devices how to encode data, and how much each has, if that matters."""
        own = self.holding()
        if own is not None:
            holders = Holders(node, self.network.names, own, signer, saved_holdings(self.folder))
            if not self.config.joins:
                holders.tell()
            holders.gather(timeout_s)
            save_holdings(holders, self.folder)
            self._learn_from(holders, own)
        if not self.config.joins:
            self.draw()

    def _learn_from(self, holders: Holders, own: Holding) -> None:
        """Encode its data by the summaries of all devices; the encoding is kept for the model."""
        if own.samples:
            self.sizes = holders.sizes()
        if own.summary:
            summary = holders.summary()
            write_text(self.folder / ENCODING, summary.to_json())
            self.data = load_own_data(self.experiment.data, self.folder, summary)

    def draw(self, optimizers: Sequence[Optimizer] | None = None) -> None:
        """Make the task, and draw the optimizers if they are not known."""
        one, seed, devices = self.experiment, self.config.seed, self.network.num_devices
        if self.has_own_data:
            self.task = own_task(one, seed, self.data, self.config.index, devices)
        else:
            self.task = dealt_task(one, seed, self.data, self.network)
        self.optimizers = tuple(optimizers or draw_optimizers_of(one, devices, seed))

    def moved(
        self, network: Network, optimizers: Sequence[Optimizer], sizes: IntArray | None = None
    ) -> Member:
        """The same device in another network, in which others may be; dealt data are dealt again.

        Args:
            optimizers: everyone's.
            sizes: (N,) everyone's samples, if they matter.
        """
        config = replace(
            self.config, index=network.names.index(self.config.name), names=network.names
        )
        liars = self.experiment.faults.liars
        if not isinstance(liars, int):
            liars = tuple(name for name in liars if name in network.names)
        faults = self.experiment.faults.model_copy(update={"liars": liars})
        experiment = self.experiment.model_copy(update={"faults": faults})
        found = replace(self, config=config, experiment=experiment, network=network, sizes=sizes)
        if self._is_drawn:
            found.task = replace(self.task, shards=found._shards())
            found.optimizers = tuple(optimizers)
        else:
            found.draw(optimizers)
        return found

    @property
    def _is_drawn(self) -> bool:
        return "task" in vars(self)

    def _shards(self) -> Shards:
        """The samples of each device, as far as this one knows them."""
        if self.has_own_data:
            held = own_shards(self.data, self.config.index, self.network.num_devices)
        else:
            held = dealt_shards(self.experiment, self.config.seed, self.data, self.network)
        return Shards.of(held)

    def known_plan(self) -> Plan | None:
        """The plan formed before or given by the experiment; None if one must be formed."""
        path = self.folder / PLAN
        if path.exists():
            return fitting_plan(read_plan(path), self.network)
        return given_plan(self.experiment, self.network)

    def described(self) -> Device:
        """What formation knows of it; samples are for neighbours only."""
        index, seed = self.config.index, self.config.seed
        return shared_devices(self.experiment, self.task, self.optimizers, seed, [index])[0]

    def measured(self) -> DeviceConstants | None:
        """Its constants, if it is one of those that measure."""
        index, seed = self.config.index, self.config.seed
        mine = index in measuring(self.network.num_devices)
        return measure_device(self.experiment, self.task, index, seed) if mine else None

    def write_model(self) -> None:
        """Write the model of the checkpoint for other programs."""
        path = self.folder / CHECKPOINT
        saved = read_model([path], self.config.index)
        model = deepcopy(self.task.model).eval()
        fill_model(model, saved.state, str(path))
        about = about_model(self.experiment, self.config.method, self.config.seed, saved)
        assert self.task.facts is not None, "tasks of experiments have them"
        write_model(
            model, self.task.facts, self.folder / MODEL, {**about, "device": self.config.name}
        )

    def job(self, plan: Plan) -> Job:
        """The job that it has a part in."""
        prepared = Prepared(
            self.config.seed, self.network, (plan,), self.task, self.optimizers, sizes=self.sizes
        )
        job = make_job(self.experiment, prepared, self.config.method)
        check_reach(self.config.method, job)
        return job
