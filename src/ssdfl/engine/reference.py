"""The oracle: plain loops that read like the paper's equations. Slow, and right.

    θ_i ← Σ_j w_ij θ_j − η g̃_i(θ_i)                                (`eq:intraC_updates`)
    g̃_i = g_i + Σ_p ρ_i^{q−p} g_i^{(p)} + μ_i (θ_i − θ_i⁰)          (`eq:eff_sgd_ovr`)

With E local steps, −η g̃ becomes the sum of E such steps from the device's own parameters. Other rules and
optimizers take the places of these two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ssdfl.engine.engine import Advanced
from ssdfl.engine.job import Job
from ssdfl.engine.moves import Standstill
from ssdfl.engine.shares import LocalShares, Shares
from ssdfl.engine.state import RULE, State, initial_state, kinds_of, memory_name
from ssdfl.engine.training import starting_memory, train_device
from ssdfl.methods import Heard, Inbox, Memory, Message, Moment, Move, Step


@dataclass(frozen=True, eq=False)
class PlainMove:
    """A displacement (1, d) as it is."""

    displacement: Tensor
    rate: float
    steps: int

    def value(self) -> Tensor:
        """(1, d) the displacement."""
        return self.displacement

    def direction(self) -> Tensor:
        """(1, d) what local steps went down along on average."""
        return self.displacement / (-self.rate * self.steps)

    def added_to(self, rows: Tensor) -> Tensor:
        """The rows plus the displacement."""
        return rows + self.displacement

    def applied_to(self, theta: Tensor) -> Tensor:
        """The parameters plus the displacement."""
        return theta + self.displacement


class ReferenceEngine:
    """Device by device, neighbour by neighbour."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shares: Shares = LocalShares(np.arange(job.network.num_devices))
        self._kinds = kinds_of(job)

    def begin(self, state: State | None) -> State:
        """The state as it is."""
        return state or initial_state(self.job)

    def advance(self, state: State, step: Step, t: int) -> Advanced:
        """Everyone trains, everyone sends, everyone receives."""
        rule, N = self.job.rule, len(state.X)
        memory = {name: rows.clone() for name, rows in state.memory.items()}
        moments = [one_moment(self.job, step, i, t) for i in range(N)]
        moves = [
            self._move(state, memory, i, moments[i]) if step.train[i] else Standstill(state.X[[i]])
            for i in range(N)
        ]
        messages = []
        for i in range(N):
            message, kept = rule.send(moments[i], state.X[[i]], moves[i], device_memory(memory, RULE, i))
            _keep(memory, RULE, i, kept)
            messages.append(message)
        X, moved = state.X.clone(), state.X.new_zeros(N)
        W = step.W.toarray()
        for i in range(N):
            weights = {j: float(W[i, j]) for j in np.flatnonzero(W[i]).tolist() if j != i}
            rows = {j: messages[j].rows[0] for j in weights}
            heard = heard_by_one(messages[i], float(W[i, i]), weights, rows)
            kept = device_memory(memory, RULE, i)
            X[[i]], kept = rule.receive(moments[i], state.X[[i]], moves[i], kept, heard)
            _keep(memory, RULE, i, kept)
            moved[i] = (X[i] - state.X[i]).norm() if step.train[i] else 0
        return Advanced(X, memory, moved)

    def _move(self, state: State, memory: dict[str, Tensor], i: int, at: Moment) -> Move:
        """Device i's local training; its optimizer's memory is renewed."""
        kind = self.job.optimizers[i].kind
        row = int(np.searchsorted(self._kinds[kind], i))
        kept = device_memory(memory, kind.name, row)
        own = device_memory(memory, RULE, i)
        move, kept = plain_move(self.job, state.X[[i]], kept, bool(state.trained[i]), at, own)
        _keep(memory, kind.name, row, kept)
        return move

    def evaluate(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Test one device after the other."""
        task = self.job.task
        losses, accuracies = [], []
        for θ in X:
            with torch.no_grad():
                scores = task.scores(θ, task.test_inputs)
            losses.append(task.loss(scores, task.test_labels))
            accuracies.append((scores.argmax(1) == task.test_labels).float().mean())
        return torch.stack(losses), torch.stack(accuracies)

    def close(self) -> None:
        """Nothing to end."""


def heard_by_one(
    message: Message, own_weight: float, weights: Mapping[int, float], rows: Mapping[int, Tensor]
) -> Heard:
    """What one device hears: w_ii times its own message plus w_ij times each that came.

    Args:
        message: its own.
        own_weight: w_ii, with the weight of what is missing.
        weights: w_ij of the neighbours whose messages came.
        rows: (k,) their messages.
    """
    own = message.rows

    def mixed() -> Tensor:
        total = torch.zeros_like(own)
        total += own_weight * own
        for j, weight in weights.items():
            total += weight * rows[j]
        return total if message.kept is None else total + message.kept

    def each() -> Iterator[Inbox]:
        if weights:
            stacked = torch.stack([rows[j] for j in weights])[:, None]
            its_weights = own.new_tensor(list(weights.values()))[:, None]
            yield Inbox(torch.zeros(1, dtype=torch.int64), its_weights, stacked)

    return Heard(mixed, lambda: own if message.kept is None else own + message.kept, each)


def one_moment(job: Job, step: Step, device: int, t: int) -> Moment:
    """What a rule knows of step t and one device."""
    return job.moment(t, np.array([device]), bool(step.train[device]), bool(step.train.any()))


def plain_move(
    job: Job, theta: Tensor, kept: Memory, in_regime: bool, at: Moment, of_rule: Memory
) -> tuple[Move, Memory]:
    """One device's local training, and what its optimizer keeps.

    Args:
        theta: (1, d) where it starts.
        kept: (1, k) each, what its optimizer kept before.
        in_regime: it trained in the step before; otherwise a new regime starts.
        of_rule: what its rule keeps.
    """
    device = int(at.devices[0])
    kept = starting_memory(job, job.optimizers[device].kind, theta, kept, in_regime)
    steered = job.rule.steer(at, of_rule) if job.rule.steers else None
    end, kept = train_device(job, theta, kept, device, at.t, steered)
    return PlainMove(end - theta, at.rate, at.local_steps), kept


def device_memory(memory: dict[str, Tensor], owner: str, row: int) -> Memory:
    """(1, k) each: what a kind of optimizer, or the rule, keeps for the device in one row."""
    prefix = memory_name(owner, "")
    return {name.removeprefix(prefix): memory[name][[row]] for name in memory if name.startswith(prefix)}


def _keep(memory: dict[str, Tensor], owner: str, row: int, kept: Memory) -> None:
    for name, rows in kept.items():
        memory[memory_name(owner, name)][row] = rows[0]
