"""Engines run schedules and rules.

`reference` is the oracle, `local` is fast, `distributed` uses many processes. Real devices are in
`ssdfl.mesh`.
"""

from ssdfl.engine.checkpoint import load_state, save_state
from ssdfl.engine.engine import Advanced, Engine
from ssdfl.engine.job import Job
from ssdfl.engine.loop import Loop, make_engine, run
from ssdfl.engine.state import State, initial_state

__all__ = [
    "Advanced",
    "Engine",
    "Job",
    "Loop",
    "State",
    "initial_state",
    "load_state",
    "make_engine",
    "run",
    "save_state",
]
