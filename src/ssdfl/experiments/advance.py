"""What a run yields after every cycle."""

from __future__ import annotations

from dataclasses import dataclass

from ssdfl.records import Record


@dataclass(frozen=True)
class Advance:
    """One more cycle of one method is done: its record, or None where an earlier run had done the cycle."""

    seed: int
    method: str
    cycle: int
    record: Record | None
