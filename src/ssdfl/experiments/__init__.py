"""Experiments: described in TOML, run into a folder, resumed where they stopped."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ssdfl.experiments.config import Experiment, load_experiment, make_experiment, to_toml
from ssdfl.experiments.store import RunFolder

if TYPE_CHECKING:
    from ssdfl.experiments.build import Instance, make_job, prepare
    from ssdfl.experiments.run import Advance, iterate_experiment, run_experiment

__all__ = [
    "Advance",
    "Experiment",
    "Instance",
    "RunFolder",
    "iterate_experiment",
    "load_experiment",
    "make_experiment",
    "make_job",
    "prepare",
    "run_experiment",
    "to_toml",
]


_HOME = {
    "Advance": "run",
    "Instance": "build",
    "iterate_experiment": "run",
    "make_job": "build",
    "prepare": "build",
    "run_experiment": "run",
}


def __getattr__(name: str) -> object:
    """Import what needs torch only when it is used: reading a finished run does not."""
    if name not in _HOME:
        raise AttributeError(f"module 'ssdfl.experiments' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ssdfl.experiments.{_HOME[name]}"), name)
