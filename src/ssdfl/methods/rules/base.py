"""A rule decides what a device sends and how it uses what it receives.

A rule is a few pure functions over rows: row i of an (n, d) array belongs to device i. Engines call
them with torch tensors of many devices, a real device with one row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

from ssdfl.arrays import IntArray
from ssdfl.errors import InputError
from ssdfl.methods.compressors import Compressor
from ssdfl.methods.moment import Moment, Rows

MOST_MATRICES = 4

Memory = dict[str, Rows]
"""The state that a rule keeps from step to step, by name: (n, k) rows."""


class Message:
    """The messages of devices in a step, as receivers will see them.

    Args:
        parts: (n, k) rows, one or more vectors that are sent together.
        compressor: encodes them for the wire; by default they are sent unchanged.
        exact: (n, k) the rows before compression, if ``parts`` are the decoded ones.
        kept: (n, k) rows that the sender keeps back, so that mixing loses nothing: they are added
            to W applied to the messages.

    Attributes:
        parts: the vectors, in order.
    """

    def __init__(
        self,
        *parts: Rows,
        compressor: Compressor | None = None,
        exact: Rows = None,
        kept: Rows = None,
    ) -> None:
        self.parts, self.compressor, self.exact, self.kept = parts, compressor, exact, kept

    @cached_property
    def rows(self) -> Rows:
        """(n, k) the parts side by side."""
        if len(self.parts) == 1:
            return self.parts[0]
        return self.written_into(self.parts[0].new_empty((len(self.parts[0]), self.width)))

    def written_into(self, matrix: Rows, places: Any = slice(None)) -> Rows:
        """A matrix with the parts side by side in some of its rows."""
        start = 0
        for part in self.parts:
            stop = start + part.shape[1]
            matrix[places, start:stop] = part
            start = stop
        return matrix

    @property
    def width(self) -> int:
        """K, the number of values in a device's message before compression."""
        return sum(int(part.shape[1]) for part in self.parts)

    @property
    def size_bytes(self) -> int:
        """The bytes of a device's message on the wire, as used by costs, clock and plan."""
        itemsize = int(self.parts[0].itemsize)
        if self.compressor is None:
            return self.width * itemsize
        return self.compressor.size_bytes(self.width, itemsize)


class Move(Protocol):
    """The displacement of local training; zero for devices that do not train in a step."""

    def value(self) -> Rows:
        """(n, d) the displacement."""

    def direction(self) -> Rows:
        """(n, d) the mean descent direction of local steps: the displacement over −η E."""

    def added_to(self, rows: Rows) -> Rows:
        """The rows plus the displacement; ``rows`` is overwritten."""

    def applied_to(self, theta: Rows) -> Rows:
        """The rows plus the displacement, in new memory."""


@dataclass(frozen=True, eq=False)
class Inbox:
    """The messages received in a step by devices that all received the same number m of them.

    Attributes:
        places: (g,) the positions of these devices among the current rows.
        weights: (m, g) w_ij of the neighbours whose messages arrived.
        rows: (m, g, k) their messages, sorted by the neighbours' numbers.
        senders: (m, g) the neighbours' numbers.
    """

    places: Rows
    weights: Rows
    rows: Rows
    senders: IntArray


class Heard:
    """The messages that devices receive in a step, computed on request.

    Missing messages (a link that is down, a device that is gone, a bad message) are left out. Their
    weight is on the diagonal of W.

    """

    def __init__(
        self,
        mixed: Callable[[], Rows] | None,
        own: Callable[[], Rows],
        each: Callable[[], Iterator[Inbox]] | None = None,
        sent: Callable[[], Rows] | None = None,
    ) -> None:
        self._mixed, self._own, self._each, self._sent = mixed, own, each, sent or own

    @cached_property
    def mixed(self) -> Rows:
        """(n, k) W applied to the messages, plus what senders kept back; for linear rules."""
        if self._mixed is None:
            raise TypeError("heard.mixed is only available to rules with linear = True")
        return self._mixed()

    @cached_property
    def own(self) -> Rows:
        """(n, k) these devices' own messages before compression; read-only."""
        return self._own()

    @cached_property
    def sent(self) -> Rows:
        """(n, k) these devices' own messages as others see them; read-only."""
        return self._sent()

    def each(self) -> Iterator[Inbox]:
        """The received messages, one by one; for rules that are not linear."""
        if self._each is None:
            raise TypeError("heard.each is only available to rules with linear = False")
        return self._each()


class Rule(ABC):
    """How devices exchange and combine parameters. Subclass it to write your own rule.

    Attributes:
        early: `send` does not use the move, so messages may leave before training, which hides
            their transfer time.
        linear: `receive` uses only ``heard.mixed`` and ``heard.own``.
        additive: `receive` returns ``heard.mixed``, plus the move if the rule is early, and there
            is no memory. Engines may then add terms in any order.
        steers: local steps call `steer`.
        corrects: devices learn to undo their drift, so clusters may mix less; formation asks.
        steady: the rule needs a schedule that alternates between few matrices, and every message
            has to arrive.
        matrices: the number of these matrices, set by `on`.
        compressor: encodes messages; None if they are sent unchanged.
    """

    early: bool = True
    linear: bool = True
    additive: bool = False
    steers: bool = False
    corrects: bool = False
    steady: bool = False
    matrices: int = 1
    compressor: Compressor | None = None

    def on(self, matrices: int | None) -> Self:
        """The rule for a schedule with this many matrices; None if the schedule never repeats.

        Raises:
            InputError: the rule cannot run on such a schedule.
        """
        if matrices is None or matrices > MOST_MATRICES:
            got = (
                "one whose links change at random"
                if matrices is None
                else f"one of {matrices} matrices"
            )
            expected = f"one that alternates between at most {MOST_MATRICES} matrices, no faults"
            remedy = "The rule must receive every message. Use cta:compressor=… instead."
            raise InputError(f"schedule of {type(self).__name__}", got, expected, remedy)
        fitting = copy(self)
        object.__setattr__(fitting, "matrices", matrices)
        return fitting

    @property
    def plain_messages(self) -> bool:
        """Whether messages are the plain parameters: `send` is the default one."""
        return type(self).send is Rule.send

    def init(self, theta: Rows) -> Memory:
        """The memory of devices at (n, d) parameters before the first step."""
        return {}

    def steer(self, at: Moment, memory: Memory) -> Rows:
        """(n, d) a direction that every local step adds to its own."""
        raise NotImplementedError

    def send(
        self, at: Moment, theta: Rows, move: Move | None, memory: Memory
    ) -> tuple[Message, Memory]:
        """The messages of devices, and the memory to keep. ``move`` is None if the rule is early.

        By default, the messages are the parameters: at the start of the step if the rule is early,
        otherwise after training. An override may write into the tensors of ``memory``.
        """
        if self.early:
            return Message(theta), memory
        assert move is not None
        return Message(move.applied_to(theta)), memory

    @abstractmethod
    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """(n, d) parameters after the step, and the memory to keep.

        It may write into ``heard.mixed`` and into the tensors of ``memory``, not into ``theta``.
        """
