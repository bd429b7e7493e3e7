"""Experiments: run into a folder, resumed, many at a time, and compared with the paper."""

from ssdfl.experiments.advance import Advance
from ssdfl.experiments.models import export_model, load_encoding, load_model
from ssdfl.experiments.run import iterate_experiment, run_experiment

__all__ = [
    "Advance",
    "export_model",
    "iterate_experiment",
    "load_encoding",
    "load_model",
    "run_experiment",
]
