"""Run the command in several ranks: as one of them, or as the process that starts them.

When a rank dies, PyTorch's launcher restarts all of them, and rank 0 has to recognise its run. The
number of restarts does not help, since a machine counts only its own deaths. So rank 0 writes into
the run's folder which launcher started it.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import typer

from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.machine import cores

MISTAKE = "SSDFL_MISTAKE"
"""Environment variable: the file in which a rank reports a user's mistake to its parent process."""
LAUNCHER = "launcher"
"""The file in a run's folder that names the launcher of rank 0."""


def number() -> int | None:
    """This process's rank if torchrun, or something that sets its variables, started it."""
    if "RANK" not in os.environ:
        return None
    from ssdfl.engine.ranks import started_as_rank

    return int(os.environ["RANK"]) if started_as_rank() else None


def one_of_several() -> bool:
    """Whether this process is one of several ranks."""
    return number() is not None and os.environ["WORLD_SIZE"] != "1"


def begun(candidates: Iterable[Path]) -> Path | None:
    """The folder in which rank 0 of this launcher has already begun a run, if any."""
    return next((path for path in candidates if _read(path / LAUNCHER) == _launcher()), None)


def begin(folder: Path) -> None:
    """Record this rank's launcher in a run's folder."""
    write_text(folder / LAUNCHER, _launcher())


def _launcher() -> str:
    return f"{socket.gethostname()} {os.getppid()} {os.environ.get('TORCHELASTIC_RUN_ID', '')}\n"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def report_mistake(text: str, exit_code: int = 2) -> int:
    """Show a user's mistake, in this process or in the one that started it; returns the exit code.

    In a rank that this command started, the code is 0: otherwise torch's launcher would start the
    rank again, and it would fail again.

    Args:
        text: the message; empty if another rank shows it.
    """
    place = os.environ.get(MISTAKE)
    if place is None:
        if text:
            typer.echo(text, err=True)
        return exit_code
    if text:
        with suppress(FileExistsError), Path(place).open("x", encoding="utf-8") as file:
            file.write(text)
    return 0


def another_found_a_mistake(patience_s: float = 0.0) -> bool:
    """Whether another rank reports a user's mistake within ``patience_s``, so this one can stop."""
    place = os.environ.get(MISTAKE)
    deadline = time.monotonic() + patience_s
    while place and not Path(place).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(place) and Path(str(place)).exists()


def start(out: Path, workers: int) -> int:
    """Run this command in ``workers`` ranks here (0: one per core); returns its exit code."""
    from ssdfl.engine.launch import launch

    if workers < 0:
        raise InputError("--workers", workers, "at least 0", "0 is one per core.")
    with tempfile.TemporaryDirectory() as folder:
        mistake = Path(folder) / "mistake"
        arguments = [*sys.argv[1:], "--out", str(out)]
        code = launch(arguments, workers or cores(), {MISTAKE: str(mistake)})
        if mistake.exists():
            typer.echo(mistake.read_text(encoding="utf-8"), err=True)
            return 2
        return code
