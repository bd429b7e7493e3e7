"""Compare a plan with the best and worst that its network allows, to detect when it is outdated.

No plan costs less per cycle than no clusters, and none drifts less than one cluster. So the product
of these two is about the lowest score that any plan can have. A plan's score divided by it, its
*gap*, is about the most that forming a new plan can gain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ssdfl.clusters.scores import COSTS, ScoreInputs

WORTH = 1.05
"""A new plan is worth forming if it may reduce the predicted cost by this factor."""
AGED = 0.2
"""It is also worth forming if this share of devices has come, gone or moved since."""


@dataclass(frozen=True)
class Standing:
    """How good a plan is for its network.

    Attributes:
        gap: its score, divided by about the lowest score that any plan can have.
        spread: the cost of a cycle with one cluster, divided by its cost with none.
        changed: the number of devices that came, went or moved since the plan was formed.
    """

    gap: float
    spread: float
    changed: int = 0


def standing_of(
    inputs: ScoreInputs, predicted: str | None, score: float, changed: int = 0
) -> Standing | None:
    """The standing of a plan with the given score; None if the score predicts no cost.

    Args:
        predicted: a name of `COSTS`.
    """
    if predicted is None:
        return None
    n = inputs.network.num_devices
    one, none = (tuple(range(n)),), tuple((device,) for device in range(n))
    one_cost, none_cost = (float(COSTS[predicted](inputs.cycle_cost(ends))) for ends in (one, none))
    if none_cost == 0:  # if cycles cost nothing, all plans are equal
        return Standing(1.0, 1.0, changed)
    return Standing(score / (none_cost * inputs.slowdown(one)), one_cost / none_cost, changed)


def reasons_to_form(
    formed: Standing | None, now: Standing | None, num_devices: int
) -> Iterator[str]:
    """Reasons to form a new plan, as text; empty if there are none.

    Args:
        formed: the standing of the plan when it was formed, if known.
        now: its standing after repairs.

    Examples:
        >>> list(reasons_to_form(Standing(1.2, 2.0), Standing(1.2, 2.0, changed=3), num_devices=10))
        ['3 of 10 devices have come, gone or moved since the plan was formed.']
    """
    if now is None:
        return
    if now.changed > AGED * num_devices:
        yield (
            f"{now.changed} of {num_devices} devices have come, gone or moved "
            "since the plan was formed."
        )
    if formed is None or now.gap <= WORTH:
        return
    if now.gap > WORTH * formed.gap:
        yield (
            f"The predicted cost is {now.gap:.3g} times the least possible; "
            f"it was {formed.gap:.3g} times when the plan was formed."
        )
    if now.spread * WORTH < formed.spread:
        yield (
            f"Links cost less: one cluster takes {now.spread:.3g} times the cycle of none; it took "
            f"{formed.spread:.3g} times when the plan was formed."
        )
