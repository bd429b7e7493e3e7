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

import ssdfl
from ssdfl.clusters import Plan, fitting_plan, form_clusters, read_plan, write_plan
from ssdfl.engine import Job, State, load_state, save_state
from ssdfl.engine.threads import one_thread_each
from ssdfl.errors import InputError
from ssdfl.files import remove_temporaries, write_text
from ssdfl.graph import Network
from ssdfl.learning import Task, describe_devices, fork_generators, load_data
from ssdfl.locks import locked
from ssdfl.mesh.certificates import check_certificate, check_private
from ssdfl.mesh.device_engine import device_steps, initial_device_state
from ssdfl.mesh.digest import plan_digest
from ssdfl.mesh.evidence import Evidence
from ssdfl.mesh.facts_file import read_facts, write_facts
from ssdfl.mesh.flood import Flood, lacking
from ssdfl.mesh.folder import INITIAL, DeviceConfig, check_reach, read_device
from ssdfl.mesh.node import Node, StoppedError
from ssdfl.mesh.transport import Credentials, GrpcTransport
from ssdfl.preparation import (
    DESCRIBED_SAMPLES,
    Prepared,
    draw,
    given_plan,
    make_job,
    measure_device,
    measuring,
    settings_of,
)
from ssdfl.records import Record, RunFolder, load_experiment
from ssdfl.records.folder import CHECKPOINT
from ssdfl.records.record import OTHER_SCORES

FACTS = "facts.binpb"
GATHER_S = 300.0
SAVE_S = 1.0
STATUS_S = 0.5
MEET_S = 20.0
TELL_S = 3.0
SLACK_BYTES = 4 << 20
FACT_BYTES = 4 << 10

log = logging.getLogger(__name__)


class RunningDevice:
    """One device: it meets its neighbours, agrees on a plan with all, trains, and writes down how it goes."""

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        self.folder, self.config = folder, read_device(folder)
        self.experiment = load_experiment(folder / "experiment.toml")
        dataset = load_data(self.experiment.data, data)
        self.network, self.task, self.optimizers = draw(self.experiment, self.config.seed, dataset)
        _check_neighbours(self.config, self.network)
        credentials = _credentials(folder, self.config.name)
        config = self.config
        limit = _largest_message_bytes(self.task, len(config.names))
        transport = GrpcTransport(config.listen, config.neighbours, credentials, limit)
        self.node = Node(
            self.network,
            config.index,
            config.names,
            transport,
            config.patience_s,
            config.ping_deadline_s,
            Evidence(config.name, config.names, credentials),
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
            describe_devices(self.task, self.optimizers, samples=DESCRIBED_SAMPLES, seed=seed)[index],
            measure_device(self.experiment, self.task, index, seed) if mine else None,
        )
        known = flood.gather(GATHER_S)
        write_facts(flood.facts(), self.folder / FACTS)
        settings = settings_of(self.experiment, self.task, known.measured, known.data_distance)
        return form_clusters(self.network, known.devices, settings)

    def _tell_facts(self) -> None:
        """Go on telling the facts that the plan was formed from, to neighbours that still gather them."""
        path = self.folder / FACTS
        if path.exists():
            try:
                facts = read_facts(path)
            except InputError as error:
                log.error("%s Neighbours that still gather facts do not get them from here.", error)
            else:
                self.node.answers["gossip"] = partial(lacking, facts)

    def _job(self, plan: Plan) -> Job:
        prepared = Prepared(self.config.seed, self.network, (plan,), self.task, self.optimizers)
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
            return not self._without_plan() or self.node.is_left_behind(job, state.step)

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
        """Train without neighbours that have another plan; refuse if most of them do.

        This device counts among those that agree, so that one liar stops nobody with two other neighbours.
        """
        ours, neighbours = self.node.plan_digest, self.node.neighbours
        plans = {name: neighbours[name].plan_digest for name in neighbours.alive}
        others = {name: plan for name, plan in plans.items() if plan and plan != ours}
        agreeing = 1 + sum(plan == ours for plan in plans.values())
        for name, theirs in others.items():
            if len(others) < agreeing:
                log.error("%s has another plan (%s): training without it", name, theirs[:12])
                continue
            expected = f"{ours[:12]}, as {self.config.name} has"
            remedy = "Give all devices the same experiment, network and version of ssdfl."
            time.sleep(TELL_S)  # so that the other learns of it, too
            raise InputError(f"plan of {name}", theirs[:12], expected, remedy)

    def _train(self, job: Job, state: State) -> State:
        saved_s, score = time.monotonic(), math.nan
        RunFolder(self.folder).write_task([metric.score for metric in self.task.metrics])
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
            write_text(self.folder / "status.json", json.dumps(status) + "\n", durable=False)
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
        except BlockingIOError as error:
            expected = f"one that does not run yet ({error.strerror})"
            raise InputError("device", str(folder), expected, "End its process.") from None
        remove_temporaries(folder)
        yield


def _check_neighbours(config: DeviceConfig, network: Network) -> None:
    linked = [config.names[j] for j in network.neighbours(config.index)]
    if sorted(linked) != sorted(config.neighbours):
        expected = f"{', '.join(linked)}, as in network.json"
        remedy = "Write the folders again: ssdfl mesh init."
        raise InputError("neighbours in device.json", ", ".join(config.neighbours), expected, remedy)


def _largest_message_bytes(task: Task, num_devices: int) -> int:
    """What the largest honest message may have: four vectors of eight bytes a number, or everyone's facts."""
    return SLACK_BYTES + 4 * 8 * task.num_parameters + FACT_BYTES * num_devices


def _credentials(folder: Path, name: str) -> Credentials:
    try:
        files = [(folder / pem).read_bytes() for pem in ("key.pem", "certificate.pem", "authority.pem")]
    except OSError as error:
        expected = "key.pem, certificate.pem and authority.pem"
        raise InputError("credentials", str(folder), expected, f"({error.strerror})") from None
    check_private(folder / "key.pem")
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
