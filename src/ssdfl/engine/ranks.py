"""The processes that run one job together, as torchrun starts them, and what they tell each other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Protocol

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from ssdfl.arrays import IntArray
from ssdfl.errors import InputError, ToldError

WAITING = timedelta(hours=1)
_BYTES_AT_ONCE = 1 << 26


class Shares(Protocol):
    """Which devices a process has, and what processes find out together; all must ask in the same order.

    Attributes:
        devices: (n,) this process's, ascending.
    """

    devices: IntArray

    def mean(self, X: Tensor) -> Tensor:
        """(1, d) the mean of everyone's parameters, of one's own (n, d)."""

    def total(self, values: Tensor) -> Tensor:
        """The sum over processes."""

    def everyone(self, own: Tensor) -> Tensor:
        """(N, …) everyone's values in order of devices, of one's own (n, …)."""

    def collected(self, own: Tensor) -> Tensor:
        """(N, …) everyone's rows in rank 0; one's own elsewhere."""


class Alone:
    """One process has all devices."""

    def __init__(self, num_devices: int) -> None:
        self.devices = np.arange(num_devices)

    def mean(self, X: Tensor) -> Tensor:
        """(1, d) the mean of the rows."""
        return X.mean(dim=0, keepdim=True)

    def total(self, values: Tensor) -> Tensor:
        """The values."""
        return values

    def everyone(self, own: Tensor) -> Tensor:
        """The values."""
        return own

    def collected(self, own: Tensor) -> Tensor:
        """The rows."""
        return own


class Dealt:
    """Each rank has some devices. Only rows that mix go from GPU to GPU; all else passes through memory."""

    def __init__(self, parts: Sequence[IntArray]) -> None:
        self.parts = parts
        self.devices = parts[rank()]
        self.owner = np.empty(sum(map(len, parts)), dtype=np.int64)
        for number, part in enumerate(parts):
            self.owner[part] = number

    def mean(self, X: Tensor) -> Tensor:
        """(1, d) the mean of all ranks' rows."""
        return (self.total(X.sum(dim=0, keepdim=True)) / len(self.owner)).to(X)

    def total(self, values: Tensor) -> Tensor:
        """The sum over ranks."""
        summed = values.cpu().clone()
        dist.all_reduce(summed)
        return summed

    def everyone(self, own: Tensor) -> Tensor:
        """(N, …) all ranks' values; shorter shares are sent with idle rows."""
        longest = max(map(len, self.parts))
        sent = own.new_zeros((longest, *own.shape[1:]), device="cpu")
        sent[: len(own)] = own
        received = [torch.empty_like(sent) for _ in self.parts]
        dist.all_gather(received, sent)
        whole = sent.new_empty((len(self.owner), *own.shape[1:]))
        for part, values in zip(self.parts, received, strict=True):
            whole[torch.from_numpy(part)] = values[: len(part)]
        return whole

    def collected(self, own: Tensor) -> Tensor:
        """(N, …) all ranks' rows in rank 0, which needs the memory for them; one's own elsewhere."""
        if rank() > 0:
            for rows in _pieces(own.cpu().contiguous()):
                dist.send(rows, 0)
            return own
        whole = own.new_empty((len(self.owner), *own.shape[1:]), device="cpu")
        for number, part in enumerate(self.parts):
            there = own.cpu() if number == 0 else whole.new_empty((len(part), *own.shape[1:]))
            for rows in _pieces(there) if number else ():
                dist.recv(rows, number)
            whole[torch.from_numpy(part)] = there
        return whole

    def dealt(self, whole: Tensor, like: Tensor) -> Tensor:
        """One's own rows of what rank 0 has whole; the others give anything."""
        if rank() > 0:
            own = like.new_empty((len(self.devices), whole.shape[1]), device="cpu")
            for rows in _pieces(own):
                dist.recv(rows, 0)
            return own.to(like.device)
        for number, part in enumerate(self.parts[1:], start=1):
            for rows in _pieces(whole[torch.from_numpy(part)].cpu()):
                dist.send(rows, number)
        return whole[torch.from_numpy(self.devices)]


def _pieces(rows: Tensor) -> Sequence[Tensor]:
    """Rows in messages of a modest size; none of none."""
    if not rows.numel():
        return ()
    pieces: Sequence[Tensor] = rows.split(max(1, _BYTES_AT_ONCE // (rows[0].numel() * rows.element_size())))
    return pieces


def started_as_rank() -> bool:
    """Whether torchrun, or something that sets the same variables, has started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ and "MASTER_ADDR" in os.environ


def rank() -> int:
    """This process's number, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def number_of_ranks() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


@contextmanager
def joined(device: str = "cpu") -> Iterator[None]:
    """Join the other ranks, if torchrun has started this process, and leave them at the end."""
    if not started_as_rank() or dist.is_initialized():
        yield
        return
    backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
    store, number, size = next(rendezvous("env://", timeout=WAITING))
    name = f"{_attempt()}-{next(_joinings)}"
    store = dist.PrefixStore(name, store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=number, world_size=size, timeout=WAITING)
    try:
        yield
        dist.barrier()  # gloo ends a process badly that leaves while a message of its is under way
    finally:
        dist.destroy_process_group()


_joinings = count()


def _attempt() -> str:
    """A name that ranks which torchrun has started together, on one machine, share with none before them.

    Its store outlives them, and the addresses of the dead in it. Torchruns of several machines count restarts
    apart; there the store has to be a new one each time (`docs/cluster.md`).
    """
    alone = os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]
    return f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}" if alone else "attempt"


def means_lost_ranks(error: RuntimeError) -> bool:
    """Whether an error says that another rank has gone."""
    text = str(error)
    return isinstance(error, dist.DistError) or any(name in text for name in ("gloo", "NCCL", "TCPStore"))


def own_device(name: str) -> str:
    """Which of torch's devices this process uses: of several GPUs, ranks of a machine have one each."""
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if name == "cuda" and started_as_rank() else name


def told(find: Callable[[], str]) -> str:
    """A text that rank 0 finds, told to all.

    Raises:
        InputError: the mistake that rank 0 found instead; `ToldError` in the others.
    """
    if number_of_ranks() == 1:
        return find()
    message, mistake = "", None
    if rank() == 0:
        try:
            message = json.dumps({"text": find()})
        except InputError as error:
            mistake = error
            message = json.dumps({"error": [error.what, str(error.got), error.expected, error.remedy]})
    heard = json.loads(_broadcast(message.encode()))
    if mistake is not None:
        raise mistake
    if "error" in heard:
        raise ToldError(*heard["error"])
    return str(heard["text"])


def agreed(wish: bool) -> bool:
    """What rank 0 wishes."""
    if number_of_ranks() == 1:
        return wish
    flag = torch.tensor([wish])
    dist.broadcast(flag, 0)
    return bool(flag)


def common_error(what: str, got: object, expected: str, remedy: str) -> InputError:
    """A mistake that every rank finds by itself, and only rank 0 shows."""
    return (InputError if rank() == 0 else ToldError)(what, got, expected, remedy)


def _broadcast(message: bytes) -> bytes:
    length = torch.tensor([len(message)])
    dist.broadcast(length, 0)
    content = torch.zeros(int(length), dtype=torch.uint8)
    if rank() == 0:
        content = torch.frombuffer(bytearray(message), dtype=torch.uint8)
    dist.broadcast(content, 0)
    return content.numpy().tobytes()
