"""The oracle: plain loops that read like the paper's equations. Slow, but easy to verify.

    θ_i ← Σ_j w_ij θ_j − η g̃_i(θ_i)                                (`eq:intraC_updates`)
    g̃_i = g_i + Σ_p ρ_i^{q−p} g_i^{(p)} + μ_i (θ_i − θ_i⁰)          (`eq:eff_sgd_ovr`)

With E local steps, −η g̃ becomes the sum of E such steps from the device's own parameters. Other
rules and optimizers replace these two equations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from ssdfl.engine.engine import Advanced
from ssdfl.engine.job import Job
from ssdfl.engine.moves import Standstill
from ssdfl.engine.shares import LocalShares, Shares
from ssdfl.engine.state import MODEL, RULE, State, initial_state, kinds_of, memory_name
from ssdfl.engine.training import Kept, keep_variances, plain_move
from ssdfl.learning import Home
from ssdfl.methods import Heard, Inbox, Memory, Message, Moment, Move, Step


class ReferenceEngine:
    """Device by device, neighbour by neighbour."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shares: Shares = LocalShares(np.arange(job.network.num_devices))
        self._kinds = kinds_of(job)

    def begin(self, state: State | None) -> State:
        """The state unchanged."""
        return state or initial_state(self.job)

    def advance(self, state: State, step: Step, t: int) -> Advanced:
        """All devices train, send and receive, one by one."""
        rule, N = self.job.rule, len(state.X)
        memory = {name: rows.clone() for name, rows in state.memory.items()}
        moments = [one_moment(self.job, step, i, t) for i in range(N)]
        moves = [
            self._move(state, memory, i, moments[i]) if step.train[i] else Standstill(state.X[[i]])
            for i in range(N)
        ]
        messages = []
        for i in range(N):
            message, kept = rule.send(
                moments[i], state.X[[i]], moves[i], device_memory(memory, RULE, i)
            )
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
            keep_variances(self.job.task, X[i : i + 1], moves[i].applied_to(state.X[[i]]))
            moved[i] = self.job.task.trained(X[i] - state.X[i]).norm() if step.train[i] else 0
        return Advanced(X, memory, moved)

    def _move(self, state: State, memory: dict[str, Tensor], i: int, at: Moment) -> Move:
        """Device i's local training; updates its optimizer's memory."""
        kind = self.job.optimizers[i].kind
        row = int(np.searchsorted(self._kinds[kind], i))
        kept = Kept(device_memory(memory, kind.name, row), device_memory(memory, MODEL, i))
        of_rule, in_regime = device_memory(memory, RULE, i), bool(state.trained[i])
        move, kept = plain_move(self.job, self.job.task, state.X[[i]], kept, in_regime, at, of_rule)
        _keep(memory, kind.name, row, kept.optimizer)
        _keep(memory, MODEL, i, kept.home)
        return move

    def evaluate(self, X: Tensor, home: Home | None = None) -> tuple[Tensor, Tensor]:
        """Test devices one by one."""
        task = self.job.task
        losses, scores = [], []
        for i, θ in enumerate(X):
            own = {name: rows[[i]] for name, rows in (home or {}).items()}
            with torch.no_grad():
                outputs = task.scores(θ, task.test_inputs, own)
            losses.append(task.loss(outputs, task.test_targets))
            scored = task.in_units(outputs), task.in_units(task.test_targets)
            values = [metric(*scored).double() for metric in task.metrics]
            scores.append(torch.stack(values))
        return torch.stack(losses), torch.stack(scores)

    def close(self) -> None:
        """Do nothing."""


def heard_by_one(
    message: Message, own_weight: float, weights: Mapping[int, float], rows: Mapping[int, Tensor]
) -> Heard:
    """The messages of one device: w_ii times its own plus w_ij times each that arrived.

    Args:
        message: its own message.
        own_weight: w_ii, plus the weights of missing messages.
        weights: w_ij of the neighbours whose messages arrived.
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
            senders = np.array([*weights])[:, None]
            yield Inbox(torch.zeros(1, dtype=torch.int64), its_weights, stacked, senders)

    return Heard(
        mixed, lambda: own if message.kept is None else own + message.kept, each, lambda: own
    )


def one_moment(job: Job, step: Step, device: int, t: int) -> Moment:
    """The moment of step t for one device."""
    return job.moment(t, np.array([device]), bool(step.train[device]), bool(step.train.any()))


def device_memory(memory: dict[str, Tensor], owner: str, row: int) -> Memory:
    """The memory of a kind of optimizer, or of the rule, for the device in one row; (1, k) each."""
    prefix = memory_name(owner, "")
    return {
        name.removeprefix(prefix): memory[name][[row]] for name in memory if name.startswith(prefix)
    }


def _keep(memory: dict[str, Tensor], owner: str, row: int, kept: Memory) -> None:
    for name, rows in kept.items():
        memory[memory_name(owner, name)][row] = rows[0]
