"""Learning-rate schedules over cycles: factors that multiply η, joined by ``+``.

For example ``cosine``, ``step:every=20,factor=0.5``, ``warmup:over=5+inverse_sqrt``, or your own
function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ssdfl.errors import InputError, check_range, find_function, number_from
from ssdfl.specs import call_with_options, parse_spec

Factor = Callable[[int], float]
"""The factor of η in a cycle, counted from 0."""


def constant(cycle: int, cycles: int) -> float:
    """1 in every cycle."""
    return 1.0


def step(cycle: int, cycles: int, every: int = 10, factor: float = 0.5) -> float:
    """Multiply by ``factor`` after every ``every`` cycles.

    Examples:
        >>> [step(cycle, 30, every=2) for cycle in range(5)]
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    check_range("rate step: every", every, 1)
    return float(factor ** (cycle // every))


def cosine(cycle: int, cycles: int, floor: float = 0.0) -> float:
    """Half a cosine from 1 in the first cycle towards ``floor`` after the last.

    Examples:
        >>> [round(cosine(cycle, 4), 3) for cycle in range(4)]
        [1.0, 0.854, 0.5, 0.146]
    """
    check_range("rate cosine: floor", floor, 0, 1)
    return floor + (1 - floor) * (1 + math.cos(math.pi * cycle / cycles)) / 2


def inverse_sqrt(cycle: int, cycles: int) -> float:
    """1 / √(cycle + 1), as many convergence proofs require.

    Examples:
        >>> inverse_sqrt(3, 10)
        0.5
    """
    return 1 / math.sqrt(cycle + 1)


def warmup(cycle: int, cycles: int, over: int = 5) -> float:
    """Rise linearly to 1 over the first cycles. Join it with another: ``warmup:over=3+cosine``.

    Examples:
        >>> [warmup(cycle, 10, over=4) for cycle in range(5)]
        [0.25, 0.5, 0.75, 1.0, 1.0]
    """
    check_range("rate warmup: over", over, 1)
    return min(1.0, (cycle + 1) / over)


RATES: dict[str, Callable[..., float]] = {
    "constant": constant,
    "step": step,
    "cosine": cosine,
    "inverse_sqrt": inverse_sqrt,
    "warmup": warmup,
}


def find_rate(text: str, cycles: int) -> Factor:
    """The factors of all cycles by ``name:key=value,…``; parts joined by ``+`` multiply.

    Your own function, ``module:function``, gets the cycle, the number of cycles and its options.

    Raises:
        InputError: the schedule or option does not exist, or a factor is not positive and finite.

    Examples:
        >>> factor = find_rate("warmup:over=2+cosine", 4)
        >>> [round(factor(cycle), 3) for cycle in range(4)]
        [0.5, 0.854, 0.5, 0.146]
    """
    factors = [_factor(part, cycles) for part in text.split("+")]

    def product(cycle: int) -> float:
        found = math.prod(factor(cycle) for factor in factors)
        if not 0 < found < math.inf:
            expected = "a positive factor in every cycle"
            raise InputError(
                "training.rate", f"{text} in cycle {cycle}: {found}", expected, "Raise it."
            )
        return found

    for cycle in range(cycles):
        product(cycle)
    return product


def _factor(text: str, cycles: int) -> Factor:
    name, options = parse_spec(text, "training.rate")
    function = find_function(RATES, name, "training.rate")
    chosen = call_with_options(function, options, f"rate {name}", given=2)

    def factor(cycle: int) -> float:
        what = f"training.rate: {name} in cycle {cycle}"
        return number_from(partial(function, **chosen), cycle, cycles, what=what)

    return factor
