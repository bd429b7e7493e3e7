"""Run one device of a mesh from its folder, and go on after anything that stopped it."""

from __future__ import annotations

import json
import logging
import math
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import ssdfl
from ssdfl.arrays import IntArray
from ssdfl.clusters import Plan, fitting_plan, form_clusters, read_plan, write_plan
from ssdfl.engine import Job, State, load_state, save_state
from ssdfl.engine.threads import one_thread_each
from ssdfl.errors import InputError
from ssdfl.files import atomic_path, write_text
from ssdfl.graph import Network, load_network
from ssdfl.learning import Dataset, fork_generators, load_data, load_own_data, read_summary
from ssdfl.locks import locked
from ssdfl.mesh.certificates import check_certificate
from ssdfl.mesh.device_engine import device_steps, initial_device_state
from ssdfl.mesh.digest import plan_digest
from ssdfl.mesh.flood import Flood, lacking
from ssdfl.mesh.folder import INITIAL, DeviceConfig, check_reach, read_device
from ssdfl.mesh.holdings import Holders, save_holdings, saved_holdings
from ssdfl.mesh.mesh_pb2 import Facts, Holding
from ssdfl.mesh.node import Node, StoppedError
from ssdfl.mesh.transport import Credentials, GrpcTransport
from ssdfl.preparation import (
    Prepared,
    draw,
    draw_optimizers_of,
    given_plan,
    make_job,
    measure_device,
    measuring,
    own_task,
    settings_of,
    shared_devices,
)
from ssdfl.records import Record, RunFolder, load_experiment
from ssdfl.records.config import DataSection
from ssdfl.records.folder import CHECKPOINT
from ssdfl.records.record import OTHER_SCORES
from ssdfl.records.scores import OWN_TESTS

FACTS = "facts.binpb"
GATHER_S = 300.0
SAVE_S = 1.0
STATUS_S = 0.5
MEET_S = 20.0
TELL_S = 3.0

log = logging.getLogger(__name__)


