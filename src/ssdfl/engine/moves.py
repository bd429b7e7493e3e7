"""How far local training moves devices, as rules see it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Standstill:
    """The move of devices that do not train.

    Attributes:
        theta: (n, d) where they are.
    """

    theta: Tensor

    def value(self) -> Tensor:
        """(n, d) zeros."""
        return torch.zeros_like(self.theta)

    def direction(self) -> Tensor:
        """(n, d) zeros."""
        return torch.zeros_like(self.theta)

    def added_to(self, rows: Tensor) -> Tensor:
        """The rows as they are."""
        return rows

    def applied_to(self, theta: Tensor, out: Tensor | None = None) -> Tensor:
        """The parameters as they are; copied if there is room for them."""
        return theta if out is None else out.copy_(theta)


@dataclass(frozen=True, eq=False)
class PlainMove:
    """A displacement (1, d) as it is."""

    displacement: Tensor
    rate: float
    steps: int

    def value(self) -> Tensor:
        """(1, d) the displacement."""
        return self.displacement

    def put_into(self, room: Tensor) -> PlainMove:
        """The same: it makes new rows."""
        return self

    def direction(self) -> Tensor:
        """(1, d) what local steps went down along on average."""
        return self.displacement / (-self.rate * self.steps)

    def added_to(self, rows: Tensor) -> Tensor:
        """The rows plus the displacement."""
        return rows + self.displacement

    def applied_to(self, theta: Tensor, out: Tensor | None = None) -> Tensor:
        """The parameters plus the displacement."""
        return torch.add(theta, self.displacement, out=out)


@dataclass(frozen=True, eq=False)
class Displacement:
    """The move of devices that trained: η times the last direction, and the local steps before it.

    Attributes:
        last: (n, d) what the last local step goes down along.
        rate: η of the step.
        steps: E, how many local steps there were.
        earlier: (n, d) how far the local steps before moved, if there were any.
        room: (n, d) where `added_to` puts the sum; by default into the rows that it is given.
    """

    last: Tensor
    rate: float
    steps: int = 1
    earlier: Tensor | None = None
    room: Tensor | None = None

    def put_into(self, room: Tensor) -> Displacement:
        """The same, whose sum with rows goes into some other ones: one pass less over memory."""
        return replace(self, room=room)

    def value(self) -> Tensor:
        """(n, d) the displacement."""
        moved = self.last * -self.rate
        return moved if self.earlier is None else moved.add_(self.earlier)

    def direction(self) -> Tensor:
        """(n, d) what local steps went down along on average."""
        if self.earlier is None:
            return self.last
        return torch.sub(self.last, self.earlier, alpha=1 / self.rate).div_(self.steps)

    def added_to(self, rows: Tensor) -> Tensor:
        """The rows plus the displacement, in ``room``."""
        return self.applied_to(rows, rows if self.room is None else self.room)

    def applied_to(self, theta: Tensor, out: Tensor | None = None) -> Tensor:
        """The parameters plus the displacement, in ``out`` if it is given."""
        moved: Tensor = torch.add(theta, self.last, alpha=-self.rate, out=out)
        return moved if self.earlier is None else moved.add_(self.earlier)
