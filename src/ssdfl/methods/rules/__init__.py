"""Rules: what a device sends and what it makes of what it receives."""

from ssdfl.methods.rules.base import Heard, Inbox, Memory, Message, Moment, Move, Rows, Rule
from ssdfl.methods.rules.find import RULES, find_rule

__all__ = [
    "RULES",
    "Heard",
    "Inbox",
    "Memory",
    "Message",
    "Moment",
    "Move",
    "Rows",
    "Rule",
    "find_rule",
]
