"""Engines execute schedules: `reference` is the oracle, `local` the fast one, `distributed` many processes.

The mesh of real devices, `ssdfl.engine.mesh`, has a room of its own.
"""

from ssdfl.engine.checkpoint import load_state, save_state
from ssdfl.engine.job import Job, Record, State, initial_state
from ssdfl.engine.loop import ENGINES, run

__all__ = ["ENGINES", "Job", "Record", "State", "initial_state", "load_state", "run", "save_state"]
