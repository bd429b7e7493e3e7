"""The interface between engines and the loop."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor

from ssdfl.arrays import FloatArray
from ssdfl.engine.shares import Shares
from ssdfl.engine.state import State
from ssdfl.learning import Home
from ssdfl.methods import Step


class Advanced(NamedTuple):
    """The result of a step, for the devices here.

    Attributes:
        X: (n, d) parameters.
        memory: the memory of optimizers and rules, as in `State`.
        moved: (n,) the distance that each device moved in training; 0 without training.
        sent: the number of messages really sent; None if it follows from the schedule.
        ready_s: (N,) when the devices here and their senders were ready; None if the state has it.
    """

    X: Tensor
    memory: dict[str, Tensor]
    moved: Tensor
    sent: int | None = None
    ready_s: FloatArray | None = None


class Engine(Protocol):
    """Executes steps. `ssdfl.engine.loop` does the rest for every engine.

    Attributes:
        shares: the devices that the engine has here.
    """

    shares: Shares

    def begin(self, state: State | None) -> State:
        """The state to continue from, for the devices here; None starts from the beginning."""

    def advance(self, state: State, step: Step, t: int) -> Advanced:
        """Take step t.

        The engine may overwrite only what it returned earlier.
        """

    def evaluate(self, X: Tensor, home: Home | None = None) -> tuple[Tensor, Tensor]:
        """(n,) mean test losses and (n, metrics) scores of the rows of X.

        Args:
            home: the model's buffers that are not in the rows, if any; (n, k) each.
        """

    def close(self) -> None:
        """End the threads and processes that the engine started."""
