"""Serverless semi-decentralized federated learning: plan, simulate and compare.

The main names, in the order of use: load a network (`load_network`), form its clusters
(`form_clusters`), describe an experiment (`Experiment`), run it (`run_experiment`), and look at the
results (`RunFolder`, `load_records`, `summarise`, `write_report`). Your own method is a function
from `ScheduleInputs` to a `Schedule` of `Step`, or a `Method` with its own rule.

Examples:
    >>> import ssdfl
    >>> network = ssdfl.load_network("sites:sites=4,size=5")
    >>> ssdfl.form_clusters(network).num_clusters
    4
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from ssdfl.clusters import Device as Device
    from ssdfl.clusters import FormationSettings as FormationSettings
    from ssdfl.clusters import Plan as Plan
    from ssdfl.clusters import form_clusters as form_clusters
    from ssdfl.clusters import spectral_bisection as spectral_bisection
    from ssdfl.errors import InputError as InputError
    from ssdfl.experiments import load_encoding as load_encoding
    from ssdfl.experiments import load_model as load_model
    from ssdfl.experiments import run_experiment as run_experiment
    from ssdfl.graph import Network as Network
    from ssdfl.graph import load_network as load_network
    from ssdfl.graph import make_network as make_network
    from ssdfl.methods import METHODS as METHODS
    from ssdfl.methods import Method as Method
    from ssdfl.methods import Schedule as Schedule
    from ssdfl.methods import ScheduleInputs as ScheduleInputs
    from ssdfl.methods import Step as Step
    from ssdfl.records import Experiment as Experiment
    from ssdfl.records import RunFolder as RunFolder
    from ssdfl.records import load_experiment as load_experiment
    from ssdfl.records import load_records as load_records
    from ssdfl.records import make_experiment as make_experiment
    from ssdfl.report import summarise as summarise
    from ssdfl.report import write_report as write_report

_HOME = {
    "Network": "ssdfl.graph",
    "load_network": "ssdfl.graph",
    "make_network": "ssdfl.graph",
    "Device": "ssdfl.clusters",
    "FormationSettings": "ssdfl.clusters",
    "Plan": "ssdfl.clusters",
    "form_clusters": "ssdfl.clusters",
    "spectral_bisection": "ssdfl.clusters",
    "Experiment": "ssdfl.records",
    "load_experiment": "ssdfl.records",
    "make_experiment": "ssdfl.records",
    "run_experiment": "ssdfl.experiments",
    "load_encoding": "ssdfl.experiments",
    "load_model": "ssdfl.experiments",
    "RunFolder": "ssdfl.records",
    "load_records": "ssdfl.records",
    "summarise": "ssdfl.report",
    "write_report": "ssdfl.report",
    "METHODS": "ssdfl.methods",
    "Method": "ssdfl.methods",
    "ScheduleInputs": "ssdfl.methods",
    "Schedule": "ssdfl.methods",
    "Step": "ssdfl.methods",
    "InputError": "ssdfl.errors",
}

__all__ = ["__version__", *_HOME]


def __dir__() -> list[str]:
    """The public names, including those not imported yet."""
    return sorted(__all__)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import ssdfl`` is fast."""
    if name not in _HOME:
        raise AttributeError(f"module 'ssdfl' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
