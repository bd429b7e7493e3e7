"""How a device asks its neighbours and is asked: an interface, and gRPC with mutual TLS behind it.

Any neighbour can be asked, whichever of the two can be dialled: a device that cannot be keeps a call open to
each neighbour, and answers the questions that come back on it. Pings have connections of their own, so that
a neighbour whose slow link is busy with parameters does not look dead.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass
from itertools import count, product
from typing import Any, Protocol

from ssdfl.errors import InputError, require
from ssdfl.mesh.mesh_pb2 import Refusal, Request, Response

MOST_BYTES = 64 << 20
_SERVICE = "ssdfl.mesh.v1.Device"
_LOOK_S = 0.2
_PURPOSES = ("talk", "ping")
_PURPOSE_KEY = "ssdfl-purpose"
_MOST_AT_ONCE = 8  # requests of one neighbour, so that one cannot take all threads from the others
_OPTIONS = (
    ("grpc.max_send_message_length", MOST_BYTES),
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.keepalive_time_ms", 2000),
    ("grpc.keepalive_timeout_ms", 2000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.so_reuseport", 0),
    ("grpc.use_local_subchannel_pool", 1),
)

Connection = tuple[str, str]
"""A neighbour's name and a purpose."""

Wanted = Callable[[], bool]
"""Whether an answer is still wanted."""


def always() -> bool:
    """It is."""
    return True


Answer = Response | bytes
"""A response, or one made into bytes before, for several neighbours."""

Handler = Callable[[str, Request], Answer]
"""Answers a neighbour, by name."""


class UnreachableError(Exception):
    """A neighbour did not answer in time."""


class Transport(Protocol):
    """What a device needs of a network."""

    def start(self, handler: Handler) -> None:
        """Begin to answer neighbours."""

    def ask(self, neighbour: str, request: Request, timeout_s: float, wanted: Wanted = always) -> Response:
        """A neighbour's answer, as long as it is wanted.

        Raises:
            UnreachableError: none within the time, or no longer wanted.
        """

    def stop(self) -> None:
        """Stop answering and asking."""


@dataclass(frozen=True)
class Credentials:
    """A device's key and certificate and the authority's certificate, as PEM."""

    key: bytes
    certificate: bytes
    authority: bytes


