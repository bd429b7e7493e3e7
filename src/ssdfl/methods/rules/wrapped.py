"""A rule around another rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from ssdfl.methods.moment import Moment, Rows
from ssdfl.methods.rules.base import Memory, Message, Move, Rule

_INNER = "inner."


@dataclass(frozen=True)
class WrappedRule(Rule):
    """Does what the rule within does, and has its traits; subclasses change some of it.

    Attributes:
        rule: the rule within.
    """

    rule: Rule

    def __post_init__(self) -> None:
        for trait in ("early", "linear", "steers", "steady", "compressor"):
            object.__setattr__(self, trait, getattr(self.rule, trait))

    def on(self, matrices: int | None) -> Self:
        """With the rule within made for the schedule."""
        return replace(self, rule=self.rule.on(matrices))

    @property
    def plain_messages(self) -> bool:
        """If those of the rule within are, and nothing is done to them."""
        return self.rule.plain_messages and type(self).send is WrappedRule.send

    def init(self, theta: Rows) -> Memory:
        """What the rule within keeps."""
        return self.with_inner({}, self.rule.init(theta))

    def steer(self, at: Moment, memory: Memory) -> Rows:
        """As the rule within does."""
        return self.rule.steer(at, self.inner(memory))

    def send(
        self, at: Moment, theta: Rows, move: Move | None, memory: Memory
    ) -> tuple[Message, Memory]:
        """What the rule within sends."""
        message, kept = self.rule.send(at, theta, move, self.inner(memory))
        return message, self.with_inner(memory, kept)

    @staticmethod
    def inner(memory: Memory) -> Memory:
        """What the rule within keeps, by its own names."""
        return {
            name.removeprefix(_INNER): rows
            for name, rows in memory.items()
            if name.startswith(_INNER)
        }

    @staticmethod
    def with_inner(memory: Memory, kept: Memory) -> Memory:
        """The memory with what the rule within keeps."""
        return {**memory, **{_INNER + name: rows for name, rows in kept.items()}}
