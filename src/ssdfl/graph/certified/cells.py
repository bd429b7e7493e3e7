"""Cells of a proof: all sets with a number of devices in a range and some devices on known sides.

A set is a vector y of ±1 entries, +1 inside. A last entry stands for "inside" and keeps every form
even: a device is in the set if it agrees with that entry. Fixing whether two entries agree or
differ merges them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ssdfl.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Cell:
    """Sets of ``smallest`` to ``largest`` devices; entry v is ``sign[v]`` times its group's."""

    smallest: int
    largest: int
    group: IntArray
    sign: IntArray

    @property
    def num_groups(self) -> int:
        """The number of free entries."""
        return int(self.group.max()) + 1

    def sized(self, smallest: int, largest: int) -> Cell:
        """The part with a narrower range of sizes."""
        return replace(self, smallest=smallest, largest=largest)

    def merged(self, kept: int, gone: int, sign: int) -> Cell:
        """The part where group ``gone`` is ``sign`` times ``kept``; later groups move up."""
        assert kept < gone
        moved = self.group == gone
        group = np.where(moved, kept, self.group - (self.group > gone))
        return replace(self, group=group, sign=np.where(moved, sign * self.sign, self.sign))

    def fold(self, form: FloatArray) -> FloatArray:
        """A quadratic form of all entries, as a form of the groups."""
        fold = np.zeros((len(self.group), self.num_groups))
        fold[np.arange(len(self.group)), self.group] = self.sign
        folded: FloatArray = fold.T @ form @ fold
        return folded


def whole(num_devices: int) -> Cell:
    """All sets of at most half of the devices."""
    entries = np.arange(num_devices + 1)
    return Cell(1, num_devices // 2, entries, np.ones(num_devices + 1, dtype=np.int64))
