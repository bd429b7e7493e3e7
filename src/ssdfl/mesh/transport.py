"""How devices ask each other: an interface, and gRPC with mutual TLS behind it.

A device that cannot be dialled keeps a call open to each neighbour and answers the questions that
come back on it (`ssdfl.mesh.reverse_call`). If neither of two neighbours can be dialled, one dials
the other through a relay (`ssdfl.mesh.tunnels`). Pings have their own connections, so that a
neighbour whose slow link is busy with parameters does not look dead.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any, Protocol

from ssdfl.errors import require
from ssdfl.mesh.mesh_pb2 import Refusal, Request, Response
from ssdfl.mesh.names import certificate_name
from ssdfl.mesh.relay import PURPOSE_KEY, PURPOSES
from ssdfl.mesh.reverse_call import CHECK_EVERY_S, ReverseCall
from ssdfl.mesh.routes import DIRECT, Routes
from ssdfl.mesh.server import SERVICE, Server
from ssdfl.mesh.tunnels import Tunnels

MAX_MESSAGE_BYTES = 64 << 20
_REVERSE_THREADS = 6
_MAX_UNANSWERED = 16  # requests on a call that this device keeps open, answered or waiting to be
_REDIAL_S = 0.2
_OPTIONS = (
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
    """The answer is wanted, however long it takes."""
    return True


Answer = Response | bytes
"""A response; as bytes if it was serialized once for several neighbours."""

Handler = Callable[[str, Request], Answer]
"""Answers a neighbour, by name."""


class UnreachableError(Exception):
    """A neighbour did not answer in time."""


class UnreadableError(UnreachableError):
    """A neighbour's answer cannot be read, or is larger than any that is wanted."""


