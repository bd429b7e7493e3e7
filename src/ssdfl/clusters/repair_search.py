"""The search of a repair: score options, and take those with a lower predicted cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from ssdfl.arrays import IntArray
from ssdfl.clusters.formation import INDIFFERENCE, FormationSettings
from ssdfl.clusters.partition import clusters_of
from ssdfl.clusters.repair_options import Option, RepairOptions
from ssdfl.clusters.scores import ScoreInputs, evaluate, find_score
from ssdfl.clusters.settling import Placement

SMALL = 256
"""Networks of up to this many devices are searched further, since scores are cheap there."""
_TRIALS = {True: 60, False: 4}
"""The number of partitions that are scored in a small and in a large network."""
_TIMED = 6
"""The number of ways to shorten a cycle that are timed before the best is scored."""
_NOTICEABLE = 1e-3


class RepairSearch:
    """The best clusters found so far.

    Attributes:
        labels: (N,) the cluster of each device.
        score: their predicted cost.
        steps: the changes and their reasons, as text.
    """

    def __init__(
        self,
        inputs: ScoreInputs,
        options: RepairOptions,
        settings: FormationSettings,
        labels: IntArray,
        keeps_threshold: bool,
    ) -> None:
        self.inputs, self.options, self.settings, self.labels = inputs, options, settings, labels
        self.steps: list[str] = []
        self._keeps_threshold = keeps_threshold
        self._price = settings.price_for(inputs)
        self._is_small = len(labels) <= SMALL
        self._trials = _TRIALS[self._is_small]
        self.score = self._scored(labels)

    @property
    def is_thorough(self) -> bool:
        """Whether to consider other partitions too: scores are cheap, and they choose the plan."""
        return self._is_small and self.settings.predicts and self.inputs.devices_differ

    def run(self, placements: Sequence[Placement], rivals: Sequence[IntArray]) -> None:
        """Try options, the most promising first, until the limit of scores is reached."""
        self.steps += map(self.options.told, placements)
        if self.settings.predicts:
            self._join(placements)
            self._shorten_cycle()
        if self.is_thorough:
            self._try_all(self.options.rivals(rivals), INDIFFERENCE)
            self._repeat(self.options.merges)
            self._shorten_cycle()  # a merged cluster may wait for a link that its parts did not
            self._move()

    def _join(self, placements: Sequence[Placement]) -> None:
        """Try to join a cluster with devices that settling made a new cluster."""
        for placement in placements:
            self._try_all(self.options.joins(self.labels, placement))

    def _move(self) -> None:
        """Try single devices in the clusters next to them."""
        for device in range(len(self.labels)):
            self._try_all(self.options.moves_of(self.labels, device))

    def _scored(self, labels: IntArray) -> float:
        self._trials -= 1
        return evaluate(find_score(self.settings.score), self.inputs, clusters_of(labels))

    def _try_all(self, options: Iterator[Option], factor: float = 1 + _NOTICEABLE) -> bool:
        """Take the first option that is better by a factor, then each one that is better still."""
        taken = [self._try(option, factor) for option in islice(options, max(self._trials, 0))]
        return any(taken)

    def _repeat(self, options: Callable[[IntArray], Iterator[Option]]) -> None:
        """Take the best of some options, as long as one helps."""
        while self._try_all(options(self.labels)):
            pass

    def _try(self, option: Option, factor: float = 1 + _NOTICEABLE) -> bool:
        score = self._scored(option.labels)
        if score * factor >= self.score or not self._is_allowed(option.labels, score):
            return False
        name = self.settings.score_name
        self.steps.append(
            f"{option.what}: predicted {name} {score:.4g} instead of {self.score:.4g}."
        )
        self.labels, self.score = option.labels, score
        return True

    def _is_allowed(self, labels: IntArray, score: float) -> bool:
        """Whether clusters keep to Φ_min, or the plan did not, or they are much better."""
        if not self._keeps_threshold or score * self._price < self.score:
            return True
        clusters = clusters_of(labels)
        threshold = self.settings.threshold(len(labels), len(clusters))
        return self.inputs.cache.weakest(clusters).lower >= threshold

    def _shorten_cycle(self) -> None:
        """Move links that a cycle waits for out of clusters, as long as that helps."""
        while self._trials > 0 and self._take_shortest():
            pass

    def _take_shortest(self) -> bool:
        option = self._shortest()
        return option is not None and self._try(option)

    def _shortest(self) -> Option | None:
        """The option with the shortest cycle; None if no option shortens it."""
        now_s = self._cycle_s(self.labels) * (1 - _NOTICEABLE)
        if now_s <= self._cycle_s(np.arange(len(self.labels))):
            return None
        timed = [(self._cycle_s(option.labels), option) for option in self._few_cuts()]
        best_s, best = min(timed, key=lambda one: one[0], default=(now_s, None))
        return best if best_s < now_s else None

    def _few_cuts(self) -> Iterator[Option]:
        return islice(self.options.cuts(self.labels), _TIMED)

    def _cycle_s(self, labels: IntArray) -> float:
        return self.inputs.cycle_cost(clusters_of(labels)).time_s
