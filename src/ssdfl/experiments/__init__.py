"""Experiments: run into a folder, resumed where they stopped, many at a time, held against the paper."""

from ssdfl.experiments.advance import Advance
from ssdfl.experiments.run import iterate_experiment, run_experiment

__all__ = ["Advance", "iterate_experiment", "run_experiment"]
