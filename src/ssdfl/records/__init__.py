"""What was asked and what came out: experiments, records and run folders. Needs no torch."""

from ssdfl.records.config import Experiment, load_experiment, make_experiment, to_toml
from ssdfl.records.folder import RunFolder
from ssdfl.records.record import METRICS, Metric, Record

__all__ = [
    "METRICS",
    "Experiment",
    "Metric",
    "Record",
    "RunFolder",
    "load_experiment",
    "make_experiment",
    "to_toml",
]
