"""The loop that all engines share: cycles of steps, their costs, and one record per cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import FloatArray, statistic
from ssdfl.engine.engine import Engine
from ssdfl.engine.gaps import GapRecorder
from ssdfl.engine.honest import Honest
from ssdfl.engine.job import Job
from ssdfl.engine.ranks import common_error
from ssdfl.engine.shares import RankShares, Shares
from ssdfl.engine.state import Start, State, home_of
from ssdfl.engine.threads import one_thread_each
from ssdfl.errors import InputError, import_object
from ssdfl.learning import Home, fork_generators
from ssdfl.methods import Step
from ssdfl.records import Record
from ssdfl.records.engines import ENGINES, engine_traits
from ssdfl.records.scores import Score

_NUMBERS_AT_ONCE = 1 << 20

Tested = dict[str, float | tuple[float, ...]]
"""The fields of a record about tests."""

_NOT_TESTED: Tested = {
    "score": math.nan,
    "score_std": math.nan,
    "score_worst": math.nan,
    "average_model_score": math.nan,
    "loss": math.nan,
    "device_score": (),
}


def make_engine(name: str, job: Job) -> Engine:
    """An engine in this process, ready for a job.

    Raises:
        InputError: there is no such engine, or it needs a process per device.
    """
    traits = engine_traits(name)
    if traits.process_per_device:
        here = [name for name, traits in ENGINES.items() if not traits.process_per_device]
        raise InputError(
            "engine.name", name, f"one of {', '.join(here)}", "Use run_experiment for it."
        )
    make = cast(Callable[[Job], Engine], import_object(traits.home, "engine"))
    return make(job)


def run(
    job: Job, engine: str = "local", state: Start | None = None, in_place: bool = False
) -> Iterator[tuple[Record, State]]:
    """Run a job, from the start or from a state; yield each cycle's record and the state after it.

    Args:
        state: the state to continue from; it must be the same in all ranks.
        in_place: whether computing the next state may overwrite the one that was yielded. This
            saves the memory and time of a copy.

    Raises:
        InputError: the engine is unknown, or parameters diverge; the error names step and device.
    """
    with closing(make_engine(engine, job)) as executor:
        here = None if state is None else state.part(job, executor.shares.devices)
        del state  # frees memory: the engine continues with its own copy
        now = executor.begin(here)
        del here
        loop = Loop(job, executor)
        while now.step < job.last_step:
            with one_thread_each(), fork_generators(job.task.device):
                now = loop.step(now)
                while now.step % job.steps_per_cycle:
                    now = loop.step(now)
                record = loop.record(now)
            yield record, now if in_place else now.clone()


class Loop:
    """Takes the steps of a job with an engine, and records each cycle."""

    def __init__(self, job: Job, engine: Engine) -> None:
        self.job, self.engine = job, engine
        in_ranks = isinstance(engine.shares, RankShares)
        self._clock = job.clock(engine.shares.devices if in_ranks else None)
        self._gaps = GapRecorder(job, engine.shares)
        self._honest = Honest(engine.shares, job.liars)
        self._begin_cycle()

    def _begin_cycle(self) -> None:
        self._times: list[int] = []
        self._squares: list[Tensor] = []
        self._begun = False
        self._training = False

    def step(self, state: State) -> State:
        """Take the next step."""
        t = state.step
        step = self.job.step(t)
        if not self._begun:
            self._gaps.start(state.X, home_of(state.memory))
            self._begun = True
        if self._training and not step.train.any():
            self._gaps.paused(state.X)
            self._training = False
        X, memory, moved, sent, heard_s = self.engine.advance(state, step, t)
        self._note(step, t, X, moved)
        ready_s, transmissions = self._costs(state.ready_s if heard_s is None else heard_s, step)
        return replace(
            state,
            step=t + 1,
            X=X,
            memory=memory,
            trained=step.train,
            ready_s=ready_s,
            transmissions=state.transmissions + (transmissions if sent is None else sent),
        )

    def _costs(self, ready_s: FloatArray, step: Step) -> tuple[FloatArray, int]:
        """When each device is ready for the next step, and the schedule's number of messages."""
        compute_s = np.where(step.train, self.job.network.compute_s * self.job.local_steps, 0.0)
        return self._clock.advance(ready_s, step.W, compute_s)

    def _note(self, step: Step, t: int, X: Tensor, moved: Tensor) -> None:
        """Remember how far devices moved in a training step."""
        if step.train.any():
            self._training = True
            self._times.append(t)
            self._squares.append(_marked((moved.double() / self.job.rate(t)).square(), X))

    def record(self, state: State) -> Record:
        """The record of the cycle that ends here.

        Raises:
            InputError: some parameters are not finite.
        """
        if self._training:
            self._gaps.paused(state.X)
        mean = self._honest.mean(state.X)
        squares, distances, time_s = self._gathered(state, mean)
        _check_finite(squares, self._times, self.job)
        self._gaps.trained(squares)
        counted, job = self._honest.counted, self.job
        record = Record(
            cycle=state.step // job.steps_per_cycle,
            consensus_distance=float(counted(distances).square().mean().sqrt()),
            effective_gradient=math.sqrt(counted(squares).mean()) if squares.numel() else 0.0,
            transmissions=state.transmissions,
            sent_bytes=state.transmissions * job.message_bytes,
            time_s=time_s,
            real_s=state.real_s,
            **self._tested(state, mean),  # type: ignore[arg-type]
            **self._gaps.record(),  # type: ignore[arg-type]
        )
        self._begin_cycle()
        return record

    def _gathered(self, state: State, mean: Tensor) -> tuple[Tensor, Tensor, float]:
        """What all devices say of a cycle, in one exchange, since ranks wait for each.

        Returns:
            (N, steps) squared effective gradients, (N,) distances from the mean, and the time.
        """
        task, shares = self.job.task, self.engine.shares
        distances = _distances(task.trained(state.X), task.trained(mean))
        latest = torch.full_like(distances, shares.latest(state.ready_s))
        everyone = shares.everyone(torch.stack([*self._squares, distances, latest], dim=1))
        return everyone[:, :-2].contiguous(), everyone[:, -2], float(everyone[:, -1].max())

    def _tested(self, state: State, mean: Tensor) -> Tested:
        job, cycle = self.job, state.step // self.job.steps_per_cycle
        due = cycle % job.evaluate_every == 0 or cycle == job.cycles
        test = _TESTS[job.tested_models] if due else _not_tested
        home, score = home_of(state.memory), job.task.goal_score
        return test(self.engine, score, self._honest, state.X, mean, home)