class RunningDevice:
    """One device: it meets its neighbours, agrees on a plan with all, trains, and writes down how it goes."""

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        self.folder, self.config = folder, read_device(folder)
        self.experiment = load_experiment(folder / "experiment.toml")
        self.network = load_network(self.experiment.network.spec)
        self._data = _own_data(self.experiment.data, folder, data)
        self._sizes: IntArray | None = None
        if not self.experiment.data.train:
            self._draw()
        _check_neighbours(self.config, self.network)
        credentials = _credentials(folder, self.config.name)
        transport = GrpcTransport(self.config.listen, self.config.neighbours, credentials)
        config = self.config
        self.node = Node(
            self.network, config.index, config.names, transport, config.patience_s, config.ping_deadline_s
        )
        self.transport = transport
        self._status_s = 0.0
        self._goes_on = (folder / "metrics.jsonl").exists()  # its last line may have been cut short

    def stop(self) -> None:
        """End at once; a step under way is done again when the device goes on."""
        self.node.stop()

    def run(self) -> bool:
        """Do all that is left; whether it was finished."""
        self.transport.start(self.node.handle)
        try:
            self.node.neighbours.start()
            if self.experiment.data.train:
                self._agree_on_data()
                self._draw()
            plan = self._plan()
            job = self._job(plan)
            state = self._state(job)
            self.node.announce(state.step)
            self.node.plan_digest = _digest(self.folder, plan)
            self._agree(job, state)
            with one_thread_each(), fork_generators(self.task.device):
                state = self._train(job, state)
            self.node.linger()
            return state.step >= job.last_step
        except StoppedError:
            return False
        finally:
            self.node.close()

    def _draw(self) -> None:
        """Make the task, and draw the optimizers."""
        one, seed, devices = self.experiment, self.config.seed, self.network.num_devices
        if one.data.train:
            self.task = own_task(one, seed, self._data, self.config.index, devices)
            self.optimizers = draw_optimizers_of(one, devices, seed)
        else:
            _, self.task, self.optimizers = draw(one, seed, self._data, self.network)

    def _agree_on_data(self) -> None:
        """Learn from all devices how to encode one's own data, and how much others have, if that matters."""
        config, summary = self.experiment.data, self._data.summary
        by_size, unknown = config.weights == "size", not config.encoding and summary is not None
        if not by_size and not unknown:
            return
        own = Holding(
            device=self.config.name,
            summary=summary.to_json() if unknown and summary else "",
            samples=len(self._data.train_targets) if by_size else 0,
        )
        holders = Holders(self.node, saved_holdings(self.folder))
        holders.gather(lambda: own, GATHER_S)
        save_holdings(holders, self.folder)
        self._sizes = holders.sizes() if by_size else None
        if unknown:
            self._data = load_own_data(config, self.folder, holders.summary())

    def _plan(self) -> Plan:
        path = self.folder / "plan.json"
        if path.exists():
            self._tell_facts()
            return fitting_plan(read_plan(path), self.network)
        plan = given_plan(self.experiment, self.network) or self._form()
        write_plan(plan, path)
        return plan

    def _form(self) -> Plan:
        """The plan that every device forms from the same facts."""
        index, seed = self.config.index, self.config.seed
        mine = index in measuring(self.network.num_devices)
        flood = Flood(
            self.node,
            shared_devices(self.experiment, self.task, self.optimizers, seed, [index])[0],
            measure_device(self.experiment, self.task, index, seed) if mine else None,
        )
        known = flood.gather(GATHER_S)
        with atomic_path(self.folder / FACTS) as temporary:
            temporary.write_bytes(flood.facts().SerializeToString())
        settings = settings_of(self.experiment, self.task, known.measured, known.data_distance)
        return form_clusters(self.network, known.devices, settings)

    def _tell_facts(self) -> None:
        """Go on telling the facts that the plan was formed from, to neighbours that still gather them."""
        path = self.folder / FACTS
        if path.exists():
            try:
                facts = Facts.FromString(path.read_bytes())
            except DecodeError:
                log.error("%s is damaged: neighbours that still gather facts are not told them", path)
            else:
                self.node.answers["gossip"] = partial(lacking, facts)

    def _job(self, plan: Plan) -> Job:
        prepared = Prepared(
            self.config.seed, self.network, (plan,), self.task, self.optimizers, sizes=self._sizes
        )
        job = make_job(self.experiment, prepared, self.config.method)
        check_reach(self.config.method, job)
        return job

    def _state(self, job: Job) -> State:
        """Where the device stopped, or the start."""
        checkpoint, index = self.folder / CHECKPOINT, self.config.index
        if not checkpoint.exists():
            return initial_device_state(job, index)
        return load_state(checkpoint, job, np.array([index]))

    def _agree(self, job: Job, state: State) -> None:
        """Wait for neighbours to have a plan, all of them at the start, and refuse one that differs.

        A device that comes back also waits for those that may be coming back, unless others have gone on
        without it.
        """
        begins = state.step == 0
        limit_s = GATHER_S if begins else min(MEET_S, self.config.patience_s)

        def need_not_wait() -> bool:
            return not self._without_plan() or self.node.furthest_ahead(job, state.step) > 0

        met = self.node.neighbours.wait(need_not_wait, limit_s)
        if self.node.stopped:
            raise StoppedError
        if begins and not met:
            missing = self._without_plan()[0]
            raise InputError("neighbour", missing, f"a plan within {GATHER_S:g} s", "Start it.")
        self._check_plans()

    def _without_plan(self) -> list[str]:
        """The neighbours that are not there, or have no plan yet."""
        known = {name: self.node.neighbours[name] for name in self.node.neighbours.names}
        return [name for name, one in known.items() if not (one.alive and one.plan_digest)]

    def _check_plans(self) -> None:
        """Refuse to train beside a neighbour with another plan."""
        ours = self.node.plan_digest
        for name in self.node.neighbours.alive:
            theirs = self.node.neighbours[name].plan_digest
            if theirs and theirs != ours:
                expected = f"{ours[:12]}, as {self.config.name} has"
                remedy = "Give all devices the same experiment, network and version of ssdfl."
                time.sleep(TELL_S)  # so that the other learns of it, too
                raise InputError(f"plan of {name}", theirs[:12], expected, remedy)

    def _train(self, job: Job, state: State) -> State:
        saved_s, score = time.monotonic(), math.nan
        own_tests = [OWN_TESTS] if self.experiment.data.train else []
        scores = [metric.score for metric in self.task.metrics]
        RunFolder(self.folder).write_task(scores, [*self._data.notes, *own_tests])
        self._save(state, job)
        for after, record in device_steps(job, self.node, state):
            state = after
            if record is not None:
                score = record.score
                self._record(record, state)
            if time.monotonic() - saved_s > SAVE_S:
                self._save(state, job)
                saved_s = time.monotonic()
            self._tell(state, score, job.message_bytes)
        self._save(state, job)
        self._tell(state, score, job.message_bytes, always=True)
        return state

    def _save(self, state: State, job: Job) -> None:
        """Write a checkpoint; on a full disk training continues with the one before."""
        try:
            save_state(state, job, self.folder / CHECKPOINT, np.array([self.config.index]))
        except OSError as error:
            log.error("checkpoint not written: %s; training goes on, the one before is kept", error)

    def _record(self, record: Record, state: State) -> None:
        row = {
            "cycle": record.cycle,
            **{
                name: getattr(record, name) for name in ("score", *OTHER_SCORES[: len(self.task.metrics) - 1])
            },
            "loss": record.loss,
            "effective_gradient": record.effective_gradient,
            "received": record.transmissions,
            "received_bytes": self.node.received_bytes,
            "time_s": record.time_s,
            "real_s": state.real_s,
            "neighbours": len(self.node.neighbours.alive),
            "bad_messages": sum(self.node.bad_messages.values()),
        }
        try:
            with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as lines:
                lines.write("\n" * self._goes_on + json.dumps(row) + "\n")
            self._goes_on = False
        except OSError as error:
            log.error("metrics not written: %s", error)

    def _tell(self, state: State, score: float, message_bytes: int, always: bool = False) -> None:
        """Write where the device is, for whoever watches its host."""
        if not always and time.monotonic() - self._status_s < STATUS_S:
            return
        self._status_s = time.monotonic()
        alive = self.node.neighbours.alive
        status: dict[str, Any] = {
            "device": self.config.name,
            "step": state.step,
            "score": None if math.isnan(score) else score,
            "shown_score": None if math.isnan(score) else self.task.goal_score.shown(score),
            "neighbours": f"{len(alive)}/{len(self.node.neighbours.names)}",
            "received": state.transmissions,
            "message_bytes": message_bytes,
            "real_s": state.real_s,
            "refused": sum(self.transport.refused.values()),
        }
        try:
            write_text(self.folder / "status.json", json.dumps(status) + "\n")
        except OSError as error:
            log.error("status not written: %s", error)


