"""Methods: a schedule says who trains and which matrix mixes, a rule what is sent and made of it."""

from ssdfl.methods.compressors import COMPRESSORS, Compressor
from ssdfl.methods.describe import Description, describe
from ssdfl.methods.faults import drop_devices, drop_links
from ssdfl.methods.find import find_method, split_methods
from ssdfl.methods.method import Method, ScheduleInputs
from ssdfl.methods.rules import (
    RULES,
    Heard,
    Inbox,
    Memory,
    Message,
    Moment,
    Move,
    Rows,
    Rule,
    find_rule,
)
from ssdfl.methods.schedules import METHODS
from ssdfl.methods.step import Mixer, Periodic, Schedule, Step, alternate, always, period_of

__all__ = [
    "COMPRESSORS",
    "METHODS",
    "RULES",
    "Compressor",
    "Description",
    "Heard",
    "Inbox",
    "Memory",
    "Message",
    "Method",
    "Mixer",
    "Moment",
    "Move",
    "Periodic",
    "Rows",
    "Rule",
    "Schedule",
    "ScheduleInputs",
    "Step",
    "alternate",
    "always",
    "describe",
    "drop_devices",
    "drop_links",
    "find_method",
    "find_rule",
    "period_of",
    "split_methods",
]
