"""One device of a mesh: its own row of the schedule, with its neighbours' parameters pulled while it trains.

    θ_i ← w_ii θ_i + Σ_j w_ij θ_j + displacement of i

A neighbour that is gone, or too slow, gives its weight back to this device's own diagonal: the same rule as
`ssdfl.methods.drop_links`. A device that is far behind its neighbours, because it was away or cut off, goes
on at their step with the parameters that it has.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ssdfl.engine.job import Job
from ssdfl.engine.reference import ReferenceEngine
from ssdfl.errors import InputError
from ssdfl.graph import Network
from ssdfl.mesh.mesh_pb2 import Absent, Parameters, Pull, Request, Response, Status, Wait
from ssdfl.mesh.neighbours import PING_DEADLINE_S, Neighbours
from ssdfl.mesh.transport import Answer, Transport, UnreachableError, refusal
from ssdfl.mesh.wire import BadMessageError, pack, unpack

POLL_S = 1.0
PULL_DEADLINE_S = 10.0
RETRY_S = 0.05
LINGER_S = 60.0
MOST_KEPT = 64

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class DeviceState:
    """Where a device is between two steps.

    Attributes:
        step: the next step.
        θ: (d,) its parameters.
        carry: (d,) or (0,) what its optimizer carries.
        trained: whether it trained in the last step.
        sent, received: messages with parameters, so far.
        busy_s: seconds since the start, over all the processes that the device has been.
    """

    step: int
    θ: Tensor
    carry: Tensor
    trained: bool
    sent: int = 0
    received: int = 0
    busy_s: float = 0.0


def initial_device_state(job: Job) -> DeviceState:
    """A device at θ⁰."""
    θ = job.task.initial_parameters
    return DeviceState(0, θ, θ[:0], trained=False)


class StoppedError(Exception):
    """The device was asked to stop."""


class Outbox:
    """What neighbours may still ask for: this device's parameters at the start of recent steps."""

    def __init__(self) -> None:
        self._messages: dict[int, bytes] = {}
        self._changed = threading.Condition()
        self.first_step = 0
        self.sent = 0

    def publish(self, step: int, message: Parameters | None, needed_from: int) -> None:
        """The device is at a step, with these parameters if anyone needs them; older ones are dropped."""
        ready = Response(parameters=message).SerializeToString() if message is not None else None
        with self._changed:
            if ready is not None:
                self._messages[step] = ready
            known = sorted(self._messages)
            for place, old in enumerate(known):
                if old < min(needed_from, step) or place < len(known) - MOST_KEPT:
                    del self._messages[old]
            self._changed.notify_all()

    def jump(self, step: int) -> None:
        """The device takes part from this step on."""
        with self._changed:
            self.first_step = step
            self._messages.clear()
            self._changed.notify_all()

    def answer(self, step: int, current: Callable[[], int]) -> Answer:
        """Parameters at a step; waits a little if the device is not there yet."""
        deadline = time.monotonic() + POLL_S
        with self._changed:
            while step not in self._messages:
                left = deadline - time.monotonic()
                if step < self.first_step or step < current():
                    return Response(absent=Absent())
                if left <= 0:
                    return Response(wait=Wait())
                self._changed.wait(left)
            self.sent += 1
            return self._messages[step]