def _marked(squares: Tensor, X: Tensor) -> Tensor:
    """Squared distances that devices moved, or NaN if their parameters are not finite."""
    for device in torch.nonzero(~torch.isfinite(squares)).flatten().tolist():
        squares[device] = math.inf if torch.isfinite(X[device]).all() else math.nan
    return squares


def _check_finite(squares: Tensor, times: list[int], job: Job) -> None:
    """Refuse parameters that are not finite; all ranks see the same and end together."""
    for t, of_step in zip(times, squares.T, strict=True):
        for device in torch.nonzero(of_step.isnan()).flatten().tolist()[:1]:
            raise common_error(
                "training.learning_rate",
                job.learning_rate,
                f"one that converges (device {device} diverged at step {t})",
                "Lower it, or lower training.local_steps or the momentum.",
            )


def _distances(X: Tensor, mean: Tensor) -> Tensor:
    """(n,) the distance of devices from a mean, computed a few rows at a time."""
    rows = X.split(max(1, _NUMBERS_AT_ONCE // X.shape[1]))
    return torch.cat([torch.linalg.vector_norm(some - mean, dim=1) for some in rows]).double()


def _not_tested(
    engine: Engine, score: Score, honest: Honest, X: Tensor, mean: Tensor, home: Home
) -> Tested:
    return _NOT_TESTED


def _mean_tested(
    engine: Engine, score: Score, honest: Honest, X: Tensor, mean: Tensor, home: Home
) -> Tested:
    _, scores = engine.evaluate(mean, mean_of_home(engine.shares, home))
    return {**_NOT_TESTED, "average_model_score": float(scores[0, 0])}


def mean_of_home(shares: Shares, home: Home) -> Home:
    """The mean model's buffers that are not mixed, (1, k) each; for whole numbers the maximum."""
    return {
        name: shares.mean(rows)
        if rows.is_floating_point()
        else shares.everyone(rows).amax(0, keepdim=True)
        for name, rows in home.items()
    }


def tested(
    engine: Engine, score: Score, honest: Honest, X: Tensor, mean: Tensor, home: Home
) -> Tested:
    """Test all devices' models and their mean, together if copying is cheap.

    Args:
        score: the task's first score.
        honest: the devices whose results count.
        home: the buffers that devices keep.
    """
    mean_home = mean_of_home(engine.shares, home)
    if X.numel() <= _NUMBERS_AT_ONCE:
        both_homes = {name: torch.cat([rows, mean_home[name]]) for name, rows in home.items()}
        losses, scores = engine.evaluate(torch.cat([X, mean]), both_homes)
    else:
        pairs = zip(engine.evaluate(X, home), engine.evaluate(mean, mean_home), strict=True)
        losses, scores = (torch.cat(both) for both in pairs)
    every_loss = engine.shares.everyone(losses[:-1]).double().cpu()
    everyone = engine.shares.everyone(scores[:-1]).double().cpu().numpy()
    counted = honest.those(everyone)
    first, lying, others = (
        everyone[counted, 0],
        everyone[~counted, 0],
        everyone[counted, 1:].mean(axis=0),
    )
    return {
        "score": float(first.mean()),
        "score_std": float(first.std()),
        "score_worst": score.worst(first.tolist()),
        "average_model_score": float(scores[-1, 0]),
        "loss": float(every_loss.numpy()[counted].mean()),
        "device_score": tuple(everyone[:, 0].tolist()),
        "liar_score": statistic(np.mean, lying),
        **{f"score_{number}": float(value) for number, value in enumerate(others, start=2)},
    }


_TESTS = {"all": tested, "mean": _mean_tested}
