"""A rule says what a device sends and what it makes of what it receives.

A rule is a few pure functions over rows: row i of an (n, d) array belongs to device i. Engines call them
with torch tensors of many devices, a real device with one row. Nothing here needs torch: NumPy arrays work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

from ssdfl.errors import InputError, find_function
from ssdfl.specs import call_with_options, parse_spec

Rows = Any
"""(n, k) one row for each device: a tensor or an array."""

Memory = dict[str, Rows]
"""What a rule keeps from step to step, by name: (n, k) rows."""


@dataclass(frozen=True, eq=False)
class Message:
    """What devices send in a step: (n, k) rows as the receivers will see them."""

    rows: Rows

    @property
    def size_bytes(self) -> int:
        """The bytes of one device's message on the wire: the number that costs, clock and plan use."""
        return int(self.rows.shape[1]) * int(self.rows.itemsize)


class Move(Protocol):
    """The displacement of local training; zero for devices that do not train in a step."""

    @property
    def rate(self) -> float:
        """η of the step."""

    def value(self) -> Rows:
        """(n, d) the displacement."""

    def added_to(self, rows: Rows) -> Rows:
        """The rows plus the displacement; ``rows`` is overwritten."""

    def applied_to(self, theta: Rows) -> Rows:
        """The same in new memory."""


@dataclass(frozen=True, eq=False)
class Inbox:
    """What one device has received in a step.

    Attributes:
        own_weight: w_ii, with the weight of what is missing.
        weights: (m,) w_ij of the neighbours whose messages came.
        rows: (m, k) their messages.
    """

    own_weight: float
    weights: Rows
    rows: Rows


class Heard:
    """What devices hear in a step, computed when it is asked for.

    What is missing (a link that is down, a device that is gone, a bad message) is not in it. Its weight is on
    the diagonal of W.
    """

    def __init__(self, mixed: Callable[[], Rows], each: Callable[[], Sequence[Inbox]] | None = None) -> None:
        self._mixed, self._each = mixed, each

    @cached_property
    def mixed(self) -> Rows:
        """(n, k) W applied to the messages."""
        return self._mixed()

    @cached_property
    def each(self) -> Sequence[Inbox]:
        """(n,) what each device received, one by one; for rules that are not linear."""
        if self._each is None:
            raise TypeError("heard.each is only there for rules with linear = False")
        return self._each()


class Rule(Protocol):
    """How devices exchange and combine.

    Attributes:
        early: `send` does not look at the move, so messages may leave before training, which hides them.
        linear: `receive` uses ``heard.mixed`` only.
        additive: `receive` returns ``heard.mixed`` plus the move if the rule is early, else ``heard.mixed``,
            and there is no memory. Engines may then add up in any order.
    """

    early: ClassVar[bool]
    linear: ClassVar[bool]
    additive: ClassVar[bool]

    def init(self, theta: Rows) -> Memory:
        """What devices at (n, d) parameters keep before the first step."""

    def send(self, theta: Rows, move: Move | None, memory: Memory) -> tuple[Message, Memory]:
        """What devices send, and what they keep. ``move`` is None if the rule is early."""

    def receive(self, theta: Rows, move: Move, memory: Memory, heard: Heard) -> tuple[Rows, Memory]:
        """(n, d) parameters after the step, and what devices keep.

        It may write into ``heard.mixed`` and into the tensors of ``memory``, not into ``theta``.
        """


@dataclass(frozen=True)
class CombineThenAdapt:
    """`cta`, the paper's rule `eq:intraC_updates`: x⁺ = W x − η g̃(x).

    Mixing and training both start from the parameters at the start of the step, so messages travel while
    devices train.
    """

    early: ClassVar[bool] = True
    linear: ClassVar[bool] = True
    additive: ClassVar[bool] = True

    def init(self, theta: Rows) -> Memory:
        """Nothing."""
        return {}

    def send(self, theta: Rows, move: Move | None, memory: Memory) -> tuple[Message, Memory]:
        """The parameters at the start of the step."""
        return Message(theta), memory

    def receive(self, theta: Rows, move: Move, memory: Memory, heard: Heard) -> tuple[Rows, Memory]:
        """The mixed parameters plus the displacement."""
        return move.added_to(heard.mixed), memory


@dataclass(frozen=True)
class AdaptThenCombine:
    """`atc`, train, then mix: x⁺ = W (x − η g̃(x)).

    What code usually does where the paper's text leaves it open. A message leaves when its device has
    trained, so sending does not hide behind computing.
    """

    early: ClassVar[bool] = False
    linear: ClassVar[bool] = True
    additive: ClassVar[bool] = True

    def init(self, theta: Rows) -> Memory:
        """Nothing."""
        return {}

    def send(self, theta: Rows, move: Move | None, memory: Memory) -> tuple[Message, Memory]:
        """The parameters after training."""
        assert move is not None
        return Message(move.applied_to(theta)), memory

    def receive(self, theta: Rows, move: Move, memory: Memory, heard: Heard) -> tuple[Rows, Memory]:
        """The mixed parameters."""
        return heard.mixed, memory


RULES: dict[str, Callable[..., Rule]] = {
    "cta": CombineThenAdapt,
    "atc": AdaptThenCombine,
}


def find_rule(text: str) -> Rule:
    """The rule that ``name:key=value,…`` names, or a user's own by ``package.module:name``.

    A user's own is a class or function that returns a rule, called with the options; or a rule itself.

    Raises:
        InputError: no such rule, an option that it does not take, or something that is no rule.

    Examples:
        >>> find_rule("atc")
        AdaptThenCombine()
    """
    name, options = parse_spec(text, "rule")
    make = find_function(RULES, name, "rule")
    rule = make(**call_with_options(make, options, f"rule {name}"))
    parts = ("early", "linear", "additive", "init", "send", "receive")
    missing = [part for part in parts if not hasattr(rule, part)]
    if missing:
        expected = f"a rule; it has no {missing[0]}"
        raise InputError("rule", name, expected, "See 'A rule' in docs/extend.md.")
    return rule  # type: ignore[no-any-return]
