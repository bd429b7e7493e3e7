"""The engine of one real device: its own row of every step, while it pulls neighbours' messages.

The rule does not hear what is missing: a neighbour that is gone or too slow, or a bad message. Its
weight goes back to the device's own, as in `ssdfl.methods.drop_links`. A device far behind its
neighbours, because it was away or cut off, continues at their step with the parameters it has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ssdfl.engine import Advanced, Job, Loop, State, initial_state
from ssdfl.engine.moves import Standstill
from ssdfl.engine.reference import ReferenceEngine, device_memory, heard_by_one, one_moment
from ssdfl.engine.shares import LocalShares, Shares
from ssdfl.engine.state import MODEL, RULE, memory_name, own_rows
from ssdfl.engine.training import Kept, keep_variances, plain_move
from ssdfl.errors import InputError
from ssdfl.learning import Home
from ssdfl.mesh.node import Node
from ssdfl.methods import Heard, Memory, Message, Moment, Move, Step
from ssdfl.records import Record

MARGIN = 3
"""Steps that a returning device skips beyond its neighbours', so that they need not wait for it."""

log = logging.getLogger(__name__)


def initial_device_state(job: Job, device: int) -> State:
    """A device at θ⁰."""
    start = initial_state(job)
    memory = own_rows(job, start.memory, np.array([device]))
    return replace(start, X=start.X[[device]], memory=memory, real_s=0.0)


