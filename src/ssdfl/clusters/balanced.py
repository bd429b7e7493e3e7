"""A partition that considers devices' data: each cluster's data should resemble the whole.

Devices merge over the fastest links first, as in `cost_aware`. Among links of about the same time,
the two clusters whose data complement each other best merge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ssdfl.arrays import FloatArray
from ssdfl.clusters.cost_aware import (
    Agglomeration,
    Priority,
    agglomerate,
    clusters_after_merges,
    partitions_by_cost,
)
from ssdfl.clusters.partition import Clusters
from ssdfl.clusters.scores import ScoreInputs


class BalancedAgglomeration(Agglomeration):
    """Merges the clusters that reduce Σ_s N_s ‖mean_s − mean‖² most.

    Attributes:
        sums: for each cluster, the sum of its devices' differences from the mean.
    """

    def __init__(self, inputs: ScoreInputs) -> None:
        super().__init__(inputs)
        self.sums: dict[int, FloatArray] = dict(enumerate(inputs.differences))

    def priority(self, a: int, b: int) -> Priority:
        """The position of a pair of clusters in the queue, and the pair."""
        level, _ = self.between[a][b]
        together = self.sums[a] + self.sums[b]
        apart = self._scatter(self.sums[a], self.size[a]) + self._scatter(
            self.sums[b], self.size[b]
        )
        fall = apart - self._scatter(together, self.size[a] + self.size[b])
        return level, -round(fall, 9), min(a, b), max(a, b)

    @staticmethod
    def _scatter(total: FloatArray, size: int) -> float:
        return float(total @ total) / size

    def merge(self, a: int, b: int) -> None:
        """Merge cluster b into cluster a."""
        super().merge(a, b)
        self.sums[a] = self.sums[a] + self.sums.pop(b)


def partitions_by_data(
    inputs: ScoreInputs, sizes: Iterable[int]
) -> Iterator[list[tuple[Clusters, str]]]:
    """`partitions_by_cost`, plus a partition that balances data at each number of clusters."""
    merges = agglomerate(BalancedAgglomeration(inputs))
    n = inputs.network.num_devices
    for found in partitions_by_cost(inputs, sizes):
        balanced = clusters_after_merges(merges, n, len(found[0][0]))
        known = {clusters for clusters, _ in found}
        yield found if balanced in known else [*found, (balanced, "balance")]
