"""This device's ends of connections that go through relays.

Inside is an ordinary connection of the mesh: gRPC over TLS, on which both ends show certificates.
Only its path differs. gRPC dials a local socket instead of a TCP port; from there a tunnel takes
the bytes to a relay, which passes them on to the other device's tunnel, and that brings them to the
local socket of its server. So all that holds of direct connections holds here: who may call, what
is checked, and every limit.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from ssdfl.errors import require
from ssdfl.mesh.mesh_pb2 import Piece
from ssdfl.mesh.names import certificate_name
from ssdfl.mesh.relay import PEER_KEY, PIECE_BYTES, PURPOSE_KEY, PURPOSES, until_one_ends
from ssdfl.mesh.routes import Relays
from ssdfl.mesh.server import SERVICE, STOP_S, event_loop, on_loop

JOIN_S = 2.0
"""How long a relay may take to join a call before another is tried."""
REDIAL_S = 0.3
PLACES = 2
"""Calls that wait at a relay, for each neighbour and purpose: one in use, one for its successor."""

log = logging.getLogger(__name__)


class Tunnels:
    """Ends of connections through relays.

    Args:
        credentials, options: of gRPC's channels.
        addresses: of the neighbours that may be relays; looked up whenever one is needed.
    """

    def __init__(
        self,
        credentials: Any,
        options: tuple[tuple[str, int], ...],
        addresses: Callable[[], Mapping[str, str]],
    ) -> None:
        self._grpc: Any = require("grpc", "mesh")
        self._credentials, self._options, self._addresses = credentials, options, addresses
        self._folder = Path(tempfile.mkdtemp(prefix="ssdfl-"))  # others cannot enter it
        self._relays: dict[str, tuple[str, ...]] = {}
        self._broken: Counter[str] = Counter()
        self._channels: dict[tuple[str, str], Any] = {}
        self._entrances: list[asyncio.Server] = []
        self._awaited: set[tuple[str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def exit(self) -> str:
        """Where this device's server has to listen for what comes through relays."""
        return f"unix:{self._folder / 'exit'}"

    def entrance(self, peer: str, purpose: str) -> str:
        """The address at which gRPC reaches a neighbour through relays."""
        path = self._folder / f"{len(self._entrances)}"
        on_loop(self._open_entrance(peer, purpose, path), STOP_S)
        return f"unix:{path}"

    def follow(self, dialled: Relays, awaited: Relays) -> None:
        """Use these relays from now on."""
        self._relays |= dialled
        for peer, through in awaited.items():
            for relay in through:
                if (peer, relay) not in self._awaited:
                    self._awaited.add((peer, relay))
                    self._begin_to_wait(peer, relay)

    def stop(self) -> None:
        """Close everything."""
        with suppress(TimeoutError):
            on_loop(self._close(), STOP_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _close(self) -> None:
        for entrance in self._entrances:
            entrance.close()
        for task in (*self._tasks,):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self._channels.values():
            await channel.close()

    async def _open_entrance(self, peer: str, purpose: str, path: Path) -> None:
        server = await asyncio.start_unix_server(partial(self._entered, peer, purpose), path)
        self._entrances.append(server)

    def _entered(self, peer: str, purpose: str, reader: Any, writer: Any) -> None:
        """gRPC has opened a connection to a neighbour."""
        taking = self._take(peer, purpose, reader, writer)
        self._keep(asyncio.get_running_loop().create_task(taking))

    async def _take(self, peer: str, purpose: str, reader: Any, writer: Any) -> None:
        """Take a connection to a neighbour through one of its relays."""
        try:
            for relay in self._in_turn(peer):
                if await self._taken_through(relay, peer, purpose, reader, writer):
                    return
        finally:
            writer.close()

    def _in_turn(self, peer: str) -> list[str]:
        """A neighbour's relays, first those through which the fewest connections have broken."""
        there = [relay for relay in self._relays.get(peer, ()) if self._addresses().get(relay)]
        return sorted(there, key=lambda relay: self._broken[relay])

    async def _taken_through(
        self, relay: str, peer: str, purpose: str, reader: Any, writer: Any
    ) -> bool:
        """Take a connection through a relay until it ends; whether the relay joined it at all."""
        joined = False
        try:
            async with self._call(relay, peer, purpose) as call:
                async with asyncio.timeout(JOIN_S):
                    await _wait_until_joined(call)
                joined = True
                log.info("%s is reached through %s (%s)", peer, relay, purpose)
                await _move(call, reader, writer)
        except (self._grpc.RpcError, ConnectionError, TimeoutError, asyncio.InvalidStateError):
            log.debug("%s cannot be reached through %s", peer, relay)
        self._broken[relay] += 1
        return joined

    def _begin_to_wait(self, peer: str, relay: str) -> None:
        for purpose in PURPOSES:
            for _ in range(PLACES):
                self._start(self._wait_at(relay, peer, purpose))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        loop = event_loop()
        loop.call_soon_threadsafe(lambda: self._keep(loop.create_task(work)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait_at(self, relay: str, peer: str, purpose: str) -> None:
        """Let a neighbour dial this device at a relay, one connection after the other."""
        while self._addresses().get(relay) and peer in self._addresses():
            with suppress(self._grpc.RpcError, OSError, asyncio.InvalidStateError):
                async with self._call(relay, peer, purpose) as call:
                    await _wait_until_joined(call)
                    log.info("%s comes through %s (%s)", peer, relay, purpose)
                    exit_path = self.exit.removeprefix("unix:")
                    reader, writer = await asyncio.open_unix_connection(exit_path)
                    try:
                        await _move(call, reader, writer)
                    finally:
                        writer.close()
            await asyncio.sleep(REDIAL_S)

    @asynccontextmanager
    async def _call(self, relay: str, peer: str, purpose: str) -> AsyncIterator[Any]:
        """A call to a relay that is to be joined to one of a neighbour."""
        relayed = self._channel(relay, purpose).stream_stream(
            f"/{SERVICE}/Relay",
            request_serializer=Piece.SerializeToString,
            response_deserializer=Piece.FromString,
        )
        call = relayed(metadata=((PEER_KEY, peer.encode()), (PURPOSE_KEY, purpose)))
        try:
            yield call
        finally:
            call.cancel()

    def _channel(self, relay: str, purpose: str) -> Any:
        """The connection to a relay that all neighbours' calls of a purpose share."""
        import grpc.aio as aio

        if (relay, purpose) not in self._channels:
            name = ("grpc.ssl_target_name_override", certificate_name(relay))
            self._channels[relay, purpose] = aio.secure_channel(
                self._addresses()[relay], self._credentials, options=(*self._options, name)
            )
        return self._channels[relay, purpose]


async def _wait_until_joined(call: Any) -> None:
    """Wait for the empty piece by which a relay says that the other end is there.

    Raises:
        ConnectionError: something else has come, or nothing.
    """
    piece = await _read(call)
    if not isinstance(piece, Piece) or piece.data:
        raise ConnectionError("not joined")


async def _read(call: Any) -> Any:
    """The next piece of a call.

    gRPC raises CancelledError also where the relay has cancelled the call, which is no reason for
    this task to end.

    Raises:
        ConnectionError: the relay has cancelled the call.
    """
    try:
        return await call.read()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionError("cancelled by the relay") from None


async def _move(call: Any, reader: Any, writer: Any) -> None:
    """Move bytes both ways between a call and a local socket until either ends."""
    await until_one_ends(_send(call, reader), _receive(call, writer))


async def _send(call: Any, reader: Any) -> None:
    while data := await reader.read(PIECE_BYTES):
        await call.write(Piece(data=data))


async def _receive(call: Any, writer: Any) -> None:
    while isinstance(piece := await _read(call), Piece):
        writer.write(piece.data)
        await writer.drain()
