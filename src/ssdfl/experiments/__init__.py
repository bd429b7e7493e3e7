"""Run experiments into folders, resume them, run many at a time, compare them with the paper."""

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
