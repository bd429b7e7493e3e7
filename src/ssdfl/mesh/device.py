"""Run one device of a mesh from its folder, and continue after any interruption."""

from __future__ import annotations

import errno
import logging
import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from ssdfl.clusters import Plan
from ssdfl.engine import Job, State, save_state
from ssdfl.engine.checkpoint import load_moved_state, saved_step
from ssdfl.engine.threads import one_thread_each
from ssdfl.errors import InputError, NotYetError
from ssdfl.files import remove_temporaries
from ssdfl.locks import locked
from ssdfl.mesh.agreement import (
    FACTS_DIGEST,
    OtherPlanError,
    absent_devices,
    go_without,
    other_plans,
    refuse_other_plans,
    without_plan,
)
from ssdfl.mesh.course import Course
from ssdfl.mesh.device_engine import device_steps, initial_device_state
from ssdfl.mesh.editions import Edition
from ssdfl.mesh.evidence import Evidence
from ssdfl.mesh.first_plan import GATHER_S, FirstPlan
from ssdfl.mesh.folder import LOCK, read_device
from ssdfl.mesh.journal import Journal
from ssdfl.mesh.logs import logging_to
from ssdfl.mesh.member import Member
from ssdfl.mesh.membership import Membership, network_at_entry
from ssdfl.mesh.metrics import Reading, serving_metrics
from ssdfl.mesh.newcomer import entry_step, joined_state, renewed, usual_step
from ssdfl.mesh.node import Node, StoppedError
from ssdfl.mesh.open_files import allow_more_files
from ssdfl.mesh.routes import check_routes, routes_of
from ssdfl.mesh.set_up import check_neighbours, credentials_of, largest_message_bytes
from ssdfl.mesh.signing import Signer
from ssdfl.mesh.transport import GrpcTransport
from ssdfl.records import RunFolder
from ssdfl.records.folder import CHECKPOINT

SAVE_S = 1.0
MEET_S = 20.0
TELL_S = 3.0
LOCK_S = 0.5
"""How long to try: a check whether a device runs holds its lock for an instant."""
PASSING = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EIO,
    errno.EAGAIN,
}
"""What may be over when the device is started again."""

log = logging.getLogger(__name__)


