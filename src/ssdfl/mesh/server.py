"""The answering side of gRPC: who may call, how much at a time, and for how long.

One event loop holds the calls, so an idle call costs a few kilobytes and no thread. A thread is
taken only once the caller has shown a neighbour's certificate and its whole request has arrived.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from ssdfl.errors import NotYetError, require
from ssdfl.mesh.mesh_pb2 import Request, Response
from ssdfl.mesh.open_files import connections_allowed
from ssdfl.mesh.relay import PEER_KEY, PURPOSE_KEY, PURPOSES, Relay
from ssdfl.mesh.reverse_call import ReverseCall

SERVICE = "ssdfl.mesh.v1.Device"
MAX_REQUESTS = 8
"""Concurrent calls of one neighbour, so that it cannot take all threads from the others."""
MAX_WRITES = 2
"""Unfetched answers per neighbour, pings aside, so that a slow reader costs bounded memory."""
MAX_REQUEST_BYTES = 4 << 20
SPARE_NEIGHBOURS = 8
"""How many may join before others wait for threads, which start only when needed."""
PING_THREADS = 2
RECEIPT_S = 10.0
"""How long a neighbour may take to send a request: a few hundred bytes."""
SEND_S = 300.0
"""How long a neighbour may take to fetch an answer."""
STOP_S = 5.0
HANDSHAKE_MS = 5000
IDLE_MS = 120_000
MAX_STREAMS = 64
"""Calls on one connection."""
_LIMIT = "grpc.max_receive_message_length"

Name = str
Handle = Callable[[Name, Request], bytes]
Done = TypeVar("Done")


_STARTING = threading.Lock()


def event_loop() -> asyncio.AbstractEventLoop:
    """The process's loop for servers, on a thread of its own; gRPC works with a single one only."""
    with _STARTING:  # devices that share a process may start at once
        return _started_loop()


@cache
def _started_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="server").start()
    return loop


def on_loop(work: Coroutine[Any, Any, Done], timeout_s: float) -> Done:
    """What a coroutine returns that runs on the loop."""
    return asyncio.run_coroutine_threadsafe(work, event_loop()).result(timeout_s)


