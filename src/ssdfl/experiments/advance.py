"""The value that a run yields after every cycle."""

from __future__ import annotations

from dataclasses import dataclass

from ssdfl.records import Record


@dataclass(frozen=True)
class Advance:
    """A finished cycle of a method: its record, or None if an earlier run did the cycle."""

    seed: int
    method: str
    cycle: int
    record: Record | None
