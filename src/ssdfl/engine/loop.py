"""The loop that all engines share: cycles of steps, their costs, and one record a cycle."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ssdfl.engine.gaps import GapRecorder
from ssdfl.engine.job import Engine, Job, MakeEngine, Record, State, initial_state
from ssdfl.engine.local import LocalEngine
from ssdfl.engine.reference import ReferenceEngine
from ssdfl.errors import InputError
from ssdfl.graph import Clock

ENGINES: dict[str, MakeEngine] = {"local": LocalEngine, "reference": ReferenceEngine}
SMALL_JOB = 1 << 21


def run(job: Job, engine: str = "local", state: State | None = None) -> Iterator[tuple[Record, State]]:
    """Execute a job, from the start or from a state; yield each cycle's record and the state after it.

    Raises:
        InputError: an unknown engine, or parameters that grew beyond all bounds (step and device named).
    """
    if engine not in ENGINES:
        raise InputError("engine.name", engine, f"one of {', '.join(ENGINES)}", "Choose one of them.")
    worker = ENGINES[engine](job)
    clock = Clock(job.network, message_bytes(job))
    state = state or initial_state(job)
    gaps = GapRecorder(job)
    while state.cycle < job.cycles:
        with _threads_for(job), torch.random.fork_rng(devices=[]):
            gaps.start(state.X)
            state, effective_gradient = _run_cycle(job, worker, clock, state, gaps)
            record = replace(_record(job, worker, state, effective_gradient), **gaps.record())  # type: ignore[arg-type]
        yield record, state


@contextmanager
def _threads_for(job: Job) -> Iterator[None]:
    """One thread for small models: they gain nothing from more, and on a busy machine lose tenfold.

    It also makes their results the same bits on any number of cores.
    """
    before = torch.get_num_threads()
    small = job.network.num_devices * job.task.num_parameters <= SMALL_JOB
    torch.set_num_threads(1 if small and not job.task.has_convolutions else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def message_bytes(job: Job) -> int:
    """The bytes of one model on the wire."""
    theta = job.task.initial_parameters
    return theta.numel() * theta.element_size()


def _run_cycle(
    job: Job, worker: Engine, clock: Clock, state: State, gaps: GapRecorder
) -> tuple[State, float]:
    """One cycle: the state after it, and the root mean square effective gradient of its training steps."""
    squares: list[float] = []
    for t in range(state.cycle * job.steps_per_cycle, (state.cycle + 1) * job.steps_per_cycle):
        step = job.schedule(t)
        X, V, anchor = worker.advance(state, step, t)
        _check_finite(X, t, job.learning_rate)
        if step.train.any():
            of_devices = ((X - state.X) / job.learning_rate).square().sum(dim=1)
            gaps.trained(X, of_devices)
            squares.append(float(of_devices.sum()) / len(X))
        compute_s = np.where(step.train, job.network.compute_s * job.local_steps, 0.0)
        ready_s, sent = clock.advance(state.ready_s, step.W, compute_s)
        state = replace(
            state,
            X=X,
            V=V,
            anchor=anchor,
            trained=step.train,
            ready_s=ready_s,
            transmissions=state.transmissions + sent,
        )
    rms = math.sqrt(sum(squares) / len(squares)) if squares else 0.0
    return replace(state, cycle=state.cycle + 1), rms


def _check_finite(X: Tensor, t: int, learning_rate: float) -> None:
    finite = torch.isfinite(X).all(dim=1)
    if not finite.all():
        device = int(torch.argmin(finite.int()))
        raise InputError(
            "training.learning_rate",
            learning_rate,
            f"one that converges (device {device} diverged at step {t})",
            "Lower it, or lower training.local_steps or the momentum.",
        )


def _record(job: Job, worker: Engine, state: State, effective_gradient: float) -> Record:
    mean = state.X.mean(dim=0, keepdim=True)
    due = state.cycle % job.evaluate_every == 0 or state.cycle == job.cycles
    loss, accuracy, average = _tested(worker, state.X, mean) if due else (math.nan, np.array([]), math.nan)
    return Record(
        cycle=state.cycle,
        accuracy=float(accuracy.mean()) if due else math.nan,
        accuracy_std=float(accuracy.std()) if due else math.nan,
        accuracy_worst=float(accuracy.min()) if due else math.nan,
        average_model_accuracy=average,
        loss=loss,
        consensus_distance=float((state.X - mean).square().sum(1).mean().sqrt()),
        effective_gradient=effective_gradient,
        transmissions=state.transmissions,
        sent_bytes=state.transmissions * message_bytes(job),
        time_s=float(state.ready_s.max()),
        device_accuracy=tuple(accuracy.tolist()),
    )


def _tested(
    worker: Engine, X: Tensor, mean: Tensor
) -> tuple[float, np.ndarray[tuple[int], np.dtype[np.float64]], float]:
    loss, accuracy = worker.evaluate(X)
    average = worker.evaluate(mean)[1]
    return float(loss.mean()), accuracy.double().numpy(), float(average[0])
