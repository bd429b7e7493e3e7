"""Torch's global generators, which all threads of a process share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch

_LOCK = threading.RLock()


@contextmanager
def seeded(seed: int | None, device: torch.device | str = "cpu") -> Iterator[None]:
    """Within the block, torch's generators start from a seed, and no other thread uses them so.

    They continue afterwards as if nothing had been drawn. Without a seed they are not reset first.
    A real device makes models for a changed mesh while it trains one with dropout.

    Args:
        device: whose generator is used besides the CPU's.
    """
    with _LOCK, fork_generators(torch.device(device)):
        if seed is not None:
            torch.manual_seed(seed)
        yield


def fork_generators(device: torch.device) -> AbstractContextManager[None]:
    """Restore torch's generators of the CPU and of a device at the end of the block."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
