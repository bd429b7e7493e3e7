"""Exchange rows between ranks: through shared memory on one machine, otherwise as messages."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from ssdfl.arrays import FloatArray
from ssdfl.engine.rank_mixing import PeerRows, RankMixing
from ssdfl.engine.ranks import find_on_rank_0, number_of_ranks, rank, wait_for_ranks
from ssdfl.errors import InputError

SHARED_MEMORY = Path("/dev/shm")
FORBIDDEN = "SSDFL_SHARED_MEMORY"
"""If this variable is 0, ranks on one machine also send messages."""


class RowExchange:
    """Sends and receives the rows that mix across ranks.

    `post` returns at once and `receive` waits, so rows are sent while devices train. Between ranks
    on one machine, rows are in shared memory and messages only announce them. These messages also
    say when the rows' devices were ready.

    Attributes:
        sent_bytes: bytes of parameters that this rank has sent so far, without announcements.
        ready_s: by peer, when the devices of the rows that it sent last were ready.
    """

    def __init__(self, like: Tensor) -> None:
        self.like, self.sent_bytes = like, 0
        self.token = find_on_rank_0(lambda: secrets.token_hex(8))
        self.ready_s: dict[int, Tensor] = {}
        self._neighbours = (
            _ranks_that_share_memory(self.token) if like.device.type == "cpu" else set()
        )
        self._out: dict[int, Slots] = {}
        self._in: dict[int, Slots] = {}
        self._buffers: dict[int, Tensor] = {}
        self._works: list[dist.Work] = []
        self._kept: list[Tensor] = []

    def post(self, part: RankMixing, X: Tensor, ready_s: FloatArray) -> None:
        """Start sending the rows of X that other ranks mix, and receiving theirs.

        Args:
            ready_s: (n,) when the device of each row was ready, in simulated seconds.
        """
        messages, notices = [], []
        self.ready_s = {peer.rank: torch.zeros(len(peer.senders)).double() for peer in part.peers}
        for peer in part.peers:
            own = torch.from_numpy(peer.rows).to(X.device)
            rows = X[own].mean(dim=0, keepdim=True) if peer.summed else X[own]
            self.sent_bytes += rows.numel() * rows.element_size()
            if peer.rank in self._neighbours:
                self._slots(self._out, rank(), peer.rank, len(rows)).next()[: len(rows)] = rows
            else:
                messages += self._exchange(peer.rank, rows, self._buffer(peer))
            own_s = torch.from_numpy(ready_s[peer.rows])
            notices += self._exchange(peer.rank, own_s, self.ready_s[peer.rank])
        for operations in (messages, notices):
            self._works += dist.batch_isend_irecv(operations) if operations else []

    def receive(self, part: RankMixing) -> list[Tensor]:
        """The rows of each peer; they are valid until the next call."""
        for work in self._works:
            work.wait()
        self._works, self._kept = [], []
        return [self._received(peer) for peer in part.peers]

    def close(self) -> None:
        """Release shared memory, including that of killed ranks."""
        for path in SHARED_MEMORY.glob(f"ssdfl-{self.token}-*") if self._neighbours else ():
            path.unlink(missing_ok=True)

    def _exchange(self, peer: int, out: Tensor, into: Tensor) -> list[dist.P2POp]:
        self._kept += [out, into]  # until the messages have been sent
        return [dist.P2POp(dist.isend, out, peer), dist.P2POp(dist.irecv, into, peer)]

    def _received(self, peer: PeerRows) -> Tensor:
        rows = peer.weights.shape[1]
        if peer.rank not in self._neighbours:
            return self._buffers[peer.rank][:rows]
        slots = self._slots(self._in, peer.rank, rank(), rows)
        slots.path.unlink(missing_ok=True)  # both have it open, so it is freed when they end
        return slots.next()[:rows]

    def _buffer(self, peer: PeerRows) -> Tensor:
        rows = peer.weights.shape[1]
        if peer.rank not in self._buffers or len(self._buffers[peer.rank]) < rows:
            self._buffers[peer.rank] = self.like.new_empty((rows, len(self.like)))
        return self._buffers[peer.rank][:rows]

    def _slots(self, kept: dict[int, Slots], sender: int, receiver: int, rows: int) -> Slots:
        """Slots for at least this many rows; both ranks enlarge them at the same time."""
        other = receiver if sender == rank() else sender
        if other not in kept or kept[other].rows < rows:
            path = SHARED_MEMORY / f"ssdfl-{self.token}-{sender}-{receiver}-{rows}"
            kept[other] = Slots(path, rows, self.like, new=sender == rank())
        return kept[other]


class Slots:
    """Two slots in shared memory for rows from one rank to another, used alternately.

    A rank reuses a slot only after the peer's reply shows that the slot was read.
    """

    def __init__(self, path: Path, rows: int, like: Tensor, new: bool) -> None:
        self.path, self.rows, self._turn = path, rows, 0
        size = 2 * rows * len(like)
        try:
            with path.open("xb" if new else "r+b") as file:
                _reserve(file.fileno(), size * like.element_size())
        except OSError as error:
            needed = f"{size * like.element_size() / 1e6:.0f} MB of it ({error.strerror})"
            remedy = f"Give the machine more, or set {FORBIDDEN}=0 to send messages."
            raise InputError("shared memory", str(path.parent), needed, remedy) from error
        mapped = torch.from_file(str(path), shared=True, size=size, dtype=like.dtype)
        self._places = mapped.view(2, rows, len(like))

    def next(self) -> Tensor:
        """The next slot."""
        self._turn ^= 1
        return self._places[self._turn]


def _reserve(file: int, size_bytes: int) -> None:
    """Enlarge a file to a size; if the system can, reserve memory for all of it."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size_bytes)
    else:
        os.truncate(file, size_bytes)


def _ranks_that_share_memory(token: str) -> set[int]:
    """The other ranks on this machine, whose files this rank finds, if permitted."""
    allowed = os.environ.get(FORBIDDEN) != "0" and os.access(SHARED_MEMORY, os.W_OK)
    files = [SHARED_MEMORY / f"ssdfl-{token}-{number}" for number in range(number_of_ranks())]
    if allowed:
        files[rank()].touch()
    wait_for_ranks()
    there = {number for number, file in enumerate(files) if file.exists()} if allowed else set()
    wait_for_ranks()
    files[rank()].unlink(missing_ok=True)
    return there - {rank()}
