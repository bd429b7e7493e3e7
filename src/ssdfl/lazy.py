"""Import modules on first use, so that small devices do not load modules they do not need."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class LazyModule:
    """A placeholder that imports its module on first access.

    Type checkers should see the module itself: import it under ``TYPE_CHECKING``, and use this
    class otherwise.

    Examples:
        >>> LazyModule("math").sqrt(9)
        3.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


@contextmanager
def collecting_later() -> Iterator[None]:
    """Import many modules without garbage collection, which finds little in them again and again.

    Importing PyTorch and ours takes a fifth less time so.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
