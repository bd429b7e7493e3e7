"""Records for Weights & Biases."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from ssdfl.errors import InputError, require
from ssdfl.experiments.logs.base import STEP, Outcome, scalars, warn
from ssdfl.files import write_text
from ssdfl.mappings import without
from ssdfl.records.config import Experiment
from ssdfl.records.folder import flat
from ssdfl.records.tables import Row

EXIT_CODES: dict[Outcome, int] = {"FINISHED": 0, "KILLED": 255, "FAILED": 1}
"""The exit codes that W&B itself reports for these outcomes."""
UPLOAD_LIMIT_S = 60.0
"""How long the end of a run waits for the server, unless the user's settings say otherwise."""


class _Known(BaseModel):
    """A W&B run of a method and seed, and the last cycle that was written to it."""

    id: str
    last: int = 0


class _Index(BaseModel):
    """Every W&B run of a folder, by ``method seed S``."""

    runs: dict[str, _Known] = {}


class WandbLog:
    """A W&B run for every method and seed, in a project with the experiment's name.

    ``WANDB_MODE``, ``WANDB_PROJECT``, ``WANDB_ENTITY`` and the other settings of W&B apply. W&B
    keeps its own copy of everything in the run's folder, in ``wandb``. If the server is lost, no
    record is lost with it, since ``wandb sync`` uploads that copy. ``wandb/ssdfl.json`` names the
    runs, so a resumed run continues in them.
    """

    def __init__(self, experiment: Experiment, out: Path, resumed: bool) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # no error reports
        self._wandb = require("wandb", "wandb")
        self._experiment, self._out = experiment, out
        self._settings = self._wandb.setup(self._wandb.Settings(silent=True)).settings
        self._mode: Literal["offline"] | None = None
        self._sign_in()
        self._file = out / "wandb" / "ssdfl.json"
        self._index = _read(self._file) if resumed else _Index()
        self._open: dict[str, Any] = {}
        self._reached = self._lost = False

    def last(self, seed: int, method: str) -> int:
        """The last cycle that the server has or, offline, the last one written."""
        name = _name(seed, method)
        if name not in self._index.runs:
            return 0
        if self._is_offline:
            return self._index.runs[name].last
        run = self._run(seed, method)
        found = run.starting_step - 1 if run is not None and run.resumed else 0
        if found >= self._experiment.cycles:
            self._finish(name, 0)
        return max(found, 0)

    def write(self, seed: int, method: str, row: Row) -> None:
        """Add one cycle's record."""
        name, run = _name(seed, method), self._run(seed, method)
        if run is None:
            return
        try:
            run.log(scalars(row), step=row[STEP])
        except Exception as error:  # of the process that W&B runs beside this one
            self._give_up(error)
            return
        self._index.runs[name].last = row[STEP]
        self._save()
        if row[STEP] == self._experiment.cycles:
            self._finish(name, 0)

    def close(self, outcome: Outcome) -> None:
        """Finish the W&B runs."""
        for name in list(self._open):
            self._finish(name, EXIT_CODES[outcome])

    @property
    def _is_offline(self) -> bool:
        return self._mode == "offline" or self._settings.mode != "online"

    def _sign_in(self) -> None:
        """Ask for the key before anything is computed."""
        if self._is_offline:
            return
        try:
            self._wandb.login()
        except Exception as error:  # no key, a wrong one, or no server
            raise self._unreachable(error) from error

    def _run(self, seed: int, method: str) -> Any:
        """The open W&B run of a method and seed; None after W&B has failed."""
        name = _name(seed, method)
        if name not in self._open and not self._lost:
            start = partial(self._start, seed, method)
            try:
                self._open[name] = start()
            except Exception as error:  # of whatever lies between us and the server
                if not self._reached:
                    raise self._unreachable(error) from error
                self._go_offline(error)
                with suppress(Exception):
                    self._open[name] = start()
        return self._open.get(name)

    def _start(self, seed: int, method: str) -> Any:
        """Open the run: reopen an earlier one, or create one with every key of the experiment."""
        name = _name(seed, method)
        known = self._index.runs.setdefault(name, _Known(id=secrets.token_hex(8)))
        values = flat(self._experiment.model_dump(mode="json"))
        config = without(values, ["methods", "seeds"])
        place = self._out / "wandb"
        place.mkdir(parents=True, exist_ok=True)
        run = self._wandb.init(
            project=self._settings.project or self._experiment.name,
            group=method,
            name=name,
            id=known.id,
            config=config | {"method": method, "seed": seed, "folder": str(self._out.resolve())},
            dir=str(self._out),
            mode=self._mode,
            reinit="create_new",
            resume=None if self._is_offline else "allow",
            settings=self._run_settings(),
        )
        self._save()
        if not self._reached and run.url:
            warn(f"W&B shows this run at {run.project_url}")
        self._reached = True
        return run

    def _run_settings(self) -> Any:
        """The settings of a run: W&B prints nothing between our lines, and never waits forever."""
        limit_s = self._settings.finish_timeout or UPLOAD_LIMIT_S
        return self._wandb.Settings(
            silent=True, console="off", finish_timeout=limit_s, finish_timeout_raises=True
        )

    def _finish(self, name: str, code: int) -> None:
        """End a run; records that the server does not accept in time stay in the folder."""
        run = self._open.pop(name)
        try:
            run.finish(exit_code=code)
        except Exception as error:  # of whatever lies between us and the server
            self._go_offline(error)

    def _go_offline(self, error: Exception) -> None:
        """Write the rest of this run to the folder only."""
        if self._mode != "offline":
            self._mode = "offline"
            later = f"wandb sync --no-skip-online {self._out / 'wandb'}/*run-* uploads them later"
            warn(f"W&B does not respond: its records stay in the folder; {later}. It says: {error}")

    def _give_up(self, error: Exception) -> None:
        self._lost = True
        self._open.clear()
        later = "--resume --log wandb adds them later"
        warn(f"W&B gets no more records of this run; {later}. It says: {error}")

    def _unreachable(self, error: Exception) -> InputError:
        remedy = "Run `wandb login`, or set WANDB_MODE=offline and upload later with `wandb sync`."
        place, said = self._settings.base_url, f"W&B says: {error}"
        return InputError("W&B server", place, "a server that accepts our key", f"{remedy} {said}")

    def _save(self) -> None:
        write_text(self._file, self._index.model_dump_json(indent=1), durable=False)


def _name(seed: int, method: str) -> str:
    return f"{method} seed {seed}"


def _read(file: Path) -> _Index:
    """The W&B runs that an earlier run in this folder opened, if any."""
    if not file.exists():
        return _Index()
    try:
        return _Index.model_validate_json(file.read_bytes())
    except ValidationError as error:
        remedy = "Remove it: --resume --log wandb then starts new W&B runs."
        raise InputError(
            "W&B runs of this folder", str(file), "JSON as we wrote it", remedy
        ) from error
