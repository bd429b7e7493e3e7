"""One device among its neighbours: what it offers them, what it asks of them, who is there."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
from torch import Tensor

from ssdfl.engine import Job
from ssdfl.graph import Network
from ssdfl.mesh.absence import Absence
from ssdfl.mesh.evidence import Evidence
from ssdfl.mesh.mesh_pb2 import Parameters, Pull, Request, Response, Status, Wait
from ssdfl.mesh.neighbours import PING_DEADLINE_S, Neighbours
from ssdfl.mesh.outbox import POLL_S, Outbox
from ssdfl.mesh.patience import Patience
from ssdfl.mesh.routes import DIRECT, Routes
from ssdfl.mesh.runtime import REAL, Runtime
from ssdfl.mesh.shelf import Shelf
from ssdfl.mesh.transport import Answer, Transport, UnreachableError, UnreadableError, refusal
from ssdfl.mesh.wire import BadMessageError, pack, unpack
from ssdfl.methods import Message, Moment

PULL_DEADLINE_S = POLL_S + 4.0
RETRY_S = 0.05
LINGER_S = 60.0
LATE_S = 0.1
"""After a device has begun a step, until it looks what keeps a neighbour's message."""
LOOK_S = 1.0
"""How long a device that was away waits to hear from all its neighbours where they are."""
SPARE = 8
"""Neighbours that may join before pulls queue up; threads are started only when they are needed."""
GATHERED = frozenset({"gossip", "samples", "holdings", "changes"})
"""Questions of neighbours that gather facts; a device that has none to send takes no part now."""

FOR_FORMER = frozenset({"ping", "changes"})
"""Questions of a neighbour that is one no longer: so it learns why."""

log = logging.getLogger(__name__)


class StoppedError(Exception):
    """The device was asked to stop."""


