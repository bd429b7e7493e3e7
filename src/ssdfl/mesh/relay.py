"""The relay's part: bytes from one neighbour to another, neither of which can be dialled.

A relay knows who the two are and how much they send each other. What passes is a TLS connection
between the two: the relay cannot read it, nor change it without their noticing.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from ssdfl.errors import require
from ssdfl.mesh.mesh_pb2 import Piece
from ssdfl.mesh.routes import Pair, ordered

PURPOSE_KEY = "ssdfl-purpose"
PURPOSES = ("talk", "ping")
PEER_KEY = "ssdfl-peer-bin"
PIECE_BYTES = 1 << 16
MAX_CALLS = 4
"""Of one device to another at a time, waiting and joined, for each purpose."""
LAST_WRITE_S = 1.0
"""How long a piece may take to leave when its call ends."""
_LARGEST: Final = PIECE_BYTES + 16
"""A piece with what protobuf adds."""
_JOINED: Final = Piece().SerializeToString()


class _Waiting:
    """A call of a device that can be joined to one of a device that dials it."""

    def __init__(self, context: Any) -> None:
        self.context, self.ended = context, asyncio.Event()


class Relay:
    """Joins calls of neighbours that cannot be dialled.

    A piece is read only when the one before has been passed on, so a call holds one at a time.

    Attributes:
        pairs: between which it relays.
    """

    def __init__(self, pairs: frozenset[Pair] = frozenset()) -> None:
        self._grpc: Any = require("grpc", "mesh")
        self.pairs = pairs
        self._waiting: dict[tuple[Pair, str], deque[_Waiting]] = defaultdict(deque)
        self._calls: Counter[tuple[str, str, str]] = Counter()

    async def serve(self, caller: str, peer: str, purpose: str, context: Any) -> None:
        """Hold a neighbour's call, joined to one of its peer's, until either ends."""
        pair = ordered(caller, peer)
        if pair not in self.pairs or purpose not in PURPOSES:
            await self._refuse(
                "PERMISSION_DENIED", f"no relay between {caller} and {peer}", context
            )
        async with self._counted(caller, peer, purpose, context):
            if caller == pair[0]:
                await self._dial(pair, purpose, context)
            else:
                await self._wait(pair, purpose, context)

    async def _refuse(self, code: str, reason: str, context: Any) -> None:
        await context.abort(getattr(self._grpc.StatusCode, code), reason)

    @asynccontextmanager
    async def _counted(
        self, caller: str, peer: str, purpose: str, context: Any
    ) -> AsyncIterator[None]:
        key = (caller, peer, purpose)
        if self._calls[key] >= MAX_CALLS:
            await self._refuse("RESOURCE_EXHAUSTED", f"{MAX_CALLS} calls to {peer}", context)
        self._calls[key] += 1
        try:
            yield
        finally:
            self._calls[key] -= 1

    async def _wait(self, pair: Pair, purpose: str, context: Any) -> None:
        """Offer a call to the device that dials, until it has ended."""
        waiting, calls = _Waiting(context), self._waiting[pair, purpose]
        calls.append(waiting)
        try:
            await waiting.ended.wait()
        finally:
            waiting.ended.set()
            if waiting in calls:
                calls.remove(waiting)

    async def _dial(self, pair: Pair, purpose: str, context: Any) -> None:
        """Join a call to one that waits."""
        calls = self._waiting[pair, purpose]
        if not calls:
            await self._refuse("UNAVAILABLE", f"{pair[1]} does not wait here", context)
        dialled = calls.popleft()
        try:
            await self._join(context, dialled)
        finally:
            dialled.ended.set()

    async def _join(self, context: Any, dialled: _Waiting) -> None:
        """Pass bytes both ways until one of the two ends its call."""
        await until_one_ends(
            self._pass_on(context, dialled.context),
            self._pass_on(dialled.context, context),
            dialled.ended.wait(),
        )

    async def _pass_on(self, source: Any, target: Any) -> None:
        """Tell one device that the other is there, and pass on what that sends."""
        await _write(_JOINED, target)
        await self._copy(source, target)

    async def _copy(self, source: Any, target: Any) -> None:
        """Copy pieces from one call to another; too large a one ends both."""
        while isinstance(piece := await source.read(), bytes) and len(piece) <= _LARGEST:
            await _write(piece, target)


async def _write(piece: bytes, target: Any) -> None:
    """Send a piece; a call can end only when nothing is being sent on it."""
    writing = asyncio.ensure_future(target.write(piece))
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait({writing}, timeout=LAST_WRITE_S)
        raise


async def until_one_ends(*transfers: Coroutine[Any, Any, Any]) -> None:
    """Run transfers at the same time, and cancel the rest when one ends."""
    tasks = [asyncio.ensure_future(one) for one in transfers]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
