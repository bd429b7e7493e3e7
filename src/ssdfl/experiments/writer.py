"""Let exactly one of the processes that run an experiment together write its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from ssdfl.engine.ranks import decide_on_rank_0, find_on_rank_0, joined, rank
from ssdfl.records.engines import engine_traits
from ssdfl.records.sections import EngineSection

Result = TypeVar("Result")


@dataclass(frozen=True)
class Process:
    """The role of this process among the processes that run an experiment.

    Attributes:
        writes: whether it is the writer, which reads and writes the run's folder.
        text_of_writer: calls a function in the writer, and returns its text in all processes.
        choice_of_writer: returns the writer's boolean in all processes.
    """

    writes: bool
    text_of_writer: Callable[[Callable[[], str]], str]
    choice_of_writer: Callable[[bool], bool]

    def in_writer(self, work: Callable[[], Result]) -> Result | None:
        """Call ``work`` in the writer only; None elsewhere. An error there ends all processes."""
        results: list[Result] = []

        def do() -> str:
            results.append(work())
            return ""

        self.text_of_writer(do)
        return results[0] if results else None


ALONE = Process(True, lambda find: find(), bool)


@contextmanager
def joining_others(engine: EngineSection) -> Iterator[Process]:
    """Join the other ranks if the engine runs in ranks; yields this process's role."""
    if not engine_traits(engine.name).ranks:
        yield ALONE
        return
    with joined(engine.device):
        yield Process(rank() == 0, find_on_rank_0, decide_on_rank_0)