class Node:
    """One device of a network, and later of a job.

    Args:
        index: which device of the network it is.
        names: the names of all devices, by index.
        patience_s: how long to wait for a neighbour that answers pings but has not reached a step.
            Less after an unsuccessful wait (`Patience`).
        ping_deadline_s: how soon neighbours must answer pings.
        evidence: what devices have signed. Without it this device never skips steps.
        runtime: its threads and clock.
        adaptive: continue at once without a neighbour that is silent for longer than usual, and
            take part where others are after having been away; else wait by fixed times, so that a
            busy host changes no result.

    Attributes:
        name: this device's.
        absence: whether this device has been away itself.
        skipped: steps that this process has not taken, since others had gone on without it.
        waited_s: for messages of neighbours when all else of a step was done.
        received: messages mixed, over all processes of this device. They are counted where they
            arrive: a sender that has finished does not wait until its last one is fetched.
        received_bytes: what this process took from the transport for them.
        fitting_digests: of plans before and after changes of membership, which neighbours may have.
        membership: the version of the last change of membership that this device knows.
    """

    def __init__(
        self,
        network: Network,
        index: int,
        names: tuple[str, ...],
        transport: Transport,
        patience_s: float = 60.0,
        ping_deadline_s: float = PING_DEADLINE_S,
        evidence: Evidence | None = None,
        runtime: Runtime = REAL,
        adaptive: bool = False,
    ) -> None:
        self.network, self.index, self.names, self.transport = network, index, names, transport
        self.name = names[index]
        self.patience_s, self.evidence, self.runtime = patience_s, evidence, runtime
        self._patience_with = Patience(patience_s, runtime.now)
        self._adaptive, self.absence = adaptive, Absence(adaptive, runtime)
        self._without: dict[str, int] = {}
        self.skipped, self.waited_s = 0, 0.0
        self.outbox, self.bad_messages = Outbox(runtime), Counter[str]()
        self.received, self.received_bytes = 0, 0
        self._counting = threading.Lock()
        self.plan_digest = ""
        self.fitting_digests: set[str] = set()
        self.membership = 0
        self._step, self._began, self._done = 0, False, False
        self._stopping = runtime.event()
        self._places = {name: place for place, name in enumerate(names)}
        linked = [names[j] for j in network.neighbours(index)]
        self.neighbours = Neighbours(
            linked,
            transport,
            lambda: self.plan_digest,
            ping_deadline_s,
            self.bad_messages,
            evidence,
            runtime,
            adaptive,
        )
        # Of each neighbour: a pull, what it waits for, and what is asked for ahead of it.
        self._pulls = runtime.pool(max(1, 3 * (len(linked) + SPARE)), "pull")
        self._ahead: dict[tuple[str, int], Future[Response | None]] = {}
        self.shelf = Shelf(runtime)
        self._former: set[str] = set()
        self.answers: dict[str, Callable[[Request], Answer]] = {
            "ping": lambda _: Response(status=self.status()),
            "pull": lambda request: self.outbox.answer(request.pull.step, lambda: self._step),
            "model": self.shelf.answer,
        }

    def status(self) -> Status:
        """What this device tells its neighbours about itself."""
        status = Status(
            step=self._step,
            first_step=self.outbox.first_step,
            done=self._done,
            plan_digest=self.plan_digest,
            membership=self.membership,
        )
        if self.evidence is not None:
            own = self.evidence.own(status.step, self.plan_digest)
            status.witnesses.extend([own, *self.evidence.passed_on()])
        return status

    def adopt(self, network: Network, plan_digest: str) -> None:
        """Continue in a network that has changed, with another plan; this device is in it.

        Neighbours that it has no longer are answered until they are parted with. What others were
        asked for ahead stays asked for.
        """
        self.network, self.names = network, network.names
        self.index = network.names.index(self.name)
        self._places = {name: place for place, name in enumerate(network.names)}
        self.plan_digest = plan_digest
        self.fit(plan_digest)
        if self.evidence is not None:
            self.evidence.know(network.names)

    @property
    def linked(self) -> tuple[str, ...]:
        """The neighbours in the present network."""
        return tuple(self.names[j] for j in self.network.neighbours(self.index))

    def fit(self, plan_digest: str) -> None:
        """Neighbours may have a plan, too: it is from before or after a change of membership."""
        self.fitting_digests.add(plan_digest)
        if self.evidence is not None:
            self.evidence.fitting = frozenset(self.fitting_digests)

    def has_other_plan(self, name: str) -> bool:
        """Whether a neighbour has another plan, not one from before or after a change."""
        neighbour = self.neighbours[name]
        fitting = neighbour.plan_digest in ("", self.plan_digest, *self.fitting_digests)
        return not fitting and neighbour.membership <= self.membership

    def part(self, names: Iterable[str]) -> None:
        """Stop talking to some neighbours; they may still ask for changes of membership."""
        self._former |= set(names)
        self.neighbours.part(names)
        self.transport.part(names)

    def meet(self, neighbours: Mapping[str, str], routes: Routes = DIRECT) -> None:
        """Talk to more neighbours, given their addresses and who relays for whom."""
        self._former -= neighbours.keys()
        self.transport.meet(neighbours, routes)
        self.neighbours.meet(neighbours)

    def announce(self, step: int) -> None:
        """This device takes part from this step on; from a later one if it has been away."""
        self._step = step
        self.outbox.jump(max(step, self.neighbours.last_step) if self.absence.is_on else step)

    def stay_out(self, step: int, last_step: int) -> None:
        """Let nobody wait for this device, which is at a step, until it knows where others are."""
        self.neighbours.last_step = last_step
        self.absence.begin()
        self.announce(step)

    def take_part(self, step: int) -> None:
        """This device has caught up and takes part from this step on."""
        self.absence.over()
        self.announce(step)

    def look_around(self) -> None:
        """Wait until all neighbours have said where they are, but not for long."""
        since = self.runtime.now()

        def has_heard_all() -> bool:
            silent = [one for one in self.linked if self.neighbours[one].heard_s < since]
            for name in silent:
                self.neighbours.hurry(name)
            return not silent

        self.neighbours.wait(has_heard_all, LOOK_S)

    def handle(self, name: str, request: Request) -> Answer:
        """Answer a neighbour."""
        self.neighbours.called(name)
        kind = request.WhichOneof("kind")
        if name in self._former and kind not in FOR_FORMER:
            return refusal(f"{name} is no neighbour since change {self.membership} of the mesh")
        if kind in self.answers:
            return self.answers[kind](request)
        if kind in GATHERED:  # this device has not come so far, or has passed it
            return Response(wait=Wait())
        self.bad_messages[f"{name}: {kind or 'empty request'}"] += 1
        return refusal(f"unknown request {kind}")

    def begin(self, step: int, last_step: int, received: int) -> None:
        """A job begins or continues at a step; with the number of messages received before.

        After a change of membership, messages of the last step stay on offer.
        """
        self.neighbours.last_step = last_step
        self.received = received
        self.absence.watch()
        if not self._began or step != self._step + 1:
            self.announce(step)
        self._began = True

    def reach(self, step: int) -> None:
        """The device is at a step."""
        self._step = step

    def publish(self, at: Moment, message: Message | None) -> None:
        """Offer neighbours the message of a step, one row; None if nobody needs one."""
        packed: Parameters | None = None if message is None else pack(message, at)
        self.outbox.publish(at.t, packed, self._needed_from(at.t))

    def ask(
        self, at: Moment, devices: Iterable[int], own: Message
    ) -> dict[int, Future[Tensor | None]]:
        """Start to pull neighbours' messages of a step; a future is None if one is missing.

        Args:
            own: this device's message of the step, whose form theirs must match.
        """
        theirs = {j: replace(at, devices=np.array([j])) for j in devices}
        self._ahead = {key: answer for key, answer in self._ahead.items() if key[1] >= at.t}
        return {
            j: self._pulls.submit(
                self._pull_or_go, self.names[j], there, own, self._asked(self.names[j], at.t)
            )
            for j, there in theirs.items()
        }

    def ask_ahead(self, step: int, devices: Iterable[int]) -> None:
        """Ask neighbours early for their messages of a later step, to be sent once they exist.

        Otherwise every message would wait for its request to travel. `ask` repeats a request that
        was not answered.
        """
        for key in [(self.names[j], step) for j in devices]:
            if key not in self._ahead and not self._patience_with.has_waited_in_vain(key[0]):
                self._ahead[key] = self._pulls.submit(self._ask_early, *key)

    def _asked(self, name: str, step: int) -> Future[Response | None]:
        """The answer that was asked for ahead of a step; none if it was not."""
        unasked: Future[Response | None] = Future()
        unasked.set_result(None)
        return self._ahead.pop((name, step), unasked)

    def _ask_early(self, name: str, step: int) -> Response | None:
        """A neighbour's answer about a step to come, if it gives one."""
        deadline = self.runtime.now() + self.patience_s
        try:
            while self._there(name) and self.runtime.now() < deadline:
                answer = self._ask_once(name, step, deadline - self.runtime.now())
                if answer.WhichOneof("kind") == "parameters":
                    return answer
                if answer.WhichOneof("kind") != "wait":
                    return None
                self.runtime.sleep(RETRY_S)
        except UnreachableError:
            log.debug("%s cannot be asked ahead for step %d", name, step)
        return None

    def finish(self, last_step: int) -> None:
        """All steps are done."""
        self._step, self._done = last_step, True
        self.outbox.publish(last_step, None, self._needed_from(last_step))

    def linger(self, until: int | None = None) -> None:
        """Answer neighbours until they have finished, are gone, or come no further than they were.

        Args:
            until: the step from which neighbours no longer need this device, if not the last.
        """
        furthest: dict[str, int] = {}
        while not self.stopped and self._come_further(furthest, until):
            behind = self._unfinished(until)
            furthest |= {name: max(step, furthest.get(name, -1)) for name, step in behind.items()}
            self.neighbours.wait(lambda: not self._unfinished(until), LINGER_S)

    def _come_further(self, furthest: Mapping[str, int], until: int | None) -> bool:
        """Whether a neighbour that is not done is at a step at which it was not before."""
        return any(step > furthest.get(name, -1) for name, step in self._unfinished(until).items())

    def _unfinished(self, until: int | None) -> dict[str, int]:
        """The steps of the neighbours that are there, not done, and before a step."""
        last = self.neighbours.last_step + 1 if until is None else until
        return {name: step for name, step in self.neighbours.unfinished().items() if step < last}

    def stop(self) -> None:
        """Wait for nobody any more."""
        self._stopping.set()
        self.outbox.close()
        self.neighbours.stop()
        self.absence.stop()

    @property
    def stopped(self) -> bool:
        """Whether it was asked to stop."""
        return self._stopping.is_set()

    def close(self) -> None:
        """End what was started."""
        self.stop()
        self._pulls.shutdown(wait=False, cancel_futures=True)
        self.transport.stop()

    def is_left_behind(self, job: Job, step: int) -> bool:
        """Whether a neighbour with the same plan says that it has gone on without this device.

        One from before or after a change of membership is the same.
        """
        known = {name: self.neighbours[name] for name in self.neighbours.alive}
        same = {self.plan_digest, *self.fitting_digests}
        steps = {name: one.step for name, one in known.items() if one.plan_digest in same}
        return any(self.left_behind(job, name, step, theirs) for name, theirs in steps.items())

    def furthest_ahead(self, job: Job, step: int) -> int:
        """The step to continue after, if neighbours have provably left this device behind; else 0.

        A neighbour's word is not enough: two devices must have signed a step
        (`ssdfl.mesh.evidence`). At least one cycle of training is always left.
        """
        if self.evidence is None or not self.is_left_behind(job, step):
            return 0
        reached = min(self.evidence.reached(), job.last_step - job.steps_per_cycle)
        return reached if reached > step + self._lead(job) else 0

    def _lead(self, job: Job) -> int:
        """How many steps others may be ahead; none of a device that knows that it has been away."""
        return 0 if self.absence.is_on else job.steps_per_cycle

    def left_behind(self, job: Job, name: str, step: int, theirs: int) -> bool:
        """Whether a neighbour is too far ahead, past a step at which it should have waited."""
        if theirs <= step + self._lead(job) or name not in self._places:
            return False
        j = self._places[name]
        soon = range(step, min(theirs, step + 2 * job.steps_per_cycle))
        return any(job.step(t).W[self.index, j] for t in soon)

    def _needed_from(self, step: int) -> int:
        """The earliest step whose message a neighbour may still ask for."""
        return min((self.neighbours[name].step for name in self.neighbours.alive), default=step)

    def _there(self, name: str) -> bool:
        """Whether a neighbour is there, with the same plan, and worth waiting for."""
        neighbour = self.neighbours[name]
        same_plan = neighbour.plan_digest in ("", self.plan_digest, *self.fitting_digests)
        has_come_on = neighbour.step > self._without.get(name, -1)
        return neighbour.alive and same_plan and has_come_on and not self.stopped

    def _pull_or_go(
        self, name: str, at: Moment, own: Message, ahead: Future[Response | None]
    ) -> Tensor | None:
        """The same as `_pull`; one that is missing is waited for again when it is past the step."""
        row = self._pull(name, at, own, ahead)
        if row is None and self._adaptive:
            self._without.setdefault(name, at.t)
        return row

    def _pull(
        self, name: str, at: Moment, own: Message, ahead: Future[Response | None]
    ) -> Tensor | None:
        """A neighbour's message of a step; None if it is gone, absent, too slow or malformed."""
        patience_s = self._patience(name)
        try:
            answer = self._answer_in_time(name, ahead, patience_s)
        except TimeoutError:
            self._gave_up(name, at.t, patience_s)
            return None
        return (
            self._pull_now(name, at, own)
            if answer is None
            else self._taken_or_none(name, answer, at, own)
        )

    def _answer_in_time(
        self, name: str, ahead: Future[Response | None], patience_s: float
    ) -> Response | None:
        """The answer that was asked for ahead; None if the neighbour is gone or there is none.

        Raises:
            TimeoutError: it is there, but does not answer.
        """
        if not self._adaptive:
            return ahead.result(patience_s)
        deadline = self.runtime.now() + patience_s
        while self._there(name):
            try:
                return ahead.result(LATE_S)
            except TimeoutError:
                self.neighbours.hurry(name)
                if self.runtime.now() > deadline:
                    raise
        return None

    def _patience(self, name: str, limit_s: float | None = None) -> float:
        """Seconds to wait for a neighbour; less after an unsuccessful wait."""
        return (limit_s or self.patience_s) * self._patience_with.left(name)

    def _pull_now(self, name: str, at: Moment, own: Message) -> Tensor | None:
        """The same, asked for now."""
        step, patience_s = at.t, self._patience(name)
        deadline = self.runtime.now() + patience_s
        while self._there(name) and self.neighbours[name].first_step <= step:
            if self.runtime.now() > deadline:
                self._gave_up(name, step, patience_s)
                return None
            self.neighbours.hurry(name)
            try:
                least_s = self._patience(name, PULL_DEADLINE_S)
                answer = self._ask_once(name, step, max(least_s, deadline - self.runtime.now()))
                if answer.WhichOneof("kind") != "wait":
                    return self._taken_or_none(name, answer, at, own)
                self.runtime.sleep(RETRY_S)
            except UnreadableError as error:
                self._refused(name, error)
                return None
            except UnreachableError:
                self.runtime.sleep(RETRY_S)
        return None

    def _gave_up(self, name: str, step: int, waited_s: float) -> None:
        """A wait for a neighbour was unsuccessful: the next one is shorter."""
        self._patience_with.in_vain(name)
        log.warning(
            "%s has not come to step %d in %.2g s: continuing without it", name, step, waited_s
        )

    def _refused(self, name: str, error: Exception) -> None:
        """A neighbour sent what cannot be used: count it and do without."""
        self.bad_messages[name] += 1
        log.warning("%s sent %s: dropped", name, error)

    def _taken_or_none(
        self, name: str, answer: Response, at: Moment, own: Message
    ) -> Tensor | None:
        """The message in an answer; a bad one is counted and dropped."""
        try:
            return self._taken(name, answer, at, own)
        except BadMessageError as error:
            self._refused(name, error)
            return None

    def _ask_once(self, name: str, step: int, limit_s: float) -> Response:
        request = Request(pull=Pull(step=step))
        return self.transport.ask(name, request, limit_s, lambda: self._there(name))

    def _taken(self, name: str, answer: Response, at: Moment, own: Message) -> Tensor | None:
        """The message in an answer; None if the neighbour has none for this step."""
        kind = answer.WhichOneof("kind")
        if kind == "absent":
            return None
        if kind != "parameters":
            raise BadMessageError(f"{kind} in answer to a pull")
        row = unpack(answer.parameters, own, at)
        self._patience_with.heard(name)
        self._without.pop(name, None)
        with self._counting:  # pulls end on several threads
            self.received_bytes += answer.ByteSize()
        return row
