"""The subject of a proof: a mixing matrix, the best known cut, and possible cut values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, lcm

import numpy as np

from ssdfl.arrays import BoolArray, FloatArray
from ssdfl.graph.mixing import MixingMatrix, links_of

_DENOMINATOR = 10**4  # the largest denominator of a weight
_UNITS = 10**7  # the most units per 1: cuts are then whole numbers that floats hold exactly
_ROUNDING = 1e-9
_CLOSE = 1e-13


@dataclass(frozen=True, eq=False)
class Problem:
    """The claim that no set conducts less than ``cut``, whose conductance is ``upper``."""

    W: MixingMatrix
    cut: BoolArray
    upper: float

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return int(self.W.shape[0])

    @cached_property
    def units(self) -> int:
        """Every link's weight is a multiple of 1 / units; 0 if there is no such number."""
        denominators = 1
        weights = np.unique(links_of(self.W)[2])
        for weight in weights.tolist():
            fraction = Fraction(weight).limit_denominator(_DENOMINATOR)
            denominators = lcm(denominators, fraction.denominator)
            if abs(float(fraction) - weight) > _CLOSE or denominators > _UNITS:
                return 0
        return denominators

    @cached_property
    def parity(self) -> int | None:
        """0 or 1 if all devices' links weigh an even or an odd number of units, otherwise None.

        Then a set's cut is even, or odd exactly if the set has an odd number of devices.
        """
        weights = np.rint((self.W.sum(axis=1) - self.W.diagonal()) * self.units).astype(np.int64)
        parities = np.unique(weights % 2)
        return int(parities[0]) if self.units and len(parities) == 1 else None

    @cached_property
    def scale(self) -> float:
        """The mean weight of a device's links."""
        return float(1 - self.W.diagonal().mean())

    def possible(self, size: int, bound: float) -> float:
        """The smallest possible cut of a set of this size that is at least ``bound``."""
        if not self.units:
            return bound
        units = ceil(bound * self.units - _ROUNDING * self.units)
        if self.parity is not None and (units - self.parity * size) % 2:
            units += 1
        return units / self.units

    def enough(self, size: int) -> float:
        """A bound on cuts of this size that proves that none beats the best known one."""
        wanted = self.upper * size
        if not self.units:
            return wanted
        step = 2 if self.parity is not None else 1
        best = self.possible(size, wanted)
        return min(wanted, best - step / self.units + 2 * _ROUNDING)

    def ratio(self, smallest: int, largest: int, slope: float, offset: float) -> float:
        """The lowest conductance of sets with cuts of at least slope · (n − 2 size)² + offset."""
        sizes = range(smallest, largest + 1)
        return min(self.possible(size, self.bound(size, slope) + offset) / size for size in sizes)

    def shortfall(self, smallest: int, largest: int, slope: float) -> float:
        """The smallest offset with which such bounds prove that no set beats the best known one."""
        sizes = range(smallest, largest + 1)
        return max(self.enough(size) - self.bound(size, slope) for size in sizes)

    def bound(self, size: int, slope: float) -> float:
        """The part of a bound of the cut that depends on the set's size."""
        return slope * (self.num_devices - 2 * size) ** 2


def laplacian(W: MixingMatrix) -> FloatArray:
    """(n, n) the matrix L for which yᵀ L y / 4 is the cut of the set with ±1 vector y."""
    L: FloatArray = -W.toarray()
    np.fill_diagonal(L, 0.0)
    np.fill_diagonal(L, -L.sum(axis=1))
    return L
