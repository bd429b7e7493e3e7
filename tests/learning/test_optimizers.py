from collections import Counter

import numpy as np
import pytest

from ssdfl.errors import InputError
from ssdfl.learning import KINDS, draw_optimizers, paper_optimizer, parse_optimizer
from ssdfl.learning.optimizers import PAPER_MU, PAPER_RHO


def test_the_papers_draw():
    drawn = draw_optimizers("mixed", 300, np.random.default_rng(0))
    kinds = Counter(optimizer.kind for optimizer in drawn)
    assert all(70 < kinds[kind] < 130 for kind in ("sgd", "momentum", "proximal"))
    assert {o.rho for o in drawn if o.kind == "momentum"} == set(PAPER_RHO)
    assert {o.mu for o in drawn if o.kind == "proximal"} == set(PAPER_MU)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_all_of_a_kind(kind):
    assert {o.kind for o in draw_optimizers(kind, 9, np.random.default_rng(0))} == {kind}


@pytest.mark.parametrize("text", ["sgd", "momentum:0.9", "proximal:0.001"])
def test_text_there_and_back(text):
    assert str(parse_optimizer(text)) == text


@pytest.mark.parametrize(
    "text", ["adam", "momentum", "momentum:x", "sgd:1", "momentum:1.0", "proximal:-1", ""]
)
def test_bad_text(text):
    with pytest.raises(InputError, match="optimizers"):
        parse_optimizer(text)


def test_a_device_has_one_optimizer():
    with pytest.raises(InputError, match="one of the two"):
        paper_optimizer(rho=0.5, mu=0.1)
