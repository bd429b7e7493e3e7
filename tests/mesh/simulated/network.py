"""A simulated network: links lose, delay, reorder and duplicate messages; cuts may be one-way."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from mesh.simulated.scheduler import Host, Scheduler
from ssdfl.mesh.mesh_pb2 import Request, Response
from ssdfl.mesh.reverse_call import CHECK_EVERY_S
from ssdfl.mesh.server import MAX_REQUESTS
from ssdfl.mesh.transport import (
    Answer,
    Handler,
    UnreachableError,
    UnreadableError,
    Wanted,
    always,
)

NO_ANSWER = b"\xff no message at all"
"""What a liar may send instead of a message."""


class SupportsAnswer(Protocol):
    """Changes answers."""

    def answer(self, request: Request, honest: Answer) -> Answer | None:
        """What is said instead of an honest answer; None is silence."""


@dataclass
class Link:
    """One direction of a link.

    Attributes:
        least_s, most_s: a message takes a time between these, so that later ones may come first.
        lost, twice: how likely a message never comes, or comes two times.
    """

    least_s: float = 0.001
    most_s: float = 0.01
    lost: float = 0.0
    twice: float = 0.0
    is_cut: bool = False


class SimulatedNetwork:
    """Takes messages from one device to another."""

    def __init__(self, scheduler: Scheduler, seed: int) -> None:
        self.scheduler = scheduler
        self.links: defaultdict[tuple[str, str], Link] = defaultdict(Link)
        self.listening: dict[str, SimulatedTransport] = {}
        self._random = random.Random(seed)

    def send(self, source: str, target: str, arrive: Callable[[], None]) -> None:
        """Have a message arrive at another device, perhaps."""
        link = self.links[source, target]
        copies = 2 if self._random.random() < link.twice else 1
        for _ in range(copies):
            delay_s = self._random.uniform(link.least_s, link.most_s)
            if not link.is_cut and self._random.random() >= link.lost:
                self.scheduler.after(delay_s, arrive)


class Question:
    """A question under way: the first answer counts."""

    def __init__(
        self, transport: SimulatedTransport, neighbour: str, data: bytes, wanted: Wanted
    ) -> None:
        self.transport, self.neighbour, self.data = transport, neighbour, data
        self.answer: bytes | None = None
        self.refused, self.is_open = "", True
        self._wanted, self._wake = wanted, transport.scheduler.waker()

    def settle(self, answer: bytes | None, refused: str = "") -> None:
        """An answer has come, or a refusal."""
        if self.is_open:
            self.is_open, self.answer, self.refused = False, answer, refused
            self._wake()

    def check_wanted(self) -> None:
        """Look from time to time whether the answer is still wanted, as gRPC's caller does."""
        if self.is_open and not self._wanted():
            self.settle(None, "no longer wanted")
        elif self.is_open:
            self.transport.scheduler.after(CHECK_EVERY_S, self.check_wanted, self.transport.host)

    def back(self, answer: bytes | None, refused: str = "") -> None:
        """Send an answer to whoever asked."""
        network, name = self.transport.network, self.transport.name
        network.send(self.neighbour, name, partial(self._arrived, answer, refused))

    def _arrived(self, answer: bytes | None, refused: str) -> None:
        self.transport.scheduler.on(self.transport.host, partial(self.settle, answer, refused))


class SimulatedTransport:
    """One device's transport in simulated time; certificates are taken as checked."""

    def __init__(
        self,
        network: SimulatedNetwork,
        host: Host,
        neighbours: tuple[str, ...],
        liar: SupportsAnswer | None = None,
    ) -> None:
        self.network, self.host, self.name = network, host, host.name
        self.scheduler, self._neighbours = network.scheduler, neighbours
        self._handler: Handler | None = None
        self._liar = liar
        self._under_way: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def start(self, handler: Handler) -> None:
        """Begin to answer neighbours."""
        self._handler = handler
        self.network.listening[self.name] = self

    def stop(self) -> None:
        """Stop answering and asking."""
        self._handler = None

    def ask(
        self, neighbour: str, request: Request, timeout_s: float, wanted: Wanted = always
    ) -> Response:
        """A neighbour's answer."""
        assert neighbour in self._neighbours, f"{self.name} asks {neighbour}, which is no neighbour"
        question = Question(self, neighbour, request.SerializeToString(), wanted)
        self.network.send(self.name, neighbour, partial(self._reach, question))
        if wanted is not always:
            self.scheduler.after(CHECK_EVERY_S, question.check_wanted, self.host)
        self.scheduler.park(timeout_s)
        question.is_open = False
        if question.answer is None:
            raise UnreachableError(f"{neighbour}: {question.refused or 'no answer in time'}")
        if question.answer == NO_ANSWER:
            raise UnreadableError(f"{neighbour}: no response")
        return Response.FromString(question.answer)

    def _reach(self, question: Question) -> None:
        """A question has come to its device's machine."""
        there = self.network.listening.get(question.neighbour)
        if there is None or there.host.dead or there._handler is None:
            question.back(None, "connection refused")
        else:
            self.scheduler.on(there.host, partial(there.take, self.name, question))

    def take(self, name: str, question: Question) -> None:
        """Answer a question; one that may wait has a task, as it has a thread of gRPC's."""
        if self._handler is None or self._under_way[name] >= MAX_REQUESTS:
            question.back(None, "too many requests")
            return
        request = Request.FromString(question.data)
        if request.WhichOneof("kind") == "pull":
            self.scheduler.start(
                partial(self._answer, name, request, question), self.host, "answer"
            )
        else:
            self._answer(name, request, question)

    def _answer(self, name: str, request: Request, question: Question) -> None:
        if self._handler is None:
            question.back(None, "stopped")
            return
        self._under_way[name] += 1
        answer = self._handler(name, request)
        self._under_way[name] -= 1
        if self._liar is not None:
            answer = self._liar.answer(request, answer)
        if answer is None:
            return
        question.back(answer if isinstance(answer, bytes) else answer.SerializeToString())
