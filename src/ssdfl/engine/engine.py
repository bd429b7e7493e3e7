"""What every engine offers to the loop."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor

from ssdfl.arrays import FloatArray
from ssdfl.engine.shares import Shares
from ssdfl.engine.state import State
from ssdfl.learning import Home
from ssdfl.methods import Step


class Advanced(NamedTuple):
    """What a step came to, of the devices here.

    Attributes:
        X: (n, d) parameters.
        memory: what optimizers and rules keep, as in `State`.
        moved: (n,) how far each device that trained has moved; 0 for the others.
        sent: messages that were really sent; None if the schedule tells.
        ready_s: (N,) when devices here and those they hear were ready; None if the state tells.
    """

    X: Tensor
    memory: dict[str, Tensor]
    moved: Tensor
    sent: int | None = None
    ready_s: FloatArray | None = None


class Engine(Protocol):
    """How steps are executed. `ssdfl.engine.loop` does the rest for every engine.

    Attributes:
        shares: which devices the engine has here.
    """

    shares: Shares

    def begin(self, state: State | None) -> State:
        """The state to continue from, of the devices here; None begins."""

    def advance(self, state: State, step: Step, t: int) -> Advanced:
        """Take step t.

        The engine may write into what it returned before, never into anything else.
        """

    def evaluate(self, X: Tensor, home: Home | None = None) -> tuple[Tensor, Tensor]:
        """(n,) mean test losses and (n, metrics) scores of the rows of X.

        Args:
            home: (n, k) each, the model's buffers that are not in the rows, if it has any.
        """

    def close(self) -> None:
        """End what the engine started."""