class DeviceEngine:
    """Takes the steps of one device of a job."""

    def __init__(self, job: Job, node: Node) -> None:
        self.job, self.node = job, node
        self.shares: Shares = LocalShares(np.array([node.index]))
        self._tester = ReferenceEngine(job)
        self._partners: dict[int, set[int]] = {}

    def begin(self, state: State | None) -> State:
        """The state as it is, or the start; neighbours learn where the device is."""
        state = state or initial_device_state(self.job, self.node.index)
        self.node.begin(state.step, self.job.last_step, state.transmissions)
        return state

    def caught_up(self, state: State) -> State:
        """The state, moved past the neighbours' step if they have left this device far behind."""
        returns = self.node.absence.check()
        if returns:
            self.node.look_around()
        furthest = self.node.furthest_ahead(self.job, state.step)
        if furthest:
            return self._skipped(state, furthest, MARGIN if returns else 1)
        if returns:
            self.node.take_part(state.step)
        return state

    def _skipped(self, state: State, furthest: int, margin: int) -> State:
        """The state some steps after the neighbours'."""
        step = min(furthest + margin, self.job.last_step)
        log.warning(
            "at step %d, but neighbours are at %d: continuing at %d", state.step, furthest, step
        )
        self.node.skipped += step - state.step
        self.node.take_part(step)
        return replace(state, step=step, trained=np.zeros_like(state.trained))

    def advance(self, state: State, step: Step, t: int) -> Advanced:
        """Train, exchange and combine; messages of an early rule travel while the device trains."""
        rule, i, theta = self.job.rule, self.node.index, state.X
        weights = self._weights(step, t)
        own_weight = weights.pop(i, 0.0)
        memory = {name: rows.clone() for name, rows in state.memory.items()}
        kept = device_memory(memory, RULE, 0)
        self.node.reach(t)
        self.node.shelf.put(t, theta[0])
        at = one_moment(self.job, step, i, t)
        if rule.early:
            own, kept, pulls = self._send(at, theta, None, kept, weights)
        move = self._move(state, memory, kept, at)
        if not rule.early:
            own, kept, pulls = self._send(at, theta, move, kept, weights)
        X, kept = rule.receive(at, theta, move, kept, self._heard(own_weight, weights, pulls, own))
        memory |= {memory_name(RULE, name): rows for name, rows in kept.items()}
        keep_variances(self.job.task, X, move.applied_to(theta))
        self._check_finite(X, t)
        way = self.job.task.trained(X - theta)
        moved = torch.linalg.vector_norm(way, dim=1) if step.train[i] else X.new_zeros(1)
        return Advanced(X, memory, moved, self.node.received - state.transmissions)

    def evaluate(self, X: Tensor, home: Home | None = None) -> tuple[Tensor, Tensor]:
        """Test the device once; the mean of its parameters alone are these."""
        loss, scores = self._tester.evaluate(X[:1], home)
        return loss.expand(len(X)), scores.expand(len(X), -1)

    def close(self) -> None:
        """Nothing to end; the node is its owner's."""

    def _weights(self, step: Step, t: int) -> dict[int, float]:
        """w_ij of the devices that this one mixes, itself included."""
        W, i = step.W, self.node.index
        row = slice(W.indptr[i], W.indptr[i + 1])
        weights = dict(zip(W.indices[row].tolist(), W.data[row].tolist(), strict=True))
        linked = {self.node.name, *self.node.neighbours.names}
        strangers = sorted(self.node.names[j] for j in weights if self.node.names[j] not in linked)
        if strangers:
            expected = f"neighbours of {self.node.name} only"
            raise InputError(f"device mixed at step {t}", strangers[0], expected, "Fix the method.")
        return weights

    def _send(
        self,
        at: Moment,
        theta: Tensor,
        move: Move | None,
        kept: Memory,
        weights: Mapping[int, float],
    ) -> tuple[Message, Memory, dict[int, Future[Tensor | None]]]:
        """Offer the message of this step, and begin to pull the neighbours'."""
        message, kept = self.job.rule.send(at, theta, move, kept)
        self.node.publish(at, message if weights else None)
        pulls = self.node.ask(at, weights, message)
        self._ask_ahead(at.t)
        return message, kept, pulls

    def _ask_ahead(self, t: int) -> None:
        """Ask each neighbour for its next message after step t, if there is one within a cycle."""
        last = min(t + self.job.steps_per_cycle, self.job.last_step - 1)
        unasked = set(range(self.job.network.num_devices))
        self._partners = {step: found for step, found in self._partners.items() if step > t}
        for step in range(t + 1, last + 1):
            if step not in self._partners:
                self._partners[step] = self._weights(self.job.step(step), step).keys() - {
                    self.node.index
                }
            self.node.ask_ahead(step, self._partners[step] & unasked)
            unasked -= self._partners[step]

    def _move(self, state: State, memory: dict[str, Tensor], of_rule: Memory, at: Moment) -> Move:
        """The local training of this step, if there is any; the optimizer's memory is renewed."""
        i = self.node.index
        if not at.trains:
            return Standstill(state.X)
        kind = self.job.optimizers[i].kind.name
        kept = Kept(device_memory(memory, kind, 0), device_memory(memory, MODEL, 0))
        in_regime = bool(state.trained[i])
        move, kept = plain_move(self.job, self.job.task, state.X, kept, in_regime, at, of_rule)
        memory |= {memory_name(kind, name): rows for name, rows in kept.optimizer.items()}
        memory |= {memory_name(MODEL, name): rows for name, rows in kept.home.items()}
        return move

    def _heard(
        self,
        own_weight: float,
        weights: Mapping[int, float],
        pulls: Mapping[int, Future[Tensor | None]],
        own: Message,
    ) -> Heard:
        """What came; the weight of what did not goes back to this device."""
        begun_s = self.node.runtime.now()
        came: dict[int, Tensor] = {}
        for j, pull in pulls.items():
            row = pull.result()
            if row is None:
                own_weight += weights[j]
            else:
                came[j] = row
        self.node.waited_s += self.node.runtime.now() - begun_s
        self.node.received += len(came)
        return heard_by_one(own, own_weight, {j: weights[j] for j in came}, came)

    def _check_finite(self, X: Tensor, t: int) -> None:
        if not torch.isfinite(X).all():
            expected = f"one that converges ({self.node.name} diverged at step {t})"
            raise InputError(
                "training.learning_rate", self.job.learning_rate, expected, "Lower it."
            )


def never(step: int) -> bool:
    """Nothing is due at any step."""
    return False


def device_steps(
    job: Job, node: Node, state: State | None, due: Callable[[int], bool] = never
) -> Iterator[tuple[State, Record | None]]:
    """Take all steps that are left; yield the state after each, and a record after each cycle.

    It ends early, without the step under way, if the node is asked to stop.

    Args:
        due: whether to end at the beginning of a cycle, given its first step; a device that skips
            steps may end within a cycle.
    """
    engine = DeviceEngine(job, node)
    loop = Loop(job, engine)
    state = engine.begin(state)
    before_s, started = state.real_s, node.runtime.now()
    may_end = True
    while state.step < job.last_step:
        before, state = state, engine.caught_up(state)
        if state is not before:
            yield state, None
        may_end |= state is not before or state.step % job.steps_per_cycle == 0
        if may_end and due(state.step):
            return
        may_end = False
        after = loop.step(state) if state.step < job.last_step else state
        if node.stopped:
            return
        state = replace(after, real_s=before_s + node.runtime.now() - started)
        ends_cycle = state.step % job.steps_per_cycle == 0
        yield state, loop.record(state) if ends_cycle else None
    node.finish(job.last_step)
