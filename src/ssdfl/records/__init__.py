"""Experiments, records and run folders: the inputs and outputs of runs. Needs no torch."""

from ssdfl.records.config import Experiment, load_experiment, make_experiment, to_toml
from ssdfl.records.folder import RunFolder
from ssdfl.records.frames import load_records
from ssdfl.records.record import METRICS, Metric, Record, metrics_of
from ssdfl.records.scores import SCORES, Goal, Score

__all__ = [
    "METRICS",
    "SCORES",
    "Experiment",
    "Goal",
    "Metric",
    "Record",
    "RunFolder",
    "Score",
    "load_experiment",
    "load_records",
    "make_experiment",
    "metrics_of",
    "to_toml",
]
