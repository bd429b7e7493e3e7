"""Experiments: described in TOML, run into a folder, resumed where they stopped."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ssdfl.experiments.config import Experiment, load_experiment, make_experiment, to_toml
from ssdfl.experiments.store import RunFolder

if TYPE_CHECKING:
    from ssdfl.experiments.run import Advance, iterate_experiment, run_experiment

__all__ = [
    "Advance",
    "Experiment",
    "RunFolder",
    "iterate_experiment",
    "load_experiment",
    "make_experiment",
    "run_experiment",
    "to_toml",
]


def __getattr__(name: str) -> object:
    """Import what needs torch only when it is used: reading a finished run does not."""
    if name not in ("Advance", "iterate_experiment", "run_experiment"):
        raise AttributeError(f"module 'ssdfl.experiments' has no attribute {name!r}")
    return getattr(importlib.import_module("ssdfl.experiments.run"), name)
