"""Cache results for objects that cannot be hashed, such as a schedule's matrices."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")


def by_identity(function: Callable[[Key], Result], size: int = 4) -> Callable[[Key], Result]:
    """The function with a cache of its last few results, keyed by the identity of the argument.

    Examples:
        >>> double = by_identity(lambda values: [2 * value for value in values])
        >>> numbers = [1, 2]
        >>> double(numbers) is double(numbers)
        True
    """
    kept: deque[tuple[Key, Result]] = deque(maxlen=size)

    def remembered(key: Key) -> Result:
        for known, result in kept:
            if known is key:
                return result
        result = function(key)
        kept.append((key, result))
        return result

    return remembered
