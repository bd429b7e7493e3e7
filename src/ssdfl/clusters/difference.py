"""Compare two plans: the devices that move, and the gain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ssdfl.clusters.explanation import explain
from ssdfl.clusters.fitting import fitting_plan, listed_names, missing_in
from ssdfl.clusters.formation import PREDICTIONS
from ssdfl.clusters.plan import Plan
from ssdfl.graph import Network
from ssdfl.lazy import LazyModule

if TYPE_CHECKING:
    import scipy.optimize as optimize
else:
    optimize = LazyModule("scipy.optimize")

_RULES_OF_TRAINING = ("tau_a", "tau_r", "local_steps", "message_bytes", "sends_early")


@dataclass(frozen=True)
class Move:
    """A device that changes its cluster; a cluster that continues has its number in the new plan.

    Attributes:
        before: number of its cluster in the old plan.
        after: number of its cluster in the new plan.
    """

    device: str
    before: int
    after: int


@dataclass(frozen=True)
class Gain:
    """A cost under the old and under the new plan; lower is better."""

    what: str
    before: float
    after: float

    def __str__(self) -> str:
        """The gain as text.

        Examples:
            >>> print(Gain("predicted seconds of a cycle", 2.0, 0.5))
            predicted seconds of a cycle: 0.5 instead of 2, 4 times less
        """
        return f"{self.what}: {self.after:.4g} instead of {self.before:.4g}, {self.change}"

    @property
    def change(self) -> str:
        """The relative change as text."""
        if self.after == self.before:
            return "the same"
        low, high = sorted((self.before, self.after))
        times = f"{high / low:.3g} times " if low > 0 else ""
        return f"{times}{'less' if self.after < self.before else 'more'}"


@dataclass(frozen=True)
class PlanDifference:
    """The differences between an old and a new plan.

    Attributes:
        continues: for each cluster of the new plan, the number of the old one it continues, or
            None.
        moves: devices of both plans whose cluster is not the continuation of their old one.
        new: devices that only the new plan has.
        gone: devices that only the old plan has.
        gains: costs that both plans state.
        notes: why a gain is unknown or not comparable.
    """

    num_clusters: tuple[int, int]
    continues: tuple[int | None, ...]
    moves: tuple[Move, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    gains: tuple[Gain, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON data."""
        return asdict(self)

    def lines(self, most: int = 20) -> Iterator[str]:
        """The difference as lines of text, for a terminal or a page."""
        before, after = self.num_clusters
        yield f"{after} clusters instead of {before}; {len(self.moves)} devices move."
        for what, names in (("new", self.new), ("gone", self.gone)):
            if names:
                yield f"{len(names)} {what}: {listed_names(names, most)}"
        for move in self.moves[:most]:
            yield f"{move.device} moves from cluster {move.before} to cluster {move.after}"
        if len(self.moves) > most:
            yield f"… and {len(self.moves) - most} more move."
        yield from map(str, self.gains)
        yield from self.notes


def compare_plans(old: Plan, new: Plan, network: Network | None = None) -> PlanDifference:
    """Compare a new plan with an old one.

    A cluster continues as the new one with which it shares most devices, so that the fewest move.

    Args:
        network: the network on which to time both plans, if they fit it.

    Examples:
        >>> before = Plan(((0, 1), (2, 3)), "by hand", names=("a", "b", "c", "d"))
        >>> after = Plan(((0, 1, 2), (3,)), "by hand", names=("a", "b", "c", "d"))
        >>> compare_plans(before, after).moves
        (Move(device='c', before=1, after=0),)
    """
    before, after = _cluster_of(old), _cluster_of(new)
    continues = _continuations(before, after, old.num_clusters, new.num_clusters)
    moves = tuple(
        Move(name, before[name], cluster)
        for name, cluster in after.items()
        if name in before and continues[cluster] != before[name]
    )
    gains, notes = _gains(old, new, network)
    return PlanDifference(
        num_clusters=(old.num_clusters, new.num_clusters),
        continues=continues,
        moves=moves,
        new=missing_in(before, after),
        gone=missing_in(after, before),
        gains=gains,
        notes=notes,
    )


def _cluster_of(plan: Plan) -> dict[str, int]:
    """The cluster of each device by its name."""
    return {str(plan.name_of(device)): int(label) for device, label in enumerate(plan.labels)}


def _continuations(
    before: Mapping[str, int], after: Mapping[str, int], num_before: int, num_after: int
) -> tuple[int | None, ...]:
    """The matching of old and new clusters that shares most devices in total."""
    shared = Counter((before[name], after[name]) for name in after if name in before)
    overlap = np.zeros((num_before, num_after))
    for (old, new), count in shared.items():
        overlap[old, new] = count
    olds, news = optimize.linear_sum_assignment(overlap, maximize=True)
    pairs = zip(olds.tolist(), news.tolist(), strict=True)
    of_new = {new: old for old, new in pairs if overlap[old, new] > 0}
    return tuple(of_new.get(cluster) for cluster in range(num_after))


def _gains(
    old: Plan, new: Plan, network: Network | None
) -> tuple[tuple[Gain, ...], tuple[str, ...]]:
    timed = () if network is None else (_gain_on(network, old, new),)
    if not _is_same_training(old, new):
        return timed, (
            "The plans were made for different training, so their predictions do not compare.",
        )
    return (*timed, *_gain_in_score(old, new)), ()


def _gain_on(network: Network, old: Plan, new: Plan) -> Gain:
    before_s, after_s = (
        explain(network, fitting_plan(plan, network)).cycle_s for plan in (old, new)
    )
    return Gain(f"predicted seconds of a cycle on {network.title}", before_s, after_s)


def _gain_in_score(old: Plan, new: Plan) -> Iterator[Gain]:
    """The gain in the plans' own predictions, if both predict the same cost."""
    before, after = old.decision, new.decision
    is_known = before.score is not None and after.score is not None
    if is_known and before.score_name == after.score_name and before.score_name in PREDICTIONS:
        what = f"predicted {before.score_name} to an accuracy, each on the network it was made for"
        yield Gain(what, float(before.score or 0), float(after.score or 0))


def _is_same_training(old: Plan, new: Plan) -> bool:
    before, after = ({"sends_early": True, **plan.settings} for plan in (old, new))
    return all(before.get(name) == after.get(name) for name in _RULES_OF_TRAINING)