class Server:
    """Answers neighbours, and takes calls that undiallable neighbours keep open.

    Args:
        listen: ``host:port``.
        names: of the neighbours.
        options: of gRPC.
        handle: answers a neighbour's request, on a thread.
        reverse_calls: by neighbour and purpose.

    Attributes:
        refused: calls that were turned away, by the name in the caller's certificate.
        relay: joins calls of neighbours that cannot be dialled.
    """

    def __init__(
        self,
        listen: str,
        names: Collection[str],
        options: tuple[tuple[str, int], ...],
        handle: Handle,
        reverse_calls: Mapping[tuple[str, str], ReverseCall],
    ) -> None:
        self._grpc: Any = require("grpc", "mesh")
        self._listen, self._names, self._handle = listen, frozenset(names), handle
        self._reverse_calls = reverse_calls
        if not reverse_calls:  # only answers are large
            options = tuple(option for option in options if option[0] != _LIMIT)
            options = (*options, (_LIMIT, MAX_REQUEST_BYTES))
        self._options = (
            *options,
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ("grpc.max_connection_idle_ms", IDLE_MS),
            ("grpc.max_concurrent_streams", MAX_STREAMS),
            ("grpc.max_allowed_incoming_connections", connections_allowed()),
        )
        self._under_way: Counter[str] = Counter()
        self._writing = {name: asyncio.Semaphore(MAX_WRITES) for name in names}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(
            MAX_REQUESTS * (len(names) + SPARE_NEIGHBOURS), thread_name_prefix="mesh"
        )
        self._pings = ThreadPoolExecutor(PING_THREADS, thread_name_prefix="pinged")
        self._server: Any = None
        self.refused: Counter[str] = Counter()
        self.relay = Relay()

    def start(self, credentials: Any) -> int:
        """Begin to answer; returns the port.

        Raises:
            NotYetError: the address cannot be listened at.
        """
        port = on_loop(self._open(credentials), timeout_s=60)
        if not port:
            expected = "an address that is free on this host"
            raise NotYetError("listen", self._listen, expected, "Choose another.")
        return port

    async def _open(self, credentials: Any) -> int:
        grpc = self._grpc
        import grpc.aio as aio

        self._server = aio.server(options=self._options)
        handlers = {
            "Ask": grpc.stream_stream_rpc_method_handler(self._ask),
            "Attach": grpc.stream_stream_rpc_method_handler(self._attach),
            "Relay": grpc.stream_stream_rpc_method_handler(self._relay),
        }
        calls = grpc.method_handlers_generic_handler(SERVICE, handlers)
        self._server.add_generic_rpc_handlers((calls,))
        try:
            port = int(self._server.add_secure_port(self._listen, credentials))
        except RuntimeError:
            return 0
        if port:
            await self._server.start()
        return port

    def meet(self, names: Iterable[str]) -> None:
        """Let more neighbours call. Earlier ones still may; the handler refuses them if need be."""
        self._writing |= {
            name: asyncio.Semaphore(MAX_WRITES) for name in names if name not in self._names
        }
        self._names |= set(names)

    def stop(self) -> None:
        """End all calls."""
        if self._server is not None:
            on_loop(self._server.stop(grace=0.2), STOP_S)
        for pool in (self._threads, self._pings):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, _: Any, context: Any) -> None:
        """A neighbour's question; read and answered by hand, so that both have deadlines."""
        name = await self._caller(context)
        await self._admit(name, context)
        working: Future[bytes] | None = None
        try:
            request = await self._received(context)
            pool = self._pings if _is_ping(request) else self._threads
            working = pool.submit(self._handle, name, request)
            answer = await asyncio.wrap_future(working)
            await self._write(name, request, answer, context)
        finally:
            self._leave(name, working)

    async def _write(self, name: str, request: Request, answer: bytes, context: Any) -> None:
        """Send an answer when others to the same neighbour have been fetched; pings do not wait."""
        try:
            async with (
                asyncio.timeout(SEND_S),
                nullcontext() if _is_ping(request) else self._writing[name],
            ):
                await context.write(answer)
        except TimeoutError:
            await self._too_late(SEND_S, context)

    async def _caller(self, context: Any) -> str:
        """The neighbour whose certificate the caller has shown; others are turned away."""
        names = context.auth_context().get("x509_common_name", [b""])
        name = str(names[0].decode("utf-8", "replace"))
        if name not in self._names:
            self.refused[name] += 1
            await context.abort(self._grpc.StatusCode.PERMISSION_DENIED, f"{name} is no neighbour")
        return name

    async def _admit(self, name: str, context: Any) -> None:
        """Count a neighbour's call, unless it has too many under way."""
        with self._lock:
            busy = self._under_way[name] >= MAX_REQUESTS
            self._under_way[name] += not busy
        if busy:
            reason = f"{MAX_REQUESTS} requests are under way"
            await context.abort(self._grpc.StatusCode.RESOURCE_EXHAUSTED, reason)

    def _leave(self, name: str, working: Future[bytes] | None) -> None:
        """A call has ended; it counts until its thread is free, too."""

        def left(_: object) -> None:
            with self._lock:
                self._under_way[name] -= 1

        if working is None:
            left(None)
        else:
            working.add_done_callback(left)

    async def _received(self, context: Any) -> Request:
        """The request of a call; without one in time the call ends."""
        content = None
        try:
            async with asyncio.timeout(RECEIPT_S):  # wait_for would cost a task a call
                content = await context.read()
        except TimeoutError:
            await self._too_late(RECEIPT_S, context)
        try:
            request: Request = Request.FromString(content)
        except (DecodeError, TypeError):  # the latter: the caller has closed the call without one
            await context.abort(self._grpc.StatusCode.INVALID_ARGUMENT, "no request")
            raise
        return request

    async def _too_late(self, limit_s: float, context: Any) -> None:
        await context.abort(self._grpc.StatusCode.DEADLINE_EXCEEDED, f"{limit_s:g} s are over")

    async def _attach(self, _: Any, context: Any) -> None:
        """A neighbour that cannot be dialled has opened a call: send our requests on it."""
        name = await self._caller(context)
        _, purpose = _about(context)
        reverse_call = self._reverse_calls.get((name, purpose))
        if reverse_call is None:
            await context.abort(self._grpc.StatusCode.FAILED_PRECONDITION, f"{name} can be dialled")
            return
        loop, questions = asyncio.get_running_loop(), asyncio.Queue[Request | None]()

        def send(request: Request | None) -> None:
            loop.call_soon_threadsafe(questions.put_nowait, request)

        reverse_call.open(send)
        reading = asyncio.ensure_future(self._read_answers(context, reverse_call, send))
        try:
            while (request := await questions.get()) is not None:
                await context.write(request.SerializeToString())
        finally:
            reading.cancel()
            reverse_call.ended(send)

    async def _read_answers(
        self, context: Any, reverse_call: ReverseCall, send: Callable[[Request | None], None]
    ) -> None:
        """Hand answers to those who wait, until the neighbour ends the call or sends nonsense."""
        try:
            while isinstance(content := await context.read(), bytes):
                reverse_call.heard(Response.FromString(content))
        except (DecodeError, self._grpc.aio.UsageError, self._grpc.RpcError):
            pass
        finally:
            send(None)

    async def _relay(self, _: Any, context: Any) -> None:
        """A neighbour that cannot be dialled wants to reach another one through this device."""
        name = await self._caller(context)
        await self.relay.serve(name, *_about(context), context)


def _about(context: Any) -> tuple[str, str]:
    """Who and what a call is for, by its metadata: the name of a device, if any, and a purpose."""
    told = dict(context.invocation_metadata())
    purpose = str(told.get(PURPOSE_KEY, PURPOSES[0]))
    return told.get(PEER_KEY, b"").decode("utf-8", "replace"), purpose


def _is_ping(request: Request) -> bool:
    return bool(request.HasField("ping"))
