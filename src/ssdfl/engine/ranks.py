"""The ranks that run one job together, started by torchrun, and their collective operations."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import TypeVar

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from ssdfl.errors import InputError, OtherRankError

WAITING = timedelta(hours=1)
Result = TypeVar("Result")


def started_as_rank() -> bool:
    """Whether torchrun, or a tool that sets the same variables, started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ and "MASTER_ADDR" in os.environ


def rank() -> int:
    """This process's number, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def number_of_ranks() -> int:
    """The number of processes."""
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
        dist.barrier()  # gloo crashes a process that leaves while one of its messages is in flight
    finally:
        dist.destroy_process_group()


_joinings = count()


def _attempt() -> str:
    """A store prefix unique to this launch, so that restarted ranks ignore stale addresses.

    The store outlives the ranks. On several machines, each torchrun counts its own restarts, so
    there the store must be new each time (`docs/cluster.md`).
    """
    alone = os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]
    return f"attempt-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}" if alone else "attempt"


def means_lost_ranks(error: RuntimeError) -> bool:
    """Whether an error means that another rank is gone."""
    text = str(error)
    return isinstance(error, dist.DistError) or any(
        name in text for name in ("gloo", "NCCL", "TCPStore")
    )


def own_device(name: str) -> str:
    """The torch device of this process; with several GPUs, each rank of a machine has its own."""
    return (
        f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        if name == "cuda" and started_as_rank()
        else name
    )


def find_on_rank_0(find: Callable[[], str]) -> str:
    """The text that ``find`` returns on rank 0, in all ranks.

    Raises:
        InputError: ``find`` raised it on rank 0; the other ranks raise `OtherRankError`.
    """
    if number_of_ranks() == 1:
        return find()
    message, mistake = "", None
    if rank() == 0:
        try:
            message = json.dumps({"text": find()})
        except InputError as error:
            mistake = error
            message = json.dumps(
                {"error": [error.what, str(error.got), error.expected, error.remedy]}
            )
    heard = json.loads(_broadcast(message.encode()))
    if mistake is not None:
        raise mistake
    if "error" in heard:
        raise OtherRankError(*heard["error"])
    return str(heard["text"])


def decide_on_rank_0(wish: bool) -> bool:
    """The wish of rank 0, in all ranks."""
    if number_of_ranks() == 1:
        return wish
    flag = torch.tensor([wish])
    dist.broadcast(flag, 0)
    return bool(flag)


def all_succeed(work: Callable[[], Result]) -> Result:
    """The result of ``work`` in each rank, if it succeeds in all of them.

    Raises:
        InputError: ``work`` failed in some rank. All ranks raise the first error, as
            `OtherRankError` except in rank 0.
    """
    if number_of_ranks() == 1:
        return work()
    results, words = [], ""
    try:
        results.append(work())
    except InputError as error:
        words = json.dumps([error.what, str(error.got), error.expected, error.remedy])
    failed = torch.zeros(number_of_ranks(), dtype=torch.int64)
    failed[rank()] = len(words)
    dist.all_reduce(failed)
    for first in torch.nonzero(failed).flatten().tolist()[:1]:
        raise common_error(*json.loads(_broadcast(words.encode(), first)))
    return results[0]


def texts_of_ranks(text: str) -> list[str]:
    """The texts of all ranks, in all ranks; texts must have equal length."""
    own = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    found = [torch.empty_like(own) for _ in range(number_of_ranks())]
    dist.all_gather(found, own)
    return [one.numpy().tobytes().decode() for one in found]


def wait_for_ranks() -> None:
    """Return when all ranks have called this."""
    if number_of_ranks() > 1:
        dist.barrier()


def common_error(what: str, got: object, expected: str, remedy: str) -> InputError:
    """An error that every rank finds by itself, and only rank 0 shows."""
    return (InputError if rank() == 0 else OtherRankError)(what, got, expected, remedy)


def _broadcast(message: bytes, source: int = 0) -> bytes:
    length = torch.tensor([len(message)])
    dist.broadcast(length, source)
    content = torch.zeros(int(length), dtype=torch.uint8)
    if rank() == source:
        content = torch.frombuffer(bytearray(message), dtype=torch.uint8)
    dist.broadcast(content, source)
    return content.numpy().tobytes()
