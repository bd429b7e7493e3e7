"""Methods as schedules, and what can be done to a schedule."""

from ssdfl.schedule.combinators import drop_devices, drop_links
from ssdfl.schedule.methods import METHODS, Method, Setting, find_method
from ssdfl.schedule.step import Mixer, Schedule, Step, alternate, always

__all__ = [
    "METHODS",
    "Method",
    "Mixer",
    "Schedule",
    "Setting",
    "Step",
    "alternate",
    "always",
    "drop_devices",
    "drop_links",
    "find_method",
]
