"""A rule says what a device sends and how it uses what it receives.

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
"""What a rule keeps from step to step, by name: (n, k) rows."""


class Message:
    """What devices send in a step, as receivers will see it.

    Args:
        parts: (n, k) rows, one or more vectors that travel together.
        compressor: how they travel; as they are by default.
        exact: (n, k) what was compressed, if ``parts`` are what receivers see of it.
        kept: (n, k) what a device keeps back, so that mixing loses nothing: it is added to W
            applied to the messages.

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
        """K, numbers of one device's message before they are compressed."""
        return sum(int(part.shape[1]) for part in self.parts)

    @property
    def size_bytes(self) -> int:
        """The bytes of one device's message on the wire, which costs, clock and plan use."""
        itemsize = int(self.parts[0].itemsize)
        if self.compressor is None:
            return self.width * itemsize
        return self.compressor.size_bytes(self.width, itemsize)


class Move(Protocol):
    """The displacement of local training; zero for devices that do not train in a step."""

    def value(self) -> Rows:
        """(n, d) the displacement."""

    def direction(self) -> Rows:
        """(n, d) what local steps went down along on average: the displacement over −η E."""

    def added_to(self, rows: Rows) -> Rows:
        """The rows plus the displacement; ``rows`` is overwritten."""

    def applied_to(self, theta: Rows) -> Rows:
        """The same in new memory."""


@dataclass(frozen=True, eq=False)
class Inbox:
    """What some devices with the same number m of messages have received in a step.

    Attributes:
        places: (g,) which of the rows in hand these devices are.
        weights: (m, g) w_ij of the neighbours whose messages came.
        rows: (m, g, k) their messages, in the order of the neighbours' numbers.
        senders: (m, g) these numbers.
    """

    places: Rows
    weights: Rows
    rows: Rows
    senders: IntArray


class Heard:
    """What devices hear in a step, computed when it is asked for.

    What is missing (a link that is down, a device that is gone, a bad message) is not in it. Its
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
        """(n, k) W applied to the messages, and what senders kept back; for linear rules."""
        if self._mixed is None:
            raise TypeError("heard.mixed is only there for rules with linear = True")
        return self._mixed()

    @cached_property
    def own(self) -> Rows:
        """(n, k) these devices' own messages before compression; read-only."""
        return self._own()

    @cached_property
    def sent(self) -> Rows:
        """(n, k) these devices' own messages as others see them, not to be written into."""
        return self._sent()

    def each(self) -> Iterator[Inbox]:
        """What devices received, one by one; for rules that are not linear."""
        if self._each is None:
            raise TypeError("heard.each is only there for rules with linear = False")
        return self._each()


class Rule(ABC):
    """How devices exchange and combine. Subclass it for a rule of your own.

    Attributes:
        early: `send` does not look at the move, so messages may leave before training, which hides
            them.
        linear: `receive` uses ``heard.mixed`` and ``heard.own`` only.
        additive: `receive` returns ``heard.mixed`` plus the move if the rule is early, else
            ``heard.mixed``, and there is no memory. Engines may then add up in any order.
        steers: local steps ask `steer`.
        steady: the rule needs a schedule that takes turns with few matrices, all of whose messages
            arrive.
        matrices: how many, as `on` found.
        compressor: how messages travel; None if they travel as they are.
    """

    early: bool = True
    linear: bool = True
    additive: bool = False
    steers: bool = False
    steady: bool = False
    matrices: int = 1
    compressor: Compressor | None = None

    def on(self, matrices: int | None) -> Self:
        """A steady rule for a schedule with this many matrices; None if it never repeats.

        Raises:
            InputError: it cannot run on such a schedule.
        """
        if matrices is None or matrices > MOST_MATRICES:
            got = (
                "one whose links change at random"
                if matrices is None
                else f"one of {matrices} matrices"
            )
            expected = f"one that takes turns with at most {MOST_MATRICES} matrices, without faults"
            remedy = "The rule must hear every message. Take cta:compressor=… instead."
            raise InputError(f"schedule of {type(self).__name__}", got, expected, remedy)
        fitting = copy(self)
        object.__setattr__(fitting, "matrices", matrices)
        return fitting

    @property
    def plain_messages(self) -> bool:
        """Messages are the parameters as they are: `send` is the one below."""
        return type(self).send is Rule.send

    def init(self, theta: Rows) -> Memory:
        """What devices at (n, d) parameters keep before the first step."""
        return {}

    def steer(self, at: Moment, memory: Memory) -> Rows:
        """(n, d) what every local step goes down along besides its own direction."""
        raise NotImplementedError

    def send(
        self, at: Moment, theta: Rows, move: Move | None, memory: Memory
    ) -> tuple[Message, Memory]:
        """What devices send, and what they keep. ``move`` is None if the rule is early.

        By default the parameters: at the start of the step if the rule is early, else after
        training. A rule's own may write into the tensors of ``memory``.
        """
        if self.early:
            return Message(theta), memory
        assert move is not None
        return Message(move.applied_to(theta)), memory

    @abstractmethod
    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """(n, d) parameters after the step, and what devices keep.

        It may write into ``heard.mixed`` and into the tensors of ``memory``, not into ``theta``.
        """
