"""Rules: what a device sends and how it uses what it receives."""

from ssdfl.methods.moment import Moment, Rows
from ssdfl.methods.rules.base import Heard, Inbox, Memory, Message, Move, Rule
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
