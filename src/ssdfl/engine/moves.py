"""The displacement of devices by local training, as rules use it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Standstill:
    """The move of devices that do not train.

    Attributes:
        theta: (n, d) their parameters.
    """

    theta: Tensor

    def value(self) -> Tensor:
        """(n, d) zeros."""
        return torch.zeros_like(self.theta)

    def direction(self) -> Tensor:
        """(n, d) zeros."""
        return torch.zeros_like(self.theta)

    def added_to(self, rows: Tensor) -> Tensor:
        """The rows unchanged."""
        return rows

    def applied_to(self, theta: Tensor, out: Tensor | None = None) -> Tensor:
        """The parameters unchanged; copied to ``out`` if it is given."""
        return theta if out is None else out.copy_(theta)


@dataclass(frozen=True, eq=False)
class PlainMove:
    """A given displacement (1, d)."""

    displacement: Tensor
    rate: float
    steps: int

    def value(self) -> Tensor:
        """(1, d) the displacement."""
        return self.displacement

    def put_into(self, room: Tensor) -> PlainMove:
        """This move; it always makes new rows."""
        return self

    def direction(self) -> Tensor:
        """(1, d) the mean descent direction of local steps."""
        return self.displacement / (-self.rate * self.steps)

    def added_to(self, rows: Tensor) -> Tensor:
        """The rows plus the displacement."""
        return rows + self.displacement

    def applied_to(self, theta: Tensor, out: Tensor | None = None) -> Tensor:
        """The parameters plus the displacement."""
        return torch.add(theta, self.displacement, out=out)


@dataclass(frozen=True, eq=False)
class Displacement:
    """The move of devices that trained: −η times the last direction, plus earlier local steps.

    Attributes:
        last: (n, d) the descent direction of the last local step.
        rate: η of the step.
        steps: E, the number of local steps.
        earlier: (n, d) the displacement of the local steps before, if any.
        room: (n, d) the destination of `added_to`; by default its argument.
    """

    last: Tensor
    rate: float
    steps: int = 1
    earlier: Tensor | None = None
    room: Tensor | None = None

    def put_into(self, room: Tensor) -> Displacement:
        """The same move with another destination for sums, which saves a pass over memory."""
        return replace(self, room=room)

    def value(self) -> Tensor:
        """(n, d) the displacement."""
        moved = self.last * -self.rate
        return moved if self.earlier is None else moved.add_(self.earlier)

    def direction(self) -> Tensor:
        """(n, d) the mean descent direction of local steps."""
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


@dataclass(frozen=True, eq=False)
class PartedDisplacement:
    """One local step: −η times directions that come in parts; a piece of a `PiecewiseMove`.

    Attributes:
        parts: (n, k) each, the parts of the directions' rows in order.
        rate: η of the step.
    """

    parts: list[Tensor]
    rate: float

    def value(self) -> Tensor:
        """(n, d) the displacement."""
        return self.direction().mul_(-self.rate)

    def direction(self) -> Tensor:
        """(n, d) the directions."""
        return torch.cat(self.parts, dim=1)

    def applied_to(self, theta: Tensor, out: Tensor | None = None) -> Tensor:
        """The parameters plus the displacement, in ``out`` if it is given."""
        out = torch.empty_like(theta) if out is None else out
        sizes = [part.shape[1] for part in self.parts]
        for part, old, new in zip(
            self.parts, theta.split(sizes, dim=1), out.split(sizes, dim=1), strict=True
        ):
            torch.add(old, part, alpha=-self.rate, out=new)
        return out


@dataclass(frozen=True, eq=False)
class PiecewiseMove:
    """The move of devices that trained with different optimizers.

    Attributes:
        pieces: which rows, in order, and how these moved in the last local step; together they are
            all rows.
        rate: η of the step.
        steps: E, the number of local steps.
        earlier: (n, d) the displacement of the local steps before, if any.
        room: (n, d) where `added_to` puts the sum; by default into the rows that it is given.
    """

    pieces: list[tuple[slice, Displacement | PartedDisplacement]]
    rate: float
    steps: int = 1
    earlier: Tensor | None = None
    room: Tensor | None = None

    def put_into(self, room: Tensor) -> PiecewiseMove:
        """The same, whose sum with rows goes into some other ones."""
        return replace(self, room=room)

    def value(self) -> Tensor:
        """(n, d) the displacement."""
        moved = _joined([move.value() for _, move in self.pieces])
        return moved if self.earlier is None else moved.add_(self.earlier)

    def direction(self) -> Tensor:
        """(n, d) the mean descent direction of local steps."""
        last = _joined([move.direction() for _, move in self.pieces])
        if self.earlier is None:
            return last
        return torch.sub(last, self.earlier, alpha=1 / self.rate).div_(self.steps)

    def added_to(self, rows: Tensor) -> Tensor:
        """The rows plus the displacement, in ``room``."""
        return self.applied_to(rows, rows if self.room is None else self.room)

    def applied_to(self, theta: Tensor, out: Tensor | None = None) -> Tensor:
        """The parameters plus the displacement, in ``out`` if it is given."""
        out = torch.empty_like(theta) if out is None else out
        for rows, move in self.pieces:
            move.applied_to(theta[rows], out[rows])
        return out if self.earlier is None else out.add_(self.earlier)


def _joined(rows: list[Tensor]) -> Tensor:
    """All rows in one tensor; no copy of a single one."""
    return rows[0] if len(rows) == 1 else torch.cat(rows)
