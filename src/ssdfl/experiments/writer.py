"""Of the processes that run an experiment together, exactly one writes its files."""

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
    """This process among those that run an experiment.

    Attributes:
        writes: whether it is the one that reads and writes the run's folder.
        text_of_writer: the text that a function returns in the writer, known to all afterwards.
        choice_of_writer: the writer's yes or no, known to all afterwards.
    """

    writes: bool
    text_of_writer: Callable[[Callable[[], str]], str]
    choice_of_writer: Callable[[bool], bool]

    def in_writer(self, work: Callable[[], Result]) -> Result | None:
        """Do work in the writing process only; None elsewhere. An error there ends all."""
        results: list[Result] = []

        def do() -> str:
            results.append(work())
            return ""

        self.text_of_writer(do)
        return results[0] if results else None


ALONE = Process(True, lambda find: find(), bool)


@contextmanager
def joining_others(engine: EngineSection) -> Iterator[Process]:
    """This process's role, having joined the other ranks if the engine runs in ranks."""
    if not engine_traits(engine.name).ranks:
        yield ALONE
        return
    with joined(engine.device):
        yield Process(rank() == 0, find_on_rank_0, decide_on_rank_0)
