"""Serverless semi-decentralized federated learning: plan, simulate and compare.

Examples:
    >>> import ssdfl
    >>> ssdfl.load_network("sites:sites=4,size=5").num_devices
    20
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ssdfl.clusters import Plan as Plan
    from ssdfl.clusters import spectral_bisection as spectral_bisection
    from ssdfl.errors import InputError as InputError
    from ssdfl.experiments import Experiment as Experiment
    from ssdfl.experiments import load_experiment as load_experiment
    from ssdfl.experiments import run_experiment as run_experiment
    from ssdfl.graph import Network as Network
    from ssdfl.graph import load_network as load_network
    from ssdfl.graph import make_network as make_network
    from ssdfl.schedule import METHODS as METHODS
    from ssdfl.schedule import Schedule as Schedule
    from ssdfl.schedule import Setting as Setting
    from ssdfl.schedule import Step as Step

_HOME = {
    "Experiment": "ssdfl.experiments",
    "InputError": "ssdfl.errors",
    "METHODS": "ssdfl.schedule",
    "Network": "ssdfl.graph",
    "Plan": "ssdfl.clusters",
    "Schedule": "ssdfl.schedule",
    "Setting": "ssdfl.schedule",
    "Step": "ssdfl.schedule",
    "load_experiment": "ssdfl.experiments",
    "load_network": "ssdfl.graph",
    "make_network": "ssdfl.graph",
    "run_experiment": "ssdfl.experiments",
    "spectral_bisection": "ssdfl.clusters",
}

__all__ = ["__version__", *_HOME]


def __dir__() -> list[str]:
    """The public names, also those not imported yet."""
    return sorted(__all__)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import ssdfl`` stays quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'ssdfl' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
