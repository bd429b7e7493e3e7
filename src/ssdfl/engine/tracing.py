"""Batched functions with torch's transforms taken out: their plain tensor operations, recorded once.

`torch.func.vmap` and `torch.func.grad` wrap every operation again at every call, which takes longer than a
small model's arithmetic. What they come to is the same list of operations each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

CALLS_BEFORE = 16


def traced(function: Callable[..., Any], calls_before: int = CALLS_BEFORE) -> Callable[..., Any]:
    """The function, recorded for each combination of shapes that comes up often; the same bits, sooner.

    May be called from several threads, even if the function may not.

    Args:
        function: of tensors alone, its operations depending on their shapes only, as vmap demands.
        calls_before: how often shapes come up before they are recorded.
    """
    calls: Counter[tuple[torch.Size, ...]] = Counter()
    recorded: dict[tuple[torch.Size, ...], Callable[..., Any]] = {}
    lock = Lock()

    def call(*tensors: Tensor) -> Any:
        shapes = tuple(tensor.shape for tensor in tensors)
        if shapes not in recorded:
            with lock:
                calls[shapes] += 1
                if calls[shapes] <= calls_before:
                    return function(*tensors)
                if shapes not in recorded:
                    recorded[shapes] = make_fx(lambda *given: function(*given))(*tensors).forward
        with torch.no_grad():
            return recorded[shapes](*tensors)

    return call
