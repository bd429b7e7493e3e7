"""The command as one of several ranks, and as what starts them."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import typer

from ssdfl.errors import InputError

MISTAKE = "SSDFL_MISTAKE"
"""Names the file in which a rank leaves a user's mistake to the process that started all ranks."""


def number() -> int | None:
    """This process's rank, if torchrun has started it."""
    text = os.environ.get("RANK") if "TORCHELASTIC_RUN_ID" in os.environ else None
    return int(text) if text is not None else None


def started_again() -> bool:
    """Whether torchrun has started all ranks again after a death."""
    return number() is not None and int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def mistaken(text: str) -> int:
    """The exit code after a user's mistake.

    2, but 0 in a rank that this command has started: torch's launcher would try again, and in vain.
    """
    place = os.environ.get(MISTAKE)
    if place is None:
        return 2
    with Path(place).open("a", encoding="utf-8") as file:
        file.write(text)
    return 0


def another_is_mistaken(patience_s: float = 0.0) -> bool:
    """Whether another rank has found a user's mistake, or does so soon: then this one need not go on."""
    place = os.environ.get(MISTAKE)
    deadline = time.monotonic() + patience_s
    while place and not Path(place).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(place) and Path(str(place)).exists()


def start(out: Path, workers: int) -> None:
    """Run this very command in ranks on this machine; returns if all went well."""
    from ssdfl.engine.launch import launch

    if workers < 0:
        raise InputError("--workers", workers, "at least 0", "0 is one per core.")
    with tempfile.TemporaryDirectory() as folder:
        mistake = Path(folder) / "mistake"
        arguments = [*sys.argv[1:], "--out", str(out)]
        code = launch(arguments, workers or len(os.sched_getaffinity(0)), {MISTAKE: str(mistake)})
        if code or mistake.exists():
            raise typer.Exit(code or 2)
