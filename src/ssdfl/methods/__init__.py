"""Methods: a schedule (who trains, which W mixes) and a rule (what is sent, how it is used)."""

from ssdfl.methods.attacks import ATTACKS, Attack, Hearing, find_attack
from ssdfl.methods.catalogue import Entry, catalogue, find_entries
from ssdfl.methods.compressors import COMPRESSORS, Compressor
from ssdfl.methods.describe import Description, describe
from ssdfl.methods.faults import drop_devices, drop_links
from ssdfl.methods.find import find_method, split_methods
from ssdfl.methods.liars import among_liars
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
    "ATTACKS",
    "COMPRESSORS",
    "METHODS",
    "RULES",
    "Attack",
    "Compressor",
    "Description",
    "Entry",
    "Heard",
    "Hearing",
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
    "among_liars",
    "catalogue",
    "describe",
    "drop_devices",
    "drop_links",
    "find_attack",
    "find_entries",
    "find_method",
    "find_rule",
    "period_of",
    "split_methods",
]
