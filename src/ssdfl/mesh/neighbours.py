"""What a device knows about its neighbours: which ones answer, and how far each has come."""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from threading import Event

from ssdfl.mesh.evidence import MOST_PASSED_ON, Evidence
from ssdfl.mesh.mesh_pb2 import Ping, Request, Status
from ssdfl.mesh.reply_times import ReplyTimes
from ssdfl.mesh.runtime import REAL, Runtime
from ssdfl.mesh.transport import Transport, UnreachableError
from ssdfl.mesh.wire import BadMessageError

PING_EVERY_S = 0.5
HURRY_S = 0.1
"""From ping to ping while somebody waits for a neighbour."""
RETURN_S = 2.0
"""How long a neighbour that calls, but has not answered yet, is pinged that often."""
PING_DEADLINE_S = 1.5
MAX_MISSES = 2

log = logging.getLogger(__name__)


@dataclass
class Neighbour:
    """One neighbour as last heard of.

    Attributes:
        alive: whether it answers.
        step: the step that it was at.
        first_step: the first step of its present stretch.
        done: whether it has finished.
        plan_digest: of its plan, empty if it has none yet.
        misses: pings in a row that it did not answer.
        membership: the last change of membership that it knows.
        heard_s: when it last answered.
        called_s: when it last asked something without having answered.
    """

    alive: bool = False
    step: int = 0
    first_step: int = 0
    done: bool = False
    plan_digest: str = ""
    misses: int = 0
    membership: int = 0
    heard_s: float = -math.inf
    called_s: float = -math.inf


