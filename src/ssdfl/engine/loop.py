"""The loop that all engines share: cycles of steps, their costs, and one record a cycle."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ssdfl.engine.distributed import DistributedEngine
from ssdfl.engine.gaps import GapRecorder
from ssdfl.engine.job import Engine, Job, MakeEngine, State
from ssdfl.engine.local import LocalEngine
from ssdfl.engine.ranks import Shares, common_error
from ssdfl.engine.reference import ReferenceEngine
from ssdfl.engine.workers import one_thread_each
from ssdfl.errors import InputError
from ssdfl.graph import Clock
from ssdfl.learning import fork_generators
from ssdfl.records import Record

ENGINES: dict[str, MakeEngine] = {
    "local": LocalEngine,
    "reference": ReferenceEngine,
    "distributed": DistributedEngine,
}
_NUMBERS_AT_ONCE = 1 << 20


def run(
    job: Job, engine: str = "local", state: State | None = None, in_place: bool = False
) -> Iterator[tuple[Record, State]]:
    """Execute a job, from the start or from a state; yield each cycle's record and the state after it.

    Args:
        state: where to go on; of ranks that run the job together, only that of rank 0 counts.
        in_place: the state that was yielded may change when the next is asked for. Saves the memory and time
            of a copy.

    Raises:
        InputError: an unknown engine, or parameters that grew beyond all bounds (step and device named).
    """
    if engine not in ENGINES:
        raise InputError("engine.name", engine, f"one of {', '.join(ENGINES)}", "Choose one of them.")
    clock = Clock(job.network, job.message_bytes)
    with closing(ENGINES[engine](job)) as worker:
        state = worker.begin(state)
        gaps = GapRecorder(job, worker.shares)
        while state.cycle < job.cycles:
            with one_thread_each(), fork_generators(job.task.inputs.device):
                gaps.start(state.X)
                state, times, moved = _run_cycle(job, worker, clock, state, gaps)
                squares = worker.shares.everyone(moved)
                _check_finite(squares, times, job.learning_rate)
                gaps.trained(squares)
                record = _record(job, worker, state, squares, gaps)
            yield record, state if in_place else state.clone()


def _run_cycle(
    job: Job, worker: Engine, clock: Clock, state: State, gaps: GapRecorder
) -> tuple[State, list[int], Tensor]:
    """One cycle: the state after it, its training steps, and (N, steps) squared effective gradients."""
    times: list[int] = []
    squares: list[Tensor] = []
    trained = False
    first = state.cycle * job.steps_per_cycle
    for t in range(first, first + job.steps_per_cycle):
        step = job.schedule(t)
        if trained and not step.train.any():
            gaps.paused(state.X)
        X, carry, moved = worker.advance(state, step, t)
        trained = bool(step.train.any())
        if trained:
            times.append(t)
            squares.append(_marked((moved.double() / job.learning_rate).square(), X))
        compute_s = np.where(step.train, job.network.compute_s * job.local_steps, 0.0)
        ready_s, sent = clock.advance(state.ready_s, step.W, compute_s)
        state = replace(
            state,
            X=X,
            carry=carry,
            trained=step.train,
            ready_s=ready_s,
            transmissions=state.transmissions + sent,
        )
    if trained:
        gaps.paused(state.X)
    in_columns = torch.stack(squares, dim=1) if squares else state.X.new_zeros((len(state.X), 0)).double()
    return replace(state, cycle=state.cycle + 1), times, in_columns


def _marked(squares: Tensor, X: Tensor) -> Tensor:
    """Squares of how far devices moved, with NaN for those whose parameters are not finite."""
    for device in torch.nonzero(~torch.isfinite(squares)).flatten().tolist():
        squares[device] = math.inf if torch.isfinite(X[device]).all() else math.nan
    return squares


def _check_finite(squares: Tensor, times: list[int], learning_rate: float) -> None:
    """Refuse to go on with parameters that are not finite; ranks find the same, and end together."""
    for t, of_step in zip(times, squares.T, strict=True):
        for device in torch.nonzero(of_step.isnan()).flatten().tolist()[:1]:
            raise common_error(
                "training.learning_rate",
                learning_rate,
                f"one that converges (device {device} diverged at step {t})",
                "Lower it, or lower training.local_steps or the momentum.",
            )


def _record(job: Job, worker: Engine, state: State, squares: Tensor, gaps: GapRecorder) -> Record:
    mean = worker.shares.mean(state.X)
    due = state.cycle % job.evaluate_every == 0 or state.cycle == job.cycles
    loss, accuracy, average = tested(worker, state.X, mean) if due else (math.nan, np.array([]), math.nan)
    return Record(
        cycle=state.cycle,
        accuracy=float(accuracy.mean()) if due else math.nan,
        accuracy_std=float(accuracy.std()) if due else math.nan,
        accuracy_worst=float(accuracy.min()) if due else math.nan,
        average_model_accuracy=average,
        loss=loss,
        consensus_distance=_consensus_distance(worker.shares, state.X, mean),
        effective_gradient=math.sqrt(squares.mean()) if squares.numel() else 0.0,
        transmissions=state.transmissions,
        sent_bytes=state.transmissions * job.message_bytes,
        time_s=float(state.ready_s.max()),
        device_accuracy=tuple(accuracy.tolist()),
        **gaps.record(),  # type: ignore[arg-type]
    )


def _consensus_distance(shares: Shares, X: Tensor, mean: Tensor) -> float:
    """The root mean square distance of rows from their mean, a few rows at a time."""
    rows = X.split(max(1, _NUMBERS_AT_ONCE // X.shape[1]))
    distances = torch.cat([torch.linalg.vector_norm(some - mean, dim=1) for some in rows])
    return float(shares.everyone(distances).double().square().mean().sqrt())


def tested(
    worker: Engine, X: Tensor, mean: Tensor
) -> tuple[float, np.ndarray[tuple[int], np.dtype[np.float64]], float]:
    """Mean loss, everyone's accuracy, and that of the mean model: in one go where copying costs nothing."""
    if X.numel() <= _NUMBERS_AT_ONCE:
        losses, accuracies = worker.evaluate(torch.cat([X, mean]))
    else:
        losses, accuracies = (
            torch.cat(both) for both in zip(worker.evaluate(X), worker.evaluate(mean), strict=True)
        )
    of_devices = (worker.shares.everyone(values[:-1]).double().cpu() for values in (losses, accuracies))
    every_loss, every_accuracy = of_devices
    return float(every_loss.mean()), every_accuracy.numpy(), float(accuracies[-1])
