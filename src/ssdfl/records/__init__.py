"""What was asked and what came out: experiments, records and run folders. Needs no torch."""

from ssdfl.records.config import Experiment, load_experiment, make_experiment, to_toml
from ssdfl.records.folder import RunFolder
from ssdfl.records.record import Record

__all__ = ["Experiment", "Record", "RunFolder", "load_experiment", "make_experiment", "to_toml"]