class RunningDevice:
    """One device: it meets its neighbours, agrees on a plan with all, trains, and keeps a journal.

    Attributes:
        member: the device in the present network.
    """

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        self.folder, self.config = folder, read_device(folder)
        self.member = self._base = Member.of_folder(folder, data)
        if not self._base.has_own_data and not self.config.joins:
            self._base.draw()
        config = self.config
        credentials = credentials_of(folder, config.name)
        self.signer = Signer(credentials)
        text = (folder / "network.json").read_text(encoding="utf-8")
        membership = Membership(folder, credentials.authority, text)
        network = network_at_entry(config, self._base.network, membership)
        check_neighbours(config, network)
        limit = largest_message_bytes(self._base)
        routes = routes_of(network, config.name, config.listen, config.neighbours)
        check_routes(config.name, routes)
        self.transport = GrpcTransport(config.listen, config.neighbours, credentials, limit, routes)
        self.node = Node(
            network,
            config.index,
            config.names,
            self.transport,
            config.patience_s,
            config.ping_deadline_s,
            Evidence(config.name, config.names, self.signer),
            adaptive=config.adaptive,
        )
        self.first_plan = FirstPlan(folder, self._base, self.node, self.signer)
        self.course = Course(folder, self._base, membership, self.node, self._steps_per_cycle)
        self.journal: Journal | None = None

    def stop(self) -> None:
        """End at once; an unfinished step is repeated when the device continues."""
        self.node.stop()

    def reading(self) -> Reading:
        """How it is doing just now."""
        status, neighbours = self.node.status(), self.node.neighbours
        last_step = self.member.experiment.cycles * self._steps_per_cycle
        return Reading(
            device=self.config.name,
            step=status.step,
            last_step=last_step,
            cycle=status.step // self._steps_per_cycle,
            score=math.nan if self.journal is None else self.journal.score,
            neighbours=len(neighbours.names),
            neighbours_alive=len(neighbours.alive),
            received_messages_total=self.node.received,
            received_bytes_total=self.node.received_bytes,
            bad_messages_total=sum(self.node.bad_messages.values()),
            refused_calls_total=self._refused,
            skipped_steps_total=self.node.skipped,
            waited_seconds_total=self.node.waited_s,
            done=status.done,
        )

    @property
    def _steps_per_cycle(self) -> int:
        schedule = self.member.experiment.schedule
        return schedule.tau_a + schedule.tau_r

    def run(self) -> bool:
        """Do the remaining work; returns whether the device finished."""
        self.transport.start(self.node.handle)
        try:
            self.node.neighbours.start()
            self.course.watch()
            if self._base.has_own_data:
                self._base.agree_on_data(self.node, self.signer, GATHER_S)
            return self._take_part()
        except StoppedError:
            return False
        finally:
            self.course.close()
            self.node.close()

    def _entered(self) -> tuple[Edition, Job | None, State | None]:
        """The edition in which the device begins or continues, its job there, and its state.

        The job is None if the device has left the mesh. If most neighbours have formed another
        plan, their facts are gathered once more.
        """
        for is_last in (False, True):
            plan = self._plan()
            self.course.begin(plan)
            edition = self._edition_at_entry()
            self._announce()
            if not edition.has(self.config.name):
                return edition, None, None
            job, waits = self._enter(edition), not self._joins_now
            state = self._state(job, edition)
            self.node.announce(state.step)
            try:
                if waits:  # no device may wait for one that joins
                    self._wait_for_plans(job, state, plan)
                self._compare_plans()
                break
            except OtherPlanError as error:
                if is_last or not _may_form_again(plan, state):
                    raise
                log.warning("%s Gathering facts again.", error)
                self.first_plan.forget()
        return edition, job, state

    def _plan(self) -> Plan:
        """The plan at the start."""
        return self.first_plan.known() or self.first_plan.formed()

    def _take_part(self) -> bool:
        """Train in one edition of the mesh after the other; whether the device has finished."""
        edition, job, state = self._entered()
        while job is not None and state is not None:
            with one_thread_each():
                state = self._train(job, state, edition)
            following = None if self.node.stopped else self.course.following(edition, state.step)
            if following is None:
                self.node.linger()
                return state.step >= job.last_step
            edition = following
            job, state = self._changed(edition, state)
        self._leave(edition, state)
        return True

    def _changed(self, edition: Edition, state: State) -> tuple[Job | None, State]:
        """The job and state after a change; no job if the device is not in the mesh any more."""
        if not edition.has(self.config.name):
            return None, state
        job = self._enter(edition)
        return job, renewed(state, job)

    def _announce(self) -> None:
        """Let neighbours know where the device will be, before they learn that it has a plan."""
        checkpoint = self.folder / CHECKPOINT
        last_step = self.member.experiment.cycles * self._steps_per_cycle
        if checkpoint.exists():
            self.node.stay_out(saved_step(checkpoint), last_step)
        elif self.config.joins:  # no device waits for it before it is there
            self.node.stay_out(0, last_step)
            self.node.outbox.jump(last_step)

    def _edition_at_entry(self) -> Edition:
        """The edition in which the device begins or continues."""
        checkpoint = self.folder / CHECKPOINT
        if checkpoint.exists():
            return self.course.at(saved_step(checkpoint))
        if not self.config.joins:
            return self.course.at(0)
        begins = self.course.first_with(self.config.name)
        usual = self.course.at(usual_step(self.node, GATHER_S))
        return max(begins, usual, key=lambda edition: edition.version)

    def _enter(self, edition: Edition) -> Job:
        """Take part in an edition of the mesh from now on."""
        if edition.version:
            self.member = self._base.moved(edition.network, edition.optimizers, edition.sizes)
        self.node.adopt(edition.network, edition.digest)
        if edition.version:
            clusters = edition.plan.clusters
            log.info(
                "membership %d: %d devices in %d clusters",
                edition.version,
                len(edition.network.names),
                len(clusters),
            )
        return self.member.job(edition.plan)

    def _leave(self, edition: Edition, state: State | None) -> None:
        """The device is no longer in the mesh: its neighbours get what they still need of it."""
        log.info("no longer in the mesh since change %d: ended", edition.version)
        if state is None:
            return
        self.node.finish(state.step)
        if self.journal is not None:
            self.journal.left = True
            self.journal.tell(state, self._refused, always=True)
        self._write_model()
        self.node.linger(state.step)

    def _state(self, job: Job, edition: Edition) -> State:
        """Where the device stopped, or the start; a newcomer takes its neighbours' parameters."""
        checkpoint, index = self.folder / CHECKPOINT, self.node.index
        if checkpoint.exists():
            return load_moved_state(checkpoint, job, index)
        if not self.config.joins:
            return initial_device_state(job, index)
        step = entry_step(self.node, edition.cycle * job.steps_per_cycle)
        return joined_state(job, self.node, index, min(step, job.last_step))

    @property
    def _joins_now(self) -> bool:
        """Whether the device joins a mesh that runs, and has not done so before."""
        return bool(self.config.joins) and not (self.folder / CHECKPOINT).exists()

    def _wait_for_plans(self, job: Job, state: State, plan: Plan) -> None:
        """Wait for neighbours to have a plan, all of them at the start.

        A device that comes back also waits for others that may be coming back, unless the mesh has
        continued without it. No device waits for those that the plan was formed without.
        """
        begins = not self._has_agreed()
        limit_s = GATHER_S if begins else min(MEET_S, self.config.patience_s)
        absent = absent_devices(plan)

        def need_not_wait() -> bool:
            missing = without_plan(self.node, absent)
            self.node.neighbours.ask_soon(missing)
            return not missing or self.node.is_left_behind(job, state.step)

        met = self.node.neighbours.wait(need_not_wait, limit_s)
        if self.node.stopped:
            raise StoppedError
        if begins and not met:
            go_without(self.node, limit_s)

    def _compare_plans(self) -> None:
        """Train without neighbours that have another plan; not at all if most have.

        Raises:
            OtherPlanError: most have.
        """
        others = other_plans(self.node)
        if others:
            self.node.runtime.sleep(TELL_S)  # so that they learn of it, too
        refuse_other_plans(self.node, others)

    def _has_agreed(self) -> bool:
        """Whether it has agreed with its neighbours before: a checkpoint exists only after that."""
        return (self.folder / CHECKPOINT).exists()

    def _train(self, job: Job, state: State, edition: Edition) -> State:
        """Take steps until the last, or until the mesh has another edition."""
        scores = [metric.score for metric in job.task.metrics]
        if self.journal is None:  # else it was saved at the end of the edition before
            RunFolder(self.folder).write_task(scores, self.member.notes)
            self._save(state, job)
        saved = state
        journal = self.journal = Journal(self.folder, self.node, scores, job, self.journal)
        saved_s = self.node.runtime.now()

        def is_due(step: int) -> bool:
            return self.course.following(edition, step) is not None

        for after, record in device_steps(job, self.node, state, is_due):
            state = after
            if record is not None:
                journal.record(record, state)
                self.course.part(edition)
            if self.node.runtime.now() - saved_s > SAVE_S:
                self._save(state, job)
                saved, saved_s = state, self.node.runtime.now()
            journal.tell(state, self._refused)
        if state is not saved:
            self._save(state, job)
        journal.tell(state, self._refused, always=True)
        if state.step >= job.last_step:
            self._write_model()
        return state

    def _write_model(self) -> None:
        try:
            self.member.write_model()
        except (OSError, SafetensorError) as error:
            log.error("model not written: %s; ssdfl export takes it out of the checkpoint", error)

    @property
    def _refused(self) -> int:
        """How many calls of strangers were refused."""
        return sum(self.transport.refused.values())

    def _save(self, state: State, job: Job) -> None:
        """Write a checkpoint; on a full disk training continues with the one before."""
        try:
            save_state(state, job, self.folder / CHECKPOINT, np.array([self.node.index]))
        except OSError as error:
            log.error(
                "checkpoint not written: %s; training continues, the one before is kept", error
            )


