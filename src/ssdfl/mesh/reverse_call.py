"""Questions to a neighbour that cannot be dialled: they travel back on a call that it keeps open."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import count

from ssdfl.mesh.mesh_pb2 import Request, Response

CHECK_EVERY_S = 0.2

Questions = queue.SimpleQueue[Request | None]
"""Requests for an open call; None ends it."""


class ReverseCall:
    """Asks one neighbour on the call that it keeps open, whenever there is one."""

    def __init__(self) -> None:
        self._questions: Questions = queue.SimpleQueue()
        self._waiting: dict[int, Future[Response]] = {}
        self._ids = count(1)
        self._is_open = False
        self._lock = threading.Lock()

    def ask(self, request: Request, timeout_s: float, wanted: Callable[[], bool]) -> Response:
        """The answer to a request, as long as it is wanted.

        Raises:
            ConnectionError: no call is open, it broke, or no answer came in time.
        """
        number = request.id = next(self._ids)
        answer = self._send(request)
        try:
            return _wait(answer, timeout_s, wanted)
        finally:
            self._waiting.pop(number, None)

    def _send(self, request: Request) -> Future[Response]:
        with self._lock:
            if not self._is_open:
                raise ConnectionError("not attached")
            answer = self._waiting[request.id] = Future[Response]()
            self._questions.put(request)
        return answer

    def opened(self, answers: Iterator[Response]) -> Iterator[Request]:
        """Requests for a call that the neighbour has opened; its answers are read meanwhile."""
        with self._lock:
            self._questions.put(None)  # a call that was open before ends
            self._questions = questions = Questions()
            self._is_open = True
        threading.Thread(target=self._read, args=(answers, questions), daemon=True).start()
        yield from iter(questions.get, None)

    def close(self) -> None:
        """End the open call."""
        self._questions.put(None)

    def _read(self, answers: Iterator[Response], questions: Questions) -> None:
        """Hand answers to those who wait for them, until the call ends or breaks."""
        try:
            for answer in answers:
                waiting = self._waiting.get(answer.id)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        except Exception:  # gRPC raises its own kinds when a call breaks
            pass
        finally:
            self._ended(questions)

    def _ended(self, questions: Questions) -> None:
        with self._lock:
            is_current = self._questions is questions
            if is_current:
                self._is_open = False
                self._fail_all()
        questions.put(None)

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
