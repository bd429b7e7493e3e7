"""``W X`` for a sparse W: in stretches of columns that stay in a core's cache, or by rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from ssdfl.arrays import FloatArray, IntArray, ranges
from ssdfl.engine.indices import index_of
from ssdfl.engine.threads import Threads
from ssdfl.graph import MixingMatrix

DENSE_SHARE = 0.5
_NUMBERS_IN_CACHE, _NUMBERS_MULTIPLIED = 1 << 18, 1 << 19
_LEAST_COLUMNS = 256
_ROWS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Bag:
    """What some rows of W X gather.

    Rows that are equal, such as those of devices that are all linked with each other, are summed
    once.

    Attributes:
        neighbours: whom rows hear, one row after the other.
        first: where each row starts.
        weights: of all neighbours.
        copies: the number of the sum that each row takes; None if hardly any are equal.
    """

    neighbours: Tensor
    first: Tensor
    weights: Tensor
    copies: Tensor | None

    def gathered(self, X: Tensor) -> Tensor:
        """The rows of W X."""
        sums: Tensor = embedding_bag(
            self.neighbours, X, self.first, mode="sum", per_sample_weights=self.weights
        )
        return sums if self.copies is None else sums.index_select(0, self.copies)


class Mixing:
    """A mixing matrix, or some rows and columns of it, ready for products with parameters.

    Few links: each row gathers its neighbours' rows. Many links: a dense product. All devices with
    equal weights: the mean. No links: a copy.

    Examples:
        >>> from ssdfl.graph import averaging
        >>> X = torch.tensor([[0.0], [4.0]])
        >>> out = torch.empty_like(X)
        >>> Mixing(averaging(2), X.dtype, X.device).into(out, X, Threads(1))
        >>> out.tolist()
        [[2.0], [2.0]]
    """

    def __init__(self, W: MixingMatrix, dtype: torch.dtype, device: torch.device) -> None:
        self.num_rows = W.shape[0]
        self.kind = _kind(W)
        if self.kind == "alike":
            self._share = round(float(W.data[0]) * W.shape[1], 9)
        if self.kind == "dense":
            self._dense = torch.from_numpy(W.toarray()).to(device, dtype)
        if self.kind == "sparse":
            columns = W.indices.astype(np.int64)
            self._neighbours = torch.from_numpy(columns).to(device)
            self._starts = W.indptr.astype(np.int64)
            rounded = torch.from_numpy(W.data).to(dtype)
            self._weights = rounded.to(device)
            self._kinds = _kinds_of_rows(self._starts, columns, rounded.numpy())
            self._bags: dict[bytes, Bag] = {}

    @property
    def _has_many_rows(self) -> bool:
        return self.num_rows * _LEAST_COLUMNS > _NUMBERS_IN_CACHE

    def into(self, out: Tensor, X: Tensor, threads: Threads) -> None:
        """``out ← W X``."""
        if self.kind == "alone":
            out.copy_(X)
        elif self.kind == "sparse" and self._has_many_rows and X.device.type == "cpu":
            self._by_rows(out, X, threads)
        else:
            self._by_columns(out, X, threads)

    def _by_rows(self, out: Tensor, X: Tensor, threads: Threads) -> None:
        def some(thread: int, start: int) -> None:
            rows = np.arange(start, min(start + _ROWS_AT_ONCE, self.num_rows))
            out[start : start + _ROWS_AT_ONCE] = self.rows(X, rows)

        threads.each(some, range(0, self.num_rows, _ROWS_AT_ONCE))

    def _by_columns(self, out: Tensor, X: Tensor, threads: Threads) -> None:
        width = X.shape[1]
        if X.device.type == "cpu":
            numbers = _NUMBERS_IN_CACHE if self.kind == "sparse" else _NUMBERS_MULTIPLIED
            width = min(width, max(_LEAST_COLUMNS, numbers // max(X.shape[0], self.num_rows)))

        def stretch(thread: int, start: int) -> None:
            columns = slice(start, start + width)
            out[:, columns] = self._product(X[:, columns])

        threads.each(stretch, range(0, X.shape[1], width))

    def _product(self, X: Tensor) -> Tensor:
        if self.kind == "alike":
            mean: Tensor = X.mean(dim=0) * self._share
            return mean
        if self.kind == "dense":
            return self._dense @ X
        return self.rows(X.contiguous(), np.arange(self.num_rows))

    def rows(self, X: Tensor, which: IntArray) -> Tensor:
        """Rows of ``W X`` in any order, for a sparse W."""
        return self._bag(which).gathered(X)

    def _bag(self, which: IntArray) -> Bag:
        """Whom some rows hear, where each row's neighbours start, and their weights."""
        key = which.tobytes()
        if key in self._bags:
            return self._bags[key]
        bag = self._make_bag(which)
        if len(self._bags) < self.num_rows:
            self._bags[key] = bag
        return bag

    def _make_bag(self, which: IntArray) -> Bag:
        distinct, copies = self._distinct(which)
        counts = np.diff(self._starts)[distinct]
        place = self._weights.device
        index = index_of(ranges(self._starts[distinct], counts), place)
        offsets = torch.from_numpy(np.cumsum(counts) - counts).to(place)
        again = None if len(distinct) == len(which) else torch.from_numpy(copies).to(place)
        return Bag(self._neighbours[index], offsets, self._weights[index], again)

    def _distinct(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """The first of each kind of equal rows of W, and each row's kind, if that halves them."""
        kinds, first, kind = np.unique(self._kinds[which], return_index=True, return_inverse=True)
        if 2 * len(kinds) > len(which):
            return which, np.arange(len(which))
        return which[first], kind


def _kind(W: MixingMatrix) -> str:
    rows, cols = W.shape
    if W.nnz == rows == cols and bool((W.diagonal() == 1).all()):
        return "alone"
    if W.nnz == rows * cols and np.ptp(W.data) < 1e-12:
        return "alike"
    return "dense" if W.nnz > DENSE_SHARE * rows * cols else "sparse"


def _kinds_of_rows(starts: IntArray, columns: IntArray, weights: FloatArray) -> IntArray:
    """(n,) for each row, the first one that equals it.

    Examples:
        >>> weights = np.array([0.5, 0.5, 0.5, 0.5, 1.0])
        >>> _kinds_of_rows(np.array([0, 2, 4, 5]), np.array([0, 1, 0, 1, 2]), weights).tolist()
        [0, 0, 2]
    """
    counts = np.diff(starts)
    own = np.arange(len(counts))
    row = np.repeat(own, counts)
    looks = np.bincount(row, weights=weights * np.sqrt(columns + 2.0), minlength=len(own))
    _, first, kind = np.unique(looks, return_index=True, return_inverse=True)
    like = np.where(counts == counts[first[kind]], first[kind], own)
    others = ranges(starts[like], counts)
    differs = (columns != columns[others]) | (weights != weights[others])
    like[row[differs]] = row[differs]
    return like
