"""Learning-rate schedules by their texts; that engines follow them is tested with the engines."""

import math

import pytest

from ssdfl.errors import InputError
from ssdfl.learning import RATES, find_rate


def saw(cycle: int, cycles: int, teeth: int = 2) -> float:
    return 1 - cycle % teeth / cycles


def broken(cycle):
    return 1.0


def nothing(cycle, cycles):
    return None


def unknown(cycle, cycles):
    return math.nan


def factors(text, cycles):
    return [find_rate(text, cycles)(cycle) for cycle in range(cycles)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("constant", [1, 1, 1, 1]),
        ("step:every=2,factor=0.1", [1, 1, 0.1, 0.1]),
        ("cosine", [(1 + math.cos(math.pi * k / 4)) / 2 for k in range(4)]),
        ("cosine:floor=0.5", [0.5 + (1 + math.cos(math.pi * k / 4)) / 4 for k in range(4)]),
        ("inverse_sqrt", [1, 1 / math.sqrt(2), 1 / math.sqrt(3), 1 / 2]),
        ("warmup:over=3", [1 / 3, 2 / 3, 1, 1]),
        ("warmup:over=2+step:every=3", [1 / 2, 1, 1, 1 / 2]),
        (f"{__name__}:saw", [1, 3 / 4, 1, 3 / 4]),
        (f"{__name__}:saw:teeth=3+warmup:over=2", [1 / 2, 3 / 4, 1 / 2, 1]),
    ],
)
def test_factors(text, expected):
    assert factors(text, 4) == pytest.approx(expected)


@pytest.mark.parametrize("name", RATES)
def test_every_schedule_is_positive_and_never_above_1(name):
    found = factors(name, 37)
    assert min(found) > 0
    assert max(found) <= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("linear", "training.rate = linear: expected one of constant, step"),
        ("step:evry=2", "rate step: evry = 2: expected one of the options every, factor"),
        ("step:every=0", "rate step: every = 0"),
        ("step:factor=-1", "expected a positive factor in every cycle"),
        ("step:factor=fast", "expected a number"),
        ("cosine:floor=2", "rate cosine: floor = 2"),
        ("warmup:over=0", "rate warmup: over = 0"),
        ("warmup+", "training.rate"),
        ("math:pi", "training.rate = math:pi: expected a function"),
        (
            f"{__name__}:broken",
            "broken in cycle 0 = an error: expected a number. It says: TypeError",
        ),
        (
            f"{__name__}:nothing",
            "nothing in cycle 0 = an error: expected a number. It says: TypeError",
        ),
        (f"{__name__}:unknown", "unknown in cycle 0 = nan: expected a number"),
    ],
)
def test_bad_schedules(text, message):
    with pytest.raises(InputError, match=message):
        find_rate(text, 20)