class Neighbours:
    """Pings every neighbour on a thread of its own; one that misses two in a row is gone.

    With adaptive deadlines, one that takes much longer than usual is gone at once.

    Args:
        plan_digest: of this device's plan, empty while it has none.
        deadline_s: how soon a ping has to be answered.
        bad_messages: counts impossible statuses by neighbour, beside whatever else it counts.
        evidence: what devices have signed; without it nobody is believed to be far ahead.
        runtime: its threads and clock.
        adaptive: whether deadlines follow what is usual; `deadline_s` is the longest then.
    """

    def __init__(
        self,
        names: Iterable[str],
        transport: Transport,
        plan_digest: Callable[[], str] = str,
        deadline_s: float = PING_DEADLINE_S,
        bad_messages: Counter[str] | None = None,
        evidence: Evidence | None = None,
        runtime: Runtime = REAL,
        adaptive: bool = False,
    ) -> None:
        self._known = {name: Neighbour() for name in names}
        self._deadline_s, self._runtime = deadline_s, runtime
        self._transport, self._plan_digest, self._evidence = transport, plan_digest, evidence
        self.bad_messages = Counter[str]() if bad_messages is None else bad_messages
        self._stopping = runtime.event()
        self.changed = runtime.condition()
        self.last_step = 1 << 62
        self._started = False
        self._adaptive, self._max_misses = adaptive, 1 if adaptive else MAX_MISSES
        self._usual: defaultdict[str, ReplyTimes] = defaultdict(partial(ReplyTimes, deadline_s))
        self._hurries: defaultdict[str, Event] = defaultdict(runtime.event)

    def start(self) -> None:
        """Begin to ping."""
        self._started = True
        for name in self._known:
            self._begin(name)

    def _begin(self, name: str) -> None:
        self._runtime.start(partial(self._watch, name), f"ping {name}")

    def meet(self, names: Iterable[str]) -> None:
        """Get to know more neighbours."""
        with self.changed:
            new = [name for name in names if name not in self._known]
            self._known = self._known | {name: Neighbour() for name in new}
        for name in new if self._started else ():
            self._begin(name)

    def part(self, names: Iterable[str]) -> None:
        """Forget some neighbours."""
        gone = set(names)
        with self.changed:
            self._known = {name: one for name, one in self._known.items() if name not in gone}
            self.changed.notify_all()

    def stop(self) -> None:
        """End pinging."""
        self._stopping.set()
        for hurry in list(self._hurries.values()):
            hurry.set()

    def hurry(self, name: str) -> None:
        """Ping a neighbour soon: somebody waits for it. Only where deadlines are adaptive."""
        if self._adaptive:
            self._hurries[name].set()

    def ask_soon(self, names: Iterable[str]) -> None:
        """Ping those of some neighbours that are there soon, as there may be news of them."""
        for name in names:
            if self[name].alive:
                self._hurries[name].set()

    def called(self, name: str) -> None:
        """A neighbour has asked something, so it is there: ping it at once if that is news."""
        neighbour = self._known.get(name)
        if neighbour is not None and not neighbour.alive:
            neighbour.called_s = self._runtime.now()
            self._hurries[name].set()

    def __getitem__(self, name: str) -> Neighbour:
        """A neighbour; one that was parted with is not there."""
        return self._known.get(name) or Neighbour()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(self._known)

    @property
    def alive(self) -> tuple[str, ...]:
        """Those that answer."""
        return tuple(name for name, neighbour in self._known.items() if neighbour.alive)

    def unfinished(self) -> dict[str, int]:
        """The steps of those that answer and are not done."""
        return {name: one.step for name, one in self._known.items() if one.alive and not one.done}

    def heard(self, name: str, status: Status) -> None:
        """Remember the status a neighbour answered; an impossible step is counted and ignored."""
        if max(status.step, status.first_step) > self.last_step:
            self.bad_messages[name] += 1
            told = f"step {status.step} (taking part from {status.first_step})"
            log.warning("%s says it is at %s of %d: ignored", name, told, self.last_step)
            return
        with self.changed:
            neighbour = self[name]
            _mark_alive(name, neighbour, status.step)
            has_changed = (
                bool(neighbour.plan_digest) and status.plan_digest != neighbour.plan_digest
            )
            if has_changed and not status.membership:  # else it follows a change of membership
                log.warning("%s has another plan now", name)
            neighbour.step = status.step
            neighbour.first_step = status.first_step
            neighbour.done = status.done
            neighbour.plan_digest = status.plan_digest
            neighbour.membership = status.membership
            neighbour.heard_s = self._runtime.now()
            self._learn(name, status)
            self.changed.notify_all()

    def _learn(self, name: str, status: Status) -> None:
        """Keep the steps that devices have signed."""
        if self._evidence is None:
            return
        for witness in status.witnesses[: MOST_PASSED_ON + 1]:
            try:
                self._evidence.take(witness, self._plan_digest())
            except BadMessageError as error:
                self.bad_messages[name] += 1
                log.warning("%s sent %s: ignored", name, error)

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until news of neighbours makes a condition true; whether it did in time."""
        deadline = self._runtime.now() + timeout_s
        with self.changed:
            while not condition():
                left_s = deadline - self._runtime.now()
                if left_s <= 0 or self._stopping.is_set():
                    return False
                self.changed.wait(min(left_s, PING_EVERY_S))
        return True

    def _watch(self, name: str) -> None:
        while not self._stopping.is_set() and name in self._known:
            self._ping(name)
            self._pause(name)

    def _pause(self, name: str) -> None:
        """Wait until the next ping is due."""
        if self._stopping.wait(HURRY_S) or self._returns(name):
            return
        self._hurries[name].wait(PING_EVERY_S - HURRY_S)
        self._hurries[name].clear()

    def _returns(self, name: str) -> bool:
        """Whether a neighbour that has not answered yet has called just now."""
        neighbour = self[name]
        return not neighbour.alive and self._runtime.now() - neighbour.called_s < RETURN_S

    def _ping(self, name: str) -> None:
        begun_s, usual = self._runtime.now(), self._usual[name]
        deadline_s = usual.deadline_s if self._adaptive else self._deadline_s
        try:
            answer = self._transport.ask(name, Request(ping=Ping()), deadline_s)
            usual.heard(self._runtime.now() - begun_s)
        except UnreachableError as error:
            self._missed(name, str(error))
            return
        if answer.WhichOneof("kind") == "status":
            self.heard(name, answer.status)
        else:
            self._missed(name, "it answers a ping with something else")

    def _missed(self, name: str, reason: str) -> None:
        self._usual[name].missed()
        with self.changed:
            neighbour = self[name]
            neighbour.misses += 1
            if neighbour.alive and neighbour.misses >= self._max_misses:
                log.warning("%s is gone (%s); its weight returns to this device", name, reason)
                neighbour.alive = False
                self.changed.notify_all()
            elif neighbour.misses == self._max_misses:
                log.info("%s is not there (%s)", name, reason)


def _mark_alive(name: str, neighbour: Neighbour, step: int) -> None:
    if not neighbour.alive:
        log.info("%s is there, at step %d", name, step)
    neighbour.alive = True
    neighbour.misses = 0
