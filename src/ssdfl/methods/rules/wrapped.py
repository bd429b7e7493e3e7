"""A rule around another rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from ssdfl.methods.moment import Moment, Rows
from ssdfl.methods.rules.base import Memory, Message, Move, Rule

_INNER = "inner."


@dataclass(frozen=True)
class WrappedRule(Rule):
    """Delegates to an inner rule and has its traits; subclasses change parts of it.

    Attributes:
        rule: the inner rule.
    """

    rule: Rule

    def __post_init__(self) -> None:
        for trait in ("early", "linear", "steers", "corrects", "steady", "compressor"):
            object.__setattr__(self, trait, getattr(self.rule, trait))

    def on(self, matrices: int | None) -> Self:
        """The same rule, with the inner rule made for the schedule."""
        return replace(self, rule=self.rule.on(matrices))

    @property
    def plain_messages(self) -> bool:
        """Whether the inner rule's messages are plain and are sent unchanged."""
        return self.rule.plain_messages and type(self).send is WrappedRule.send

    def init(self, theta: Rows) -> Memory:
        """The inner rule's memory."""
        return self.with_inner({}, self.rule.init(theta))

    def steer(self, at: Moment, memory: Memory) -> Rows:
        """The inner rule's direction."""
        return self.rule.steer(at, self.inner(memory))

    def send(
        self, at: Moment, theta: Rows, move: Move | None, memory: Memory
    ) -> tuple[Message, Memory]:
        """The inner rule's messages."""
        message, kept = self.rule.send(at, theta, move, self.inner(memory))
        return message, self.with_inner(memory, kept)

    @staticmethod
    def inner(memory: Memory) -> Memory:
        """The inner rule's memory, by its own names."""
        return {
            name.removeprefix(_INNER): rows
            for name, rows in memory.items()
            if name.startswith(_INNER)
        }

    @staticmethod
    def with_inner(memory: Memory, kept: Memory) -> Memory:
        """The memory, with the inner rule's memory added."""
        return {**memory, **{_INNER + name: rows for name, rows in kept.items()}}
