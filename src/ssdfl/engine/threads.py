"""Threads that share an engine's work: one per core, each with a single torch thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import TypeVar

import torch

from ssdfl.engine.job import Job

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads:
    """Runs independent pieces of work in parallel.

    Two cores finish two devices' convolutions sooner in parallel than one after the other with two
    threads each, and small pieces of work lose nothing to waiting threads. The division of work
    does not depend on the number of threads, so results are the same bits on any number of cores.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="ssdfl") if number > 1 else None

    def each(self, work: Callable[[int, Item], Result], items: Sequence[Item]) -> list[Result]:
        """``work(thread, item)`` for every item, in their order; whoever is free takes the next."""
        if self._pool is None or len(items) < 2:
            return [work(0, item) for item in items]
        results: dict[int, Result] = {}
        places = count()

        def take(thread: int) -> None:
            while (place := next(places)) < len(items):
                results[place] = work(thread, items[place])

        for done in [
            self._pool.submit(take, thread) for thread in range(min(self.number, len(items)))
        ]:
            done.result()
        return [results[place] for place in range(len(items))]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def threads_for(job: Job) -> Threads:
    """As many as torch may use; one on a GPU and for models that use torch's one generator."""
    alone = job.task.device.type != "cpu" or job.task.draws_random_numbers
    return Threads(1 if alone else torch.get_num_threads())


def use_cores(number: int) -> None:
    """Limit the threads of this process's engines from now on, as it shares the machine."""
    torch.set_num_threads(number)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Torch computes with one thread in every thread, and afterwards with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
