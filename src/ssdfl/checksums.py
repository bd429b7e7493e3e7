"""A checksum stored inside the JSON data that it covers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from ssdfl.errors import InputError

CHECKSUM = "checksum"


def with_checksum(data: Mapping[str, Any]) -> dict[str, Any]:
    """JSON data with its checksum added.

    Examples:
        >>> with_checksum({"a": 1})["checksum"][:12]
        'f9d86028c6e0'
    """
    return {**data, CHECKSUM: _digest(data)}


def check_checksum(data: Mapping[str, Any], covered: Collection[str], where: str) -> None:
    """Refuse JSON data that changed since `with_checksum`; a checksum of null is not checked.

    Args:
        covered: the keys that the checksum covers; others may have been added.

    Raises:
        InputError: the checksum is missing or wrong.
    """
    if CHECKSUM not in data:
        raise InputError(
            f"{CHECKSUM} in {where}", "none", "one", f'Restore it, or add "{CHECKSUM}": null.'
        )
    if data[CHECKSUM] is None:
        return
    found = _digest(dict(filter(lambda item: item[0] in covered, data.items())))
    if data[CHECKSUM] != found:
        remedy = f'Restore a copy. If you changed it on purpose, set "{CHECKSUM}": null.'
        raise InputError(where, "damaged", f"data of the checksum {data[CHECKSUM]!s:.12}…", remedy)


def _digest(data: Mapping[str, Any]) -> str:
    """SHA-256 of JSON data, independent of indentation and order."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