class Transport(Protocol):
    """The interface of a network that a device needs."""

    def start(self, handler: Handler) -> None:
        """Begin to answer neighbours."""

    def ask(
        self, neighbour: str, request: Request, timeout_s: float, wanted: Wanted = always
    ) -> Response:
        """A neighbour's answer, as long as it is wanted.

        Raises:
            UnreachableError: none within the time, or no longer wanted.
            UnreadableError: one that is no response, or too large.
        """

    def meet(self, neighbours: Mapping[str, str], routes: Routes = DIRECT) -> None:
        """Ask and answer more neighbours, given their addresses and who relays for whom."""

    def part(self, names: Iterable[str]) -> None:
        """Stop asking some neighbours; their calls still reach the handler."""

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
        max_message_bytes: larger ones are not taken.
        routes: who relays for whom.
    """

    def __init__(
        self,
        listen: str,
        neighbours: Mapping[str, str],
        credentials: Credentials,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        routes: Routes = DIRECT,
    ) -> None:
        self._grpc: Any = require("grpc", "mesh")
        self._options = (
            *_OPTIONS,
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_receive_message_length", max_message_bytes),
        )
        self._listen, self._routes = listen, routes
        self._neighbours: dict[str, str] = {}
        self._credentials = credentials
        self._reverse_calls: dict[Connection, ReverseCall] = {}
        self._handler: Handler | None = None
        self._channels: dict[Connection, Any] = {}
        self._asks: dict[Connection, Any] = {}
        self._server: Server | None = None
        self._stopping = threading.Event()
        self.port = 0
        self._add(neighbours)

    @property
    def refused(self) -> Counter[str]:
        """Calls of strangers that were turned away, by name."""
        return Counter() if self._server is None else self._server.refused

    def start(self, handler: Handler) -> None:
        """Begin to answer neighbours; raises InputError if the address cannot be listened at."""
        self._handler = handler
        if self._listen:
            self.port = self._serve(self._listen, handler)
        self._use_relays(handler)
        self._connect(self._neighbours, handler)

    def meet(self, neighbours: Mapping[str, str], routes: Routes = DIRECT) -> None:
        """Ask and answer more neighbours, and follow new routes."""
        new = {
            name: address for name, address in neighbours.items() if name not in self._neighbours
        }
        self._routes = self._routes.joined(routes)
        self._add(new)
        if self._server is not None:
            self._server.meet(new)
        if self._handler is not None:
            self._use_relays(self._handler)
            self._connect(new, self._handler)

    def _add(self, neighbours: Mapping[str, str]) -> None:
        undialled = {name for name, address in neighbours.items() if not address}
        attached = undialled - self._routes.dialled.keys()
        self._reverse_calls |= {
            connection: ReverseCall() for connection in product(attached, PURPOSES)
        }
        self._neighbours |= neighbours

    def _use_relays(self, handler: Handler) -> None:
        """Relay for neighbours, and use relays, as the routes say."""
        routes = self._routes
        if routes.awaited and self._server is None:
            self._serve(self._tunnels.exit, handler)
        if self._server is not None:
            self._server.relay.pairs = routes.relayed
        if routes.awaited or routes.dialled:
            self._tunnels.follow(routes.dialled, routes.awaited)

    @cached_property
    def _tunnels(self) -> Tunnels:
        return Tunnels(self._own, self._options, lambda: self._neighbours)

    @cached_property
    def _own(self) -> Any:
        """This device's credentials, as gRPC has them."""
        return self._grpc.ssl_channel_credentials(
            self._credentials.authority, self._credentials.key, self._credentials.certificate
        )

    def _connect(self, neighbours: Mapping[str, str], handler: Handler) -> None:
        """Dial neighbours; a device that cannot be dialled itself keeps calls open to them."""
        for name, purpose in product(neighbours, PURPOSES):
            if neighbours[name]:
                self._dial(name, purpose, neighbours[name])
            elif name in self._routes.dialled:
                self._dial(name, purpose, self._tunnels.entrance(name, purpose))
        if self._listen:
            return
        for connection in [one for one in self._channels if one[0] in neighbours]:
            attach = partial(self._attach, connection, handler)
            threading.Thread(target=attach, daemon=True).start()

    def part(self, names: Iterable[str]) -> None:
        """Stop asking some neighbours; their calls still reach the handler."""
        gone = set(names)
        self._routes = self._routes.without(gone)
        self._neighbours = {name: one for name, one in self._neighbours.items() if name not in gone}
        for connection in [one for one in self._reverse_calls if one[0] in gone]:
            self._reverse_calls.pop(connection).close()
        for connection in [one for one in self._channels if one[0] in gone]:
            self._asks.pop(connection, None)
            self._channels.pop(connection).close()

    def ask(
        self, neighbour: str, request: Request, timeout_s: float, wanted: Wanted = always
    ) -> Response:
        """A neighbour's answer, by a call of ours or on a call that it keeps open."""
        connection = (neighbour, "ping" if request.HasField("ping") else "talk")
        reverse_call = self._reverse_calls.get(connection)
        try:
            if reverse_call is not None:
                return reverse_call.ask(request, timeout_s, wanted)
            if connection not in self._asks:
                raise ConnectionError("no neighbour")
            call = self._asks[connection].future(request, timeout=timeout_s)
            return self._result(call, wanted)
        except self._grpc.RpcError as error:
            kind = UnreadableError if _is_unreadable(error) else UnreachableError
            raise kind(f"{neighbour}: {_first_line(error)}") from None
        except (ConnectionError, ValueError, self._grpc.FutureCancelledError) as error:
            # The last two say that the channel was closed meanwhile.
            raise UnreachableError(f"{neighbour}: {error}") from None

    def stop(self) -> None:
        """Stop answering and asking."""
        self._stopping.set()
        for reverse_call in self._reverse_calls.values():
            reverse_call.close()
        if self._server is not None:
            self._server.stop()
        for channel in self._channels.values():
            channel.close()
        if "_tunnels" in vars(self):
            self._tunnels.stop()

    def _dial(self, name: str, purpose: str, address: str) -> None:
        """Make a channel to a neighbour; gRPC connects it when it is used."""
        options = (*self._options, ("grpc.ssl_target_name_override", certificate_name(name)))
        channel = self._grpc.secure_channel(address, self._own, options=options)
        self._channels[name, purpose] = channel
        self._asks[name, purpose] = channel.unary_unary(
            f"/{SERVICE}/Ask",
            request_serializer=Request.SerializeToString,
            response_deserializer=Response.FromString,
        )

    def _result(self, call: Any, wanted: Wanted) -> Response:
        """What a call returns, as long as it is wanted."""
        while wanted():
            try:
                answer: Response = call.result(timeout=CHECK_EVERY_S)
                return answer
            except self._grpc.FutureTimeoutError:
                continue
        call.cancel()
        raise ConnectionError("no longer wanted")

    def _serve(self, address: str, handler: Handler) -> int:
        """Listen at an address; returns the port."""
        self._server = Server(
            address,
            self._neighbours,
            self._options,
            lambda name, request: _bytes_of(handler(name, request)),
            self._reverse_calls,
        )
        credentials = self._grpc.ssl_server_credentials(
            [(self._credentials.key, self._credentials.certificate)],
            self._credentials.authority,
            require_client_auth=True,
        )
        return self._server.start(credentials)

    def _attach(self, connection: Connection, handler: Handler) -> None:
        """Keep a call open to a neighbour and answer its questions; dial again when it ends."""
        name, purpose = connection
        call = self._channels[connection].stream_stream(
            f"/{SERVICE}/Attach",
            request_serializer=Response.SerializeToString,
            response_deserializer=Request.FromString,
        )
        while not self._stopping.is_set() and name in self._neighbours:
            self._answer_on(
                partial(call, metadata=((PURPOSE_KEY, purpose),)), partial(handler, name)
            )
            self._stopping.wait(_REDIAL_S)

    def _answer_on(
        self,
        call: Callable[[Iterator[Response]], Iterator[Request]],
        handler: Callable[[Request], Answer],
    ) -> None:
        """Open a call and answer the requests that come on it, several at a time, until it ends."""
        answers: queue.SimpleQueue[Response | None] = queue.SimpleQueue()
        room = threading.Semaphore(_MAX_UNANSWERED)

        def answer(request: Request) -> None:
            response = _response_of(handler(request))
            response.id = request.id
            answers.put(response)

        def sent() -> Iterator[Response]:
            for response in iter(answers.get, None):
                yield response
                room.release()

        with ThreadPoolExecutor(_REVERSE_THREADS, thread_name_prefix="mesh") as threads:
            try:
                for request in call(sent()):
                    while not room.acquire(timeout=_REDIAL_S):  # until then nothing more is read
                        if self._stopping.is_set():
                            break
                    threads.submit(answer, request)
            except (self._grpc.RpcError, ValueError):
                pass
            answers.put(None)


def _first_line(error: Any) -> str:
    """A gRPC error's code and the first line of its details."""
    details = (error.details() or "").splitlines()
    return f"{error.code().name} {' '.join(details[:1])}"


def _is_unreadable(error: Any) -> bool:
    """Whether gRPC could not read an answer, rather than get one."""
    details = error.details() or ""
    return "deserializ" in details or "larger than max" in details


def _response_of(answer: Answer) -> Response:
    return Response.FromString(answer) if isinstance(answer, bytes) else answer


def _bytes_of(answer: Answer) -> bytes:
    return answer if isinstance(answer, bytes) else answer.SerializeToString()


def refusal(reason: str) -> Response:
    """An answer to what cannot be answered."""
    return Response(refusal=Refusal(reason=reason))
