"""Questions to a neighbour that cannot be dialled travel back on a call that it keeps open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count

from ssdfl.mesh.mesh_pb2 import Request, Response

CHECK_EVERY_S = 0.2

Send = Callable[[Request | None], None]
"""Puts a request on an open call; None ends it."""


def _nowhere(request: Request | None) -> None:
    """There is no open call."""


class ReverseCall:
    """Asks one neighbour on the call that it keeps open, whenever there is one."""

    def __init__(self) -> None:
        self._send: Send = _nowhere
        self._waiting: dict[int, Future[Response]] = {}
        self._ids = count(1)
        self._lock = threading.Lock()

    def ask(self, request: Request, timeout_s: float, wanted: Callable[[], bool]) -> Response:
        """The answer to a request, as long as it is wanted.

        Raises:
            ConnectionError: no call is open, it broke, or no answer came in time.
        """
        number = request.id = next(self._ids)
        answer = self._sent(request)
        try:
            return _wait(answer, timeout_s, wanted)
        finally:
            self._waiting.pop(number, None)

    def _sent(self, request: Request) -> Future[Response]:
        with self._lock:
            if self._send is _nowhere:
                raise ConnectionError("not attached")
            answer = self._waiting[request.id] = Future[Response]()
            self._send(request)
        return answer

    def open(self, send: Send) -> None:
        """The neighbour has opened a call; one that was open before ends."""
        with self._lock:
            self._send(None)
            self._send = send

    def close(self) -> None:
        """End the open call."""
        with self._lock:
            self._send(None)

    def heard(self, answer: Response) -> None:
        """Hand an answer to the caller that waits for it; drop it if none does."""
        waiting = self._waiting.get(answer.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def ended(self, send: Send) -> None:
        """A call has ended or broken."""
        with self._lock:
            if self._send is send:
                self._send = _nowhere
                self._fail_all()

    def _fail_all(self) -> None:
        for waiting in list(self._waiting.values()):
            if not waiting.done():
                waiting.set_exception(ConnectionError("the call broke"))


def _wait(answer: Future[Response], timeout_s: float, wanted: Callable[[], bool]) -> Response:
    deadline = time.monotonic() + timeout_s
    while wanted() and time.monotonic() < deadline:
        try:
            return answer.result(min(CHECK_EVERY_S, timeout_s))
        except TimeoutError:
            continue
    raise ConnectionError("no answer")
