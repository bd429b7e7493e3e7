"""Facts about many groups of devices at once, whose mixing matrices are the blocks of one matrix.

A partition of a large network has thousands of small clusters. Facts about them are computed for
all together, with the same bits as one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from ssdfl.arrays import BoolArray, FloatArray, IntArray, SparseMatrix, ranges
from ssdfl.graph.components import component_labels
from ssdfl.graph.conductance import VALUE_DIGITS, VECTOR_DIGITS
from ssdfl.graph.mixing import MixingMatrix, Weights, links_within, places_of
from ssdfl.graph.spectrum import (
    DENSE_LIMIT,
    slowest_mode,
    slowest_modes,
    smallest_eigenvalue,
    smallest_eigenvalues,
)

_STACKED = 1 << 22  # values of the matrices that are decomposed in one call

ModeOf = Callable[[MixingMatrix, IntArray], tuple[float, FloatArray]]


def _slowest_mode(W: MixingMatrix, devices: IntArray) -> tuple[float, FloatArray]:
    return slowest_mode(W)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Disjoint groups of devices, and the mixing matrix inside each.

    Attributes:
        devices: (n,) the devices of all groups, one group after the other.
        starts: (k + 1,) where each group begins, and the end of the last.
        W: (n, n) block-diagonal.
        mode_of: finds λ₂ and the Fiedler vector of a large group, given its matrix and devices.
    """

    devices: IntArray
    starts: IntArray
    W: MixingMatrix
    mode_of: ModeOf = _slowest_mode

    @cached_property
    def sizes(self) -> IntArray:
        """(k,) the number of devices in each group."""
        return np.diff(self.starts)

    @cached_property
    def owner(self) -> IntArray:
        """(n,) the group of each position."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def places(self, number: int) -> slice:
        """The positions of a group."""
        return slice(int(self.starts[number]), int(self.starts[number + 1]))

    def matrix(self, number: int) -> MixingMatrix:
        """One group's mixing matrix."""
        first, end = int(self.starts[number]), int(self.starts[number + 1])
        ends = self.W.indptr[first : end + 1]
        entries = slice(int(ends[0]), int(ends[-1]))
        parts = (self.W.data[entries], self.W.indices[entries] - first, ends - ends[0])
        return csr_array(parts, shape=(end - first, end - first))

    def of_equal_size(self, chosen: IntArray) -> Iterator[IntArray]:
        """Batches of the chosen groups of equal size, by number, each small enough for memory."""
        by_size = chosen[np.argsort(self.sizes[chosen], kind="stable")]
        first = np.flatnonzero(np.diff(self.sizes[by_size], prepend=-1)).tolist()
        for start, end in pairwise([*first, len(by_size)]):
            most = max(1, _STACKED // int(self.sizes[by_size[start]]) ** 2)
            for k in range(start, end, most):
                yield by_size[k : min(k + most, end)]

    def stacked(self, numbers: IntArray) -> FloatArray:
        """(k, n, n) the dense matrices of groups of equal size."""
        n = int(self.sizes[numbers[0]])
        rows = self.starts[numbers][:, None] + np.arange(n)
        ends = self.W.indptr
        counts = (ends[rows + 1] - ends[rows]).ravel()
        entries = ranges(ends[rows].ravel(), counts)
        row = np.repeat(np.arange(len(numbers) * n), counts)
        column = self.W.indices[entries] - np.repeat(self.starts[numbers], n)[row]
        dense = np.zeros((len(numbers) * n, n))
        dense[row, column] = self.W.data[entries]
        return dense.reshape(len(numbers), n, n)

    @cached_property
    def slowest(self) -> tuple[FloatArray, FloatArray]:
        """(k,) each group's λ₂, and (n,) its Fiedler vectors concatenated; see `slowest_mode`."""
        return self.modes(np.arange(len(self.sizes)))

    def modes(self, chosen: IntArray) -> tuple[FloatArray, FloatArray]:
        """`slowest` of some groups; 0 and ones for the others."""
        lambda_2, fiedler = np.zeros(len(self.sizes)), np.ones(len(self.devices))
        for numbers in self.of_equal_size(chosen):
            for number, mode in zip(numbers.tolist(), self._modes(numbers), strict=True):
                lambda_2[number], fiedler[self.places(number)] = mode
        return lambda_2, fiedler

    def _modes(self, numbers: IntArray) -> Iterator[tuple[float, FloatArray]]:
        if not 1 < self.sizes[numbers[0]] <= DENSE_LIMIT:
            return (
                self.mode_of(self.matrix(number), self.devices[self.places(number)])
                for number in numbers.tolist()
            )
        return slowest_modes(self.stacked(numbers))

    @cached_property
    def smallest(self) -> FloatArray:
        """(k,) each group's λ_N; see `smallest_eigenvalue`."""
        found = np.zeros(len(self.sizes))
        for numbers in self.of_equal_size(np.arange(len(self.sizes))):
            found[numbers] = self._smallest(numbers)
        return found

    def _smallest(self, numbers: IntArray) -> FloatArray | list[float]:
        if self.sizes[numbers[0]] > DENSE_LIMIT:
            return [smallest_eigenvalue(self.matrix(number)) for number in numbers.tolist()]
        return smallest_eigenvalues(self.stacked(numbers))

    @cached_property
    def weakest_device(self) -> FloatArray:
        """(k,) the least cut conductance of one device of each group; 0 if it is not connected."""
        alone = 1.0 - self.W.diagonal()
        is_connected = self.parts(np.zeros(len(self.devices), dtype=bool)) == 1
        return np.where(is_connected, np.minimum.reduceat(alone, self.starts[:-1]), 0.0)

    def order(self, vector: FloatArray) -> IntArray:
        """(n,) positions, group by group, ordered by a vector; ties by position."""
        return np.lexsort((np.round(vector, VECTOR_DIGITS), self.owner))

    def prefixes(self, order: IntArray) -> FloatArray:
        """(n,) the cut conductance of the first 1, 2, … devices of each group; all of it: ∞."""
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        change = self._change_of_cut(place)
        found = np.full(len(order), np.inf)
        for numbers in self.of_equal_size(np.flatnonzero(self.sizes > 1)):
            n = int(self.sizes[numbers[0]])
            starts = self.starts[numbers][:, None]
            cut = np.cumsum(change[starts + numbers[:, None] + np.arange(n)], axis=1)[:, 1:]
            smaller = np.minimum(np.arange(1, n), n - np.arange(1, n))
            found[starts + np.arange(n - 1)] = np.round(cut / smaller, VALUE_DIGITS)
        return found

    def sweep(self, vector: FloatArray) -> BoolArray:
        """(n,) devices on the first side of their group's sweep cut; see `sweep_cut`."""
        order = self.order(vector)
        values = self.prefixes(order)
        least = np.minimum.reduceat(values, self.starts[:-1])
        best = np.flatnonzero(values == least[self.owner])
        _, earliest = np.unique(self.owner[best], return_index=True)
        last = best[earliest]
        first = np.zeros(len(order), dtype=bool)
        first[order] = (np.arange(len(order)) <= last[self.owner]) & (self.sizes > 1)[self.owner]
        return first

    def _change_of_cut(self, place: IntArray) -> FloatArray:
        """(n + k,) how the cut changes as each device passes, one more number per group."""
        row, column = places_of(self.W)
        left, right = place[row], place[column]
        once = left < right
        shift = self.owner[row[once]] + 1
        change = np.zeros(len(self.devices) + len(self.sizes))
        np.add.at(change, left[once] + shift, self.W.data[once])
        np.add.at(change, right[once] + shift, -self.W.data[once])
        return change

    def parts(self, first: BoolArray) -> IntArray:
        """(k,) the number of connected parts into which a cut divides each group."""
        labels = component_labels(links_within(self.W, 2 * self.owner + first))
        _, representative = np.unique(labels, return_index=True)
        return np.bincount(self.owner[representative], minlength=len(self.sizes))


def make_blocks(
    links: SparseMatrix,
    groups: Sequence[IntArray],
    weights: Weights,
    mode_of: ModeOf = _slowest_mode,
) -> Blocks:
    """The mixing inside disjoint groups of devices, each in ascending order.

    Examples:
        >>> from ssdfl.graph import load_network, metropolis
        >>> path = load_network("path:n=4").adjacency
        >>> blocks = make_blocks(path, [np.array([0, 1]), np.array([2, 3])], metropolis)
        >>> blocks.matrix(1).toarray().tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    devices = np.concatenate(groups)
    sizes = np.array([len(group) for group in groups])
    owner = np.repeat(np.arange(len(groups)), sizes)
    place = np.full(links.shape[0], -1)
    place[devices] = np.arange(len(devices))
    ends = links.indptr
    counts = ends[devices + 1] - ends[devices]
    entries = ranges(ends[devices], counts)
    row, column = np.repeat(np.arange(len(devices)), counts), place[links.indices[entries]]
    inside = (column >= 0) & (owner[column] == owner[row])
    kept = (links.data[entries][inside], (row[inside], column[inside]))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    W = weights(csr_array(kept, shape=(len(devices), len(devices))))
    return Blocks(devices, starts, W, mode_of)


def links_inside(links: SparseMatrix, devices: IntArray) -> SparseMatrix:
    """The links among some devices, given in ascending order, by position.

    It reads only the rows of these devices.

    Examples:
        >>> from ssdfl.graph import load_network
        >>> links_inside(load_network("path:n=4").adjacency, np.array([1, 2])).toarray().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    counts = links.indptr[devices + 1] - links.indptr[devices]
    entries = ranges(links.indptr[devices], counts)
    columns = links.indices[entries]
    place = np.minimum(np.searchsorted(devices, columns), len(devices) - 1)
    inside = devices[place] == columns
    kept = np.concatenate([[0], np.cumsum(inside)])[np.concatenate([[0], np.cumsum(counts)])]
    shape = (len(devices), len(devices))
    return csr_array((links.data[entries][inside], place[inside], kept), shape=shape)
