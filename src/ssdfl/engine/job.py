"""The input of an engine: one method on one task, and all else that determines the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from torch import Tensor

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import Clusters
from ssdfl.engine.moves import Standstill
from ssdfl.errors import InputError, check_range
from ssdfl.graph import Clock, MixingMatrix, Network
from ssdfl.learning import Optimizer, Task, draw_batches
from ssdfl.methods import RULES, Message, Moment, Rule, Schedule, Step, period_of

_LONGEST_PERIOD = 256
_STEPS_KEPT = 4


def _always_one(cycle: int) -> float:
    return 1.0


def _alike(one: MixingMatrix, other: MixingMatrix) -> bool:
    return one is other or (one - other).count_nonzero() == 0


def first_message(rule: Rule, task: Task) -> Message:
    """A rule's message for θ⁰, which has the size of all its messages."""
    theta = task.initial_parameters[None]
    at = Moment(0, np.zeros(1, dtype=np.int64), seed=0, rate=1.0, trains=False)
    message, _ = rule.send(at, theta, Standstill(theta), rule.init(theta))
    return message


@dataclass(frozen=True, eq=False)
class Job:
    """One method on one task.

    Attributes:
        rule: what devices send, and how they use what they receive.
        steps_per_cycle: τ_a + τ_r.
        local_steps: E, mini-batch steps of one iteration; 1 is exactly the paper's equation.
        batch_size: M, samples of a mini-batch; 0 uses the whole shard.
        evaluate_every: cycles between tests; the last cycle is always tested.
        tested_models: test ``all`` devices' models and their mean, or the ``mean`` only.
        gap_clusters: clusters whose consensus gaps, effective gradients and losses are recorded.
        rate_factor: the factor of the learning rate in each cycle, counted from 0.
        weights: (N,) the weight of each device's steps, 1 on average; None if all are equal.
        liars: devices that send false messages; results are those of the others.
        reset: when momenta restart: at every training ``step``, at every ``regime``, or ``never``.
        method: its name, which is stored in checkpoints.
    """

    task: Task
    network: Network
    schedule: Schedule
    optimizers: tuple[Optimizer, ...]
    cycles: int
    steps_per_cycle: int
    learning_rate: float
    batch_size: int = 16
    local_steps: int = 1
    evaluate_every: int = 1
    seed: int = 0
    gap_clusters: Clusters = ()
    rule: Rule = field(default_factory=RULES["cta"])
    rate_factor: Callable[[int], float] = _always_one
    reset: Literal["step", "regime", "never"] = "regime"
    weights: FloatArray | None = None
    tested_models: Literal["all", "mean"] = "all"
    liars: tuple[int, ...] = ()
    method: str = ""

    def __post_init__(self) -> None:
        N = self.network.num_devices
        for what, count in (
            ("shards", self.task.num_devices),
            ("optimizers", len(self.optimizers)),
        ):
            if count != N:
                raise InputError(
                    f"number of {what}", count, f"{N}, one per device", "Make them match."
                )
        if not self.learning_rate > 0:
            raise InputError("learning_rate", self.learning_rate, "a number above 0", "Try 0.05.")
        for what, value, least in (
            ("cycles", self.cycles, 1),
            ("steps_per_cycle", self.steps_per_cycle, 1),
            ("batch_size", self.batch_size, 0),
            ("local_steps", self.local_steps, 1),
            ("evaluate_every", self.evaluate_every, 1),
        ):
            check_range(what, value, least)
        if self.rule.steady:
            object.__setattr__(self, "rule", self.rule.on(self._number_of_matrices))

    @property
    def last_step(self) -> int:
        """The number of steps."""
        return self.cycles * self.steps_per_cycle

    @cached_property
    def first_message(self) -> Message:
        """A message of the size of all messages."""
        return first_message(self.rule, self.task)

    @property
    def message_bytes(self) -> int:
        """The bytes of one message on the wire."""
        return self.first_message.size_bytes

    def clock(self, devices: IntArray | None = None) -> Clock:
        """The simulated clock. The rule decides if messages leave before or after training.

        Args:
            devices: the devices whose time it keeps; all by default.
        """
        return Clock(
            self.network,
            self.message_bytes,
            sends_early=self.rule.early,
            keep=self.distinct_steps,
            devices=devices,
        )

    def rate(self, t: int) -> float:
        """η of step t."""
        return self.learning_rate * self.rate_factor(t // self.steps_per_cycle)

    def moment(self, t: int, devices: IntArray, trains: bool, training: bool) -> Moment:
        """The moment of step t for some devices, which all train in it or all do not.

        Args:
            training: whether any device trains in it.
        """
        return Moment(
            t=t,
            devices=devices,
            seed=self.seed,
            rate=self.rate(t),
            local_steps=self.local_steps,
            trains=trains,
            training=training,
            training_steps=self._training_steps,
            ends_cycle=(t + 1) % self.steps_per_cycle == 0,
            matrix=self._matrix_numbers[t % len(self._matrix_numbers)] if self.rule.steady else 0,
        )

    @cached_property
    def _training_steps(self) -> int:
        """The number of steps of the first cycle in which any device trains, at least 1."""
        return max(1, sum(bool(self.step(t).train.any()) for t in range(self.steps_per_cycle)))

    @cached_property
    def _matrix_numbers(self) -> list[int]:
        """The number of each step's matrix, if the period is short; otherwise only 0."""
        period = period_of(self.schedule)
        if period is None or period > _LONGEST_PERIOD:
            return [0]
        found: list[MixingMatrix] = []
        numbers = []
        for t in range(period):
            W = self.step(t).W
            same = [place for place, known in enumerate(found) if _alike(known, W)]
            numbers.append(same[0] if same else len(found))
            found += [] if same else [W]
        return numbers

    @property
    def _number_of_matrices(self) -> int | None:
        """The number of distinct matrices of the schedule; None if it never repeats."""
        period = period_of(self.schedule)
        if period is None or period > _LONGEST_PERIOD:
            return None
        return max(self._matrix_numbers) + 1

    def step(self, t: int) -> Step:
        """Step t of the schedule; the steps of a short period are computed once."""
        period = period_of(self.schedule)
        if period is None or period > _LONGEST_PERIOD:
            return self.schedule(t)
        place = t % period
        if place not in self._steps:
            self._steps[place] = self.schedule(t)
        return self._steps[place]

    @cached_property
    def _steps(self) -> dict[int, Step]:
        return {}

    @property
    def distinct_steps(self) -> int:
        """The number of steps that caches should keep: all of a short period."""
        period = period_of(self.schedule)
        if period is None or period > _LONGEST_PERIOD:
            return _STEPS_KEPT
        return max(_STEPS_KEPT, period)

    def samples(self, devices: Sequence[int] | IntArray, t: int) -> Tensor:
        """(n, E, M) the samples that n devices, in ascending order, use at step t.

        With whole shards as batches, the devices must hold equally many samples.
        """
        shards = self.task.shards
        if self.batch_size == 0:
            return shards.whole(devices)[:, None].expand(-1, self.local_steps, -1)
        shape, sizes = (self.local_steps, self.batch_size), shards.sizes[np.asarray(devices)]
        return shards.at(devices, draw_batches(self.seed, t, devices, shape, sizes))
