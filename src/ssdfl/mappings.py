"""Select parts of mappings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def picked(values: Mapping[Key, Value], keys: Iterable[Key]) -> dict[Key, Value]:
    """The entries with the given keys, in their order; missing keys are left out.

    Examples:
        >>> picked({"a": 1, "b": 2}, ["b", "c"])
        {'b': 2}
    """
    return {key: values[key] for key in keys if key in values}


def without(values: Mapping[Key, Value], keys: Collection[Key]) -> dict[Key, Value]:
    """All entries except those with the given keys.

    Examples:
        >>> without({"a": 1, "b": 2}, ["a"])
        {'b': 2}
    """
    return {key: value for key, value in values.items() if key not in keys}


def without_none(values: Mapping[Key, Value | None]) -> dict[Key, Value]:
    """All entries except those that are None.

    Examples:
        >>> without_none({"a": 1, "b": None})
        {'a': 1}
    """
    return {key: value for key, value in values.items() if value is not None}


def prefixed(prefix: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """The entries with a prefix added to their keys.

    Examples:
        >>> prefixed("model.", {"weight": 1})
        {'model.weight': 1}
    """
    return {prefix + key: value for key, value in values.items()}
