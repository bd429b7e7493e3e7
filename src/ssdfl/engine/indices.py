"""Rows of a matrix by their numbers, without a copy if they are neighbours."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ssdfl.arrays import IntArray

Index = slice | Tensor
"""Rows of a matrix: a slice, which makes views and no copies, or their numbers."""


def index_of(places: IntArray, device: torch.device) -> Index:
    """An index of places: a slice if each follows the one before."""
    if (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return torch.from_numpy(places).to(device)


def rows_at(X: Tensor, index: Index) -> Tensor:
    """Some rows of a matrix: a view if the index is a slice, otherwise a copy."""
    return X[index] if isinstance(index, slice) else X.index_select(0, index)