def _may_form_again(plan: Plan, state: State) -> bool:
    """Whether a plan was formed from what devices told, and nobody has trained with it."""
    return state.step == 0 and FACTS_DIGEST in plan.settings


def run_device(folder: Path, data: Path | None = None, metrics_port: int | None = None) -> bool:
    """Run the device of a folder until it finishes or is asked to stop; whether it finished.

    Args:
        data: the folder with data sets, for those dealt by number.
        metrics_port: where to serve metrics on loopback, if anywhere.

    Raises:
        InputError: something in the folder cannot be used.
        NotYetError: neighbours are missing or have another plan, or there is no room on the disk.
    """
    allow_more_files()
    read_device(folder)  # before anything is written into a folder that may be another
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it has a line for every stranger
    with logging_to(folder):
        try:
            return _run(folder, data, metrics_port)
        except InputError as error:
            log.error("%s", error)
            raise
        except OSError as error:
            log.error("%s", error)
            if error.errno in PASSING:
                what = str(error.filename or folder)
                raise NotYetError(what, str(error), "room", "Make some.") from error
            raise


def _run(folder: Path, data: Path | None, metrics_port: int | None) -> bool:
    with _alone(folder):
        device = RunningDevice(folder, data)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: device.stop())
        with serving_metrics(metrics_port, device.reading):
            return device.run()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a folder that another process runs; the lock ends with its process in any case."""
    with ExitStack() as stack:
        deadline = time.monotonic() + LOCK_S
        while (holder := _holder_of(stack, folder / LOCK)) and time.monotonic() < deadline:
            time.sleep(LOCK_S / 10)
        if holder:
            expected = f"one that does not run yet ({holder})"
            raise InputError("device", str(folder), expected, "End its process.")
        remove_temporaries(folder)
        yield


def _holder_of(stack: ExitStack, lock: Path) -> str:
    """Who holds a lock; nobody else if it was free, and is held now."""
    try:
        stack.enter_context(locked(lock))
    except BlockingIOError as error:
        return str(error.strerror)
    return ""
