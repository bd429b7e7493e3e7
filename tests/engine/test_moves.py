"""A move in pieces is the move of the joined rows."""

import pytest
import torch

from ssdfl.engine.moves import Displacement, PartedDisplacement, PiecewiseMove

RATE, WIDTHS = 0.1, (3, 2)


def rows(seed):
    return torch.randn(5, sum(WIDTHS), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("earlier", [None, rows(2)])
def test_a_piecewise_move_is_that_of_joined_rows(earlier):
    last, theta, room = rows(0), rows(1), torch.empty(5, sum(WIDTHS))
    parts = [columns[3:] for columns in last.split(WIDTHS, dim=1)]
    pieces = [
        (slice(0, 3), Displacement(last[:3], RATE)),
        (slice(3, 5), PartedDisplacement(parts, RATE)),
    ]
    steps = 1 if earlier is None else 2
    whole = Displacement(last, RATE, steps, earlier)
    found = PiecewiseMove(pieces, RATE, steps, earlier)
    for name in ("value", "direction"):
        assert torch.equal(getattr(found, name)(), getattr(whole, name)()), name
    assert torch.equal(found.applied_to(theta), whole.applied_to(theta))
    assert found.put_into(room).added_to(theta) is room
    assert torch.equal(room, whole.applied_to(theta))
    assert torch.equal(found.added_to(theta), room)
