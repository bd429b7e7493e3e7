"""Methods as schedules, and what can be done to a schedule."""

from ssdfl.methods.faults import drop_devices, drop_links
from ssdfl.methods.schedules import METHODS, Method, ScheduleInputs, find_method
from ssdfl.methods.step import Mixer, Schedule, Step, alternate, always

__all__ = [
    "METHODS",
    "Method",
    "Mixer",
    "Schedule",
    "ScheduleInputs",
    "Step",
    "alternate",
    "always",
    "drop_devices",
    "drop_links",
    "find_method",
]