class GrpcTransport:
    """gRPC with mutual TLS.

    Args:
        listen: ``host:port`` to be asked at, or empty for a device that cannot be dialled.
        neighbours: address of each neighbour, or empty for one that cannot be dialled.
    """

    def __init__(self, listen: str, neighbours: Mapping[str, str], credentials: Credentials) -> None:
        self._grpc: Any = require("grpc", "mesh")
        self._listen, self._neighbours, self._credentials = listen, dict(neighbours), credentials
        self._lines: dict[Connection, _Line] = {
            (name, purpose): _Line()
            for name, address in neighbours.items()
            for purpose in _PURPOSES
            if not address
        }
        self._channels: dict[Connection, Any] = {}
        self._asks: dict[Connection, Any] = {}
        self._answering: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server: Any = None
        self._stopping = threading.Event()
        self.refused: Counter[str] = Counter()
        self.port = 0

    def start(self, handler: Handler) -> None:
        """Begin to answer neighbours; raises InputError if the address cannot be listened at."""
        grpc, credentials = self._grpc, self._credentials
        client = grpc.ssl_channel_credentials(credentials.authority, credentials.key, credentials.certificate)
        dialled = {name: address for name, address in self._neighbours.items() if address}
        for name, purpose in product(dialled, _PURPOSES):
            options = (*_OPTIONS, ("grpc.ssl_target_name_override", name))
            channel = grpc.secure_channel(dialled[name], client, options=options)
            self._channels[name, purpose] = channel
            self._asks[name, purpose] = channel.unary_unary(
                f"/{_SERVICE}/Ask",
                request_serializer=Request.SerializeToString,
                response_deserializer=Response.FromString,
            )
        if self._listen:
            self._serve(handler)
        else:
            for connection in self._channels:
                threading.Thread(target=self._attach, args=(connection, handler), daemon=True).start()

    def ask(self, neighbour: str, request: Request, timeout_s: float, wanted: Wanted = always) -> Response:
        """A neighbour's answer, by a call of ours or on a call that it keeps open."""
        connection = (neighbour, "ping" if request.HasField("ping") else "talk")
        if connection in self._lines:
            return self._lines[connection].ask(request, timeout_s, wanted)
        try:
            call = self._asks[connection].future(request, timeout=timeout_s)
            while wanted():
                try:
                    answer: Response = call.result(timeout=_LOOK_S)
                    return answer
                except self._grpc.FutureTimeoutError:
                    continue
            call.cancel()
            raise UnreachableError(f"{neighbour}: no longer wanted")
        except self._grpc.RpcError as error:
            details = (error.details() or "").splitlines()
            raise UnreachableError(f"{neighbour}: {error.code().name} {' '.join(details[:1])}") from None
        except (ValueError, self._grpc.FutureCancelledError) as error:  # the channel was closed meanwhile
            raise UnreachableError(f"{neighbour}: {error}") from None

    def stop(self) -> None:
        """Stop answering and asking."""
        self._stopping.set()
        for line in self._lines.values():
            line.close()
        if self._server is not None:
            self._server.stop(grace=0.2).wait()
        for channel in self._channels.values():
            channel.close()

    def _serve(self, handler: Handler) -> None:
        grpc, credentials = self._grpc, self._credentials
        number = 4 + (_MOST_AT_ONCE + len(_PURPOSES)) * len(self._neighbours)
        threads = ThreadPoolExecutor(number, thread_name_prefix="mesh")
        self._server = grpc.server(threads, options=_OPTIONS)
        calls = grpc.method_handlers_generic_handler(_SERVICE, self._calls(handler))
        self._server.add_generic_rpc_handlers((calls,))
        server = grpc.ssl_server_credentials(
            [(credentials.key, credentials.certificate)], credentials.authority, require_client_auth=True
        )
        try:
            self.port = self._server.add_secure_port(self._listen, server)
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise InputError(
                "listen", self._listen, "an address that is free on this host", "Choose another."
            )
        self._server.start()

    def _calls(self, handler: Handler) -> dict[str, Any]:
        """What neighbours may call, by name, as gRPC wants it."""
        grpc = self._grpc

        def ask(request: Request, context: Any) -> Answer:
            name = self._caller(context)
            with self._lock:
                busy = self._answering[name] >= _MOST_AT_ONCE
                self._answering[name] += not busy
            if busy:
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{_MOST_AT_ONCE} requests are under way")
            try:
                return handler(name, request)
            finally:
                with self._lock:
                    self._answering[name] -= 1

        def attach(answers: Iterator[Response], context: Any) -> Iterator[Request]:
            name = self._caller(context)
            purpose = str(dict(context.invocation_metadata()).get(_PURPOSE_KEY, "talk"))
            if (name, purpose) not in self._lines:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{name} can be dialled")
            yield from self._lines[name, purpose].attached(answers)

        return {
            "Ask": grpc.unary_unary_rpc_method_handler(
                ask, request_deserializer=Request.FromString, response_serializer=_bytes_of
            ),
            "Attach": grpc.stream_stream_rpc_method_handler(
                attach,
                request_deserializer=Response.FromString,
                response_serializer=Request.SerializeToString,
            ),
        }

    def _caller(self, context: Any) -> str:
        """The neighbour whose certificate the caller has shown; others are turned away."""
        names = context.auth_context().get("x509_common_name", [b""])
        name = str(names[0].decode("utf-8", "replace"))
        if name not in self._neighbours:
            self.refused[name] += 1
            context.abort(self._grpc.StatusCode.PERMISSION_DENIED, f"{name} is no neighbour")
        return name

    def _attach(self, connection: Connection, handler: Handler) -> None:
        """Keep a call open to a neighbour and answer what it asks there; dial again whenever it ends."""
        name, purpose = connection
        call = self._channels[connection].stream_stream(
            f"/{_SERVICE}/Attach",
            request_serializer=Response.SerializeToString,
            response_deserializer=Request.FromString,
        )
        while not self._stopping.is_set():
            answers: queue.SimpleQueue[Response | None] = queue.SimpleQueue()
            with ThreadPoolExecutor(6, thread_name_prefix="mesh") as threads:

                def answer(request: Request, answers: queue.SimpleQueue[Response | None] = answers) -> None:
                    given = handler(name, request)
                    response = Response.FromString(given) if isinstance(given, bytes) else given
                    response.id = request.id
                    answers.put(response)

                try:
                    for request in call(iter(answers.get, None), metadata=((_PURPOSE_KEY, purpose),)):
                        threads.submit(answer, request)
                except (self._grpc.RpcError, ValueError):
                    pass
                answers.put(None)
            self._stopping.wait(0.2)


class _Line:
    """Questions to a neighbour that cannot be dialled, on the call that it keeps open."""

    def __init__(self) -> None:
        self._questions: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._waiting: dict[int, Future[Response]] = {}
        self._ids = count(1)
        self._attached = False
        self._lock = threading.Lock()

    def ask(self, request: Request, timeout_s: float, wanted: Wanted) -> Response:
        """The answer on the open call, if there is one."""
        number, answer = next(self._ids), Future[Response]()
        request.id = number
        with self._lock:
            if not self._attached:
                raise UnreachableError("not attached")
            self._waiting[number] = answer
            self._questions.put(request)
        deadline = time.monotonic() + timeout_s
        try:
            while wanted() and time.monotonic() < deadline:
                try:
                    return answer.result(min(_LOOK_S, timeout_s))
                except LateError:
                    continue
            raise UnreachableError("no answer")
        finally:
            self._waiting.pop(number, None)

    def attached(self, answers: Iterator[Response]) -> Iterator[Request]:
        """Requests for an open call; its answers are read meanwhile."""
        with self._lock:
            self._questions.put(None)  # a call that was open before ends
            self._questions = questions = queue.SimpleQueue[Request | None]()
            self._attached = True
        threading.Thread(target=self._read, args=(answers, questions), daemon=True).start()
        yield from iter(questions.get, None)

    def close(self) -> None:
        """End the open call."""
        self._questions.put(None)

    def _read(self, answers: Iterator[Response], questions: queue.SimpleQueue[Request | None]) -> None:
        try:
            for answer in answers:
                waiting = self._waiting.get(answer.id)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        except Exception:  # gRPC raises its own kinds when a call breaks
            pass
        finally:
            with self._lock:
                if self._questions is questions:
                    self._attached = False
                    for waiting in list(self._waiting.values()):
                        if not waiting.done():
                            waiting.set_exception(UnreachableError("the call broke"))
            questions.put(None)


def _bytes_of(answer: Answer) -> bytes:
    return answer if isinstance(answer, bytes) else answer.SerializeToString()


def refusal(reason: str) -> Response:
    """An answer to what cannot be answered."""
    return Response(refusal=Refusal(reason=reason))
