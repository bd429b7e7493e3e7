"""Import modules on first use, so that small devices do not pay for the others."""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """A placeholder that imports its module on first access.

    Type checkers should see the module itself: import it under ``TYPE_CHECKING``, and make this
    otherwise.

    Examples:
        >>> LazyModule("math").sqrt(9)
        3.0
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
