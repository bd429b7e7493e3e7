"""The loop that all engines share: cycles of steps, their costs, and one record a cycle."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ssdfl.engine.gaps import GapRecorder
from ssdfl.engine.job import Engine, Job, MakeEngine, Record, State, initial_state
from ssdfl.engine.local import LocalEngine
from ssdfl.engine.reference import ReferenceEngine
from ssdfl.engine.workers import one_thread_each
from ssdfl.errors import InputError
from ssdfl.graph import Clock
from ssdfl.learning import fork_generators

ENGINES: dict[str, MakeEngine] = {"local": LocalEngine, "reference": ReferenceEngine}
_NUMBERS_AT_ONCE = 1 << 20


def run(
    job: Job, engine: str = "local", state: State | None = None, in_place: bool = False
) -> Iterator[tuple[Record, State]]:
    """Execute a job, from the start or from a state; yield each cycle's record and the state after it.

    Args:
        in_place: the state that was yielded may change when the next is asked for. Saves the memory and time
            of a copy.

    Raises:
        InputError: an unknown engine, or parameters that grew beyond all bounds (step and device named).
    """
    if engine not in ENGINES:
        raise InputError("engine.name", engine, f"one of {', '.join(ENGINES)}", "Choose one of them.")
    clock = Clock(job.network, job.message_bytes)
    state = state or initial_state(job)
    gaps = GapRecorder(job)
    with closing(ENGINES[engine](job)) as worker:
        while state.cycle < job.cycles:
            with one_thread_each(), fork_generators(job.task.inputs.device):
                gaps.start(state.X)
                state, effective_gradient = _run_cycle(job, worker, clock, state, gaps)
                record = _record(job, worker, state, effective_gradient, gaps)
            yield record, state if in_place else state.clone()


def _run_cycle(
    job: Job, worker: Engine, clock: Clock, state: State, gaps: GapRecorder
) -> tuple[State, float]:
    """One cycle: the state after it, and the root mean square effective gradient of its training steps."""
    squares: list[float] = []
    trained = False
    for t in range(state.cycle * job.steps_per_cycle, (state.cycle + 1) * job.steps_per_cycle):
        step = job.schedule(t)
        if trained and not step.train.any():
            gaps.paused(state.X)
        X, carry, moved = worker.advance(state, step, t)
        trained = bool(step.train.any())
        if trained:
            of_devices = (moved.double() / job.learning_rate).square()
            _check_finite(of_devices, X, t, job.learning_rate)
            gaps.trained(of_devices)
            squares.append(float(of_devices.mean()))
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
    rms = math.sqrt(sum(squares) / len(squares)) if squares else 0.0
    return replace(state, cycle=state.cycle + 1), rms


def _check_finite(moved: Tensor, X: Tensor, t: int, learning_rate: float) -> None:
    """Refuse to go on with parameters that are not finite; only those that moved so far can be."""
    for device in torch.nonzero(~torch.isfinite(moved)).flatten().tolist():
        if torch.isfinite(X[device]).all():
            continue
        raise InputError(
            "training.learning_rate",
            learning_rate,
            f"one that converges (device {device} diverged at step {t})",
            "Lower it, or lower training.local_steps or the momentum.",
        )


def _record(job: Job, worker: Engine, state: State, effective_gradient: float, gaps: GapRecorder) -> Record:
    mean = state.X.mean(dim=0, keepdim=True)
    due = state.cycle % job.evaluate_every == 0 or state.cycle == job.cycles
    loss, accuracy, average = tested(worker, state.X, mean) if due else (math.nan, np.array([]), math.nan)
    return Record(
        cycle=state.cycle,
        accuracy=float(accuracy.mean()) if due else math.nan,
        accuracy_std=float(accuracy.std()) if due else math.nan,
        accuracy_worst=float(accuracy.min()) if due else math.nan,
        average_model_accuracy=average,
        loss=loss,
        consensus_distance=_consensus_distance(state.X, mean),
        effective_gradient=effective_gradient,
        transmissions=state.transmissions,
        sent_bytes=state.transmissions * job.message_bytes,
        time_s=float(state.ready_s.max()),
        device_accuracy=tuple(accuracy.tolist()),
        **gaps.record(),  # type: ignore[arg-type]
    )


def _consensus_distance(X: Tensor, mean: Tensor) -> float:
    """The root mean square distance of rows from their mean, a few rows at a time."""
    rows = X.split(max(1, _NUMBERS_AT_ONCE // X.shape[1]))
    distances = torch.cat([torch.linalg.vector_norm(some - mean, dim=1) for some in rows])
    return float(distances.double().square().mean().sqrt())


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
    return float(losses[:-1].double().mean()), accuracies[:-1].double().cpu().numpy(), float(accuracies[-1])