class Node:
    """One device of a network, and later of a job.

    Args:
        index: which device of the network it is.
        names: the names of all devices, by index.
        patience_s: how long to wait for a neighbour that answers pings but has not come to a step.
        ping_deadline_s: how soon neighbours have to answer pings.
    """

    def __init__(
        self,
        network: Network,
        index: int,
        names: tuple[str, ...],
        transport: Transport,
        patience_s: float = 60.0,
        ping_deadline_s: float = PING_DEADLINE_S,
    ) -> None:
        self.network, self.index, self.names, self.transport = network, index, names, transport
        self.patience_s = patience_s
        self.outbox, self.bad_messages = Outbox(), Counter[str]()
        self.plan_digest = ""
        self._step, self._done = 0, False
        self._stopping = threading.Event()
        self._places = {name: place for place, name in enumerate(names)}
        linked = [names[j] for j in network.neighbours(index)]
        self.neighbours = Neighbours(linked, transport, self.status, ping_deadline_s)
        self._pulls = ThreadPoolExecutor(max(1, len(linked)), thread_name_prefix="pull")
        self.answers: dict[str, Callable[[Request], Response]] = {}

    def status(self) -> Status:
        """What this device tells its neighbours about itself."""
        first = self.outbox.first_step
        return Status(step=self._step, first_step=first, done=self._done, plan_digest=self.plan_digest)

    def announce(self, step: int) -> None:
        """This device takes part from this step on."""
        self._step = step
        self.outbox.jump(step)

    def handle(self, name: str, request: Request) -> Answer:
        """Answer a neighbour."""
        kind = request.WhichOneof("kind")
        if kind == "ping":
            self.neighbours.heard(name, request.ping.status, answered=False)
            return Response(status=self.status())
        if kind == "pull":
            return self.outbox.answer(request.pull.step, lambda: self._step)
        if kind in self.answers:
            return self.answers[kind](request)
        self.bad_messages[f"{name}: {kind or 'empty request'}"] += 1
        return refusal(f"unknown request {kind}")

    def run(self, job: Job, state: DeviceState) -> Iterator[tuple[DeviceState, float]]:
        """Take all steps that are left; yield the state after each, and how far training moved the device."""
        self.job, self._trainer = job, ReferenceEngine(job)
        last = job.cycles * job.steps_per_cycle
        self.neighbours.last_step = last
        self.outbox.sent = state.sent
        self.announce(state.step)
        while state.step < last:
            state, moved = self._caught_up(state, last), 0.0
            if state.step < last:
                state, moved = self._advance(state)
            if self.stopped:  # neighbours were not waited for: the step is to be done again
                return
            yield state, moved
        self._step, self._done = last, True
        self.outbox.publish(last, None, self._needed_from(last))

    def linger(self) -> None:
        """Answer neighbours until they have finished, are gone, or stand still."""

        def steps() -> list[int]:
            left = [self.neighbours[name] for name in self.neighbours.alive]
            return [neighbour.step for neighbour in left if not neighbour.done]

        before: list[int] = []
        while not self.stopped and steps() and steps() != before:
            before = steps()
            self.neighbours.wait(lambda: not steps(), LINGER_S)

    def stop(self) -> None:
        """Wait for nobody any more."""
        self._stopping.set()
        self.neighbours.stop()

    @property
    def stopped(self) -> bool:
        """Whether it was asked to stop."""
        return self._stopping.is_set()

    def close(self) -> None:
        """End what was started."""
        self.stop()
        self._pulls.shutdown(wait=False, cancel_futures=True)
        self.transport.stop()

    def _caught_up(self, state: DeviceState, last: int) -> DeviceState:
        """The state, or at the step after the neighbours' if they have long gone on without this device."""
        ahead = {name: self.neighbours[name].step for name in self.neighbours.alive}
        furthest = max(
            (step for name, step in ahead.items() if self.left_behind(self.job, name, state.step, step)),
            default=0,
        )
        if not furthest:
            return state
        step = min(furthest + 1, last)
        log.warning("at step %d, but neighbours are at %d: going on at %d", state.step, furthest, step)
        self.announce(step)
        return replace(state, step=step, trained=False)

    def left_behind(self, job: Job, name: str, step: int, theirs: int) -> bool:
        """Whether a neighbour is more than a cycle ahead, past a step at which it should have waited."""
        if theirs <= step + job.steps_per_cycle:
            return False
        j = self._places[name]
        soon = range(step, min(theirs, step + 2 * job.steps_per_cycle))
        return any(job.schedule(t).W[self.index, j] for t in soon)

    def _advance(self, state: DeviceState) -> tuple[DeviceState, float]:
        t, i = state.step, self.index
        step = self.job.schedule(t)
        row = step.W[[i], :].tocoo()
        weights = {int(j): float(w) for j, w in zip(row.col, row.data, strict=True)}
        own = weights.pop(i, 0.0)
        self._check_linked(weights, t)
        self._step = t
        message = pack(state.θ, t) if weights else None
        self.outbox.publish(t, message, self._needed_from(t))
        pulls = {j: self._pulls.submit(self._pull, self.names[j], t, state.θ) for j in weights}
        displacement, carry = self._train(state, bool(step.train[i]), t)
        mixed, received = own * state.θ, 0
        for j, weight in weights.items():
            theirs = pulls[j].result()
            received += theirs is not None
            mixed = mixed + weight * (state.θ if theirs is None else theirs)
        θ = mixed if displacement is None else mixed + displacement
        if not torch.isfinite(θ).all():
            expected = f"one that converges ({self.names[i]} diverged at step {t})"
            raise InputError("training.learning_rate", self.job.learning_rate, expected, "Lower it.")
        after = replace(
            state,
            step=t + 1,
            θ=θ,
            carry=carry,
            trained=bool(step.train[i]),
            sent=self.outbox.sent,
            received=state.received + received,
        )
        return after, float((θ - state.θ).norm()) if displacement is not None else 0.0

    def _check_linked(self, weights: Mapping[int, float], t: int) -> None:
        strangers = sorted({self.names[j] for j in weights} - set(self.neighbours.names))
        if strangers:
            expected = f"neighbours of {self.names[self.index]} only"
            raise InputError(f"device mixed at step {t}", strangers[0], expected, "Mend the method.")

    def _train(self, state: DeviceState, train: bool, t: int) -> tuple[Tensor | None, Tensor]:
        """The displacement of the local steps if there are any, and what the optimizer carries on."""
        if not train:
            return None, state.carry
        carried = state.carry
        if not state.trained:
            carried = self._trainer.start_regime(state.θ, carried, self.index)
        θ, carry = self._trainer.train(state.θ, carried, self.index, t)
        return θ - state.θ, carry

    def _needed_from(self, step: int) -> int:
        """The earliest step whose parameters a neighbour may still ask for."""
        return min((self.neighbours[name].step for name in self.neighbours.alive), default=step)

    def _pull(self, name: str, step: int, like: Tensor) -> Tensor | None:
        """A neighbour's parameters at the start of a step; None if it is gone, absent, or too slow."""
        deadline = time.monotonic() + self.patience_s

        def there() -> bool:
            neighbour = self.neighbours[name]
            same_plan = neighbour.plan_digest in ("", self.plan_digest)
            return neighbour.alive and same_plan and not self.stopped

        while there() and self.neighbours[name].first_step <= step:
            if time.monotonic() > deadline:
                log.warning("%s has not come to step %d in %g s: going on", name, step, self.patience_s)
                return None
            try:
                left = max(PULL_DEADLINE_S, deadline - time.monotonic())
                answer = self.transport.ask(name, Request(pull=Pull(step=step)), left, there)
                kind = answer.WhichOneof("kind")
                if kind == "parameters":
                    return unpack(answer.parameters, like, step)
                if kind == "absent":
                    return None
                if kind != "wait":
                    raise BadMessageError(f"{kind} in answer to a pull")
            except UnreachableError:
                time.sleep(RETRY_S)
            except BadMessageError as error:
                self.bad_messages[name] += 1
                log.warning("%s sent %s: dropped", name, error)
                return None
        return None