def run_device(folder: Path, data: Path | None = None) -> bool:
    """Run the device of a folder until it has finished or is asked to stop; whether it has finished.

    Raises:
        InputError: something in the folder cannot be used, or neighbours have another plan.
    """
    read_device(folder)  # before anything is written into a folder that may be another
    handler = logging.FileHandler(folder / "device.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger("ssdfl")
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with _alone(folder):
            device = RunningDevice(folder, data)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: device.stop())
            return device.run()
    except InputError as error:
        log.error("%s", error)
        raise
    finally:
        root.removeHandler(handler)
        handler.close()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a folder that another process runs; the lock ends with its process, however that ends."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / "device.lock"))
        except BlockingIOError:
            expected = "one that does not run yet"
            raise InputError("device", str(folder), expected, "End its process.") from None
        yield


def _own_data(config: DataSection, folder: Path, data: Path | None) -> Dataset:
    """A device's own data, or all that are dealt by number."""
    if not config.train:
        return load_data(config, data)
    return load_own_data(config, folder, read_summary(Path(config.encoding)) if config.encoding else None)


def _check_neighbours(config: DeviceConfig, network: Network) -> None:
    linked = [config.names[j] for j in network.neighbours(config.index)]
    if sorted(linked) != sorted(config.neighbours):
        expected = f"{', '.join(linked)}, as in network.json"
        remedy = "Write the folders again: ssdfl mesh init."
        raise InputError("neighbours in device.json", ", ".join(config.neighbours), expected, remedy)


def _credentials(folder: Path, name: str) -> Credentials:
    try:
        files = [(folder / pem).read_bytes() for pem in ("key.pem", "certificate.pem", "authority.pem")]
    except OSError as error:
        expected = "key.pem, certificate.pem and authority.pem"
        raise InputError("credentials", str(folder), expected, f"({error.strerror})") from None
    check_certificate(name, *files)
    return Credentials(*files)


def _digest(folder: Path, plan: Plan) -> str:
    """Of everything that must be the same on all devices."""
    experiment, network = (
        (folder / name).read_text(encoding="utf-8") for name in ("experiment.toml", "network.json")
    )
    initial = folder / INITIAL
    parameters = sha256(initial.read_bytes()).hexdigest() if initial.exists() else ""
    return plan_digest(experiment + parameters, network, plan.clusters, ssdfl.__version__)
