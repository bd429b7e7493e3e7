"""Engines execute schedules: `reference` is the oracle, `local` the fast one, `distributed` many processes.

Real devices are in `ssdfl.mesh`.
"""

from ssdfl.engine.checkpoint import load_state, save_state
from ssdfl.engine.job import Job, State, initial_state
from ssdfl.engine.loop import ENGINES, run

__all__ = ["ENGINES", "Job", "State", "initial_state", "load_state", "run", "save_state"]
