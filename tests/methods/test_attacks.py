"""Attacks against closed forms."""

import numpy as np
import pytest
import torch

from ssdfl.errors import InputError
from ssdfl.methods import ATTACKS, Hearing, find_attack

OWN = torch.tensor([1.0, 2.0], dtype=torch.float64)
HONEST = torch.tensor([[3.0, 2.0], [2.0, 5.0]], dtype=torch.float64)
LIARS = torch.tensor([[1.0, -2.0], [3.0, 4.0]], dtype=torch.float64)


def hearing(noise=None):
    weights = torch.tensor([[0.1], [0.2]], dtype=torch.float64)
    return Hearing(OWN, HONEST, weights, LIARS, weights * 1.5, lambda: noise)


def said(text, noise=None):
    return find_attack(text)(hearing(noise)).numpy()


def test_sign_flip():
    assert said("sign-flip") == pytest.approx(-LIARS.numpy())
    assert said("sign-flip:scale=2") == pytest.approx(-2 * LIARS.numpy())


def test_noise_is_as_large_as_the_message():
    noise = torch.tensor([[1.0, -1.0], [0.5, 0.0]], dtype=torch.float64)
    sizes = np.sqrt([(1 + 4) / 2, (9 + 16) / 2])[:, None]
    assert said("noise:scale=2", noise) == pytest.approx(LIARS.numpy() + 2 * sizes * noise.numpy())


def test_same_value():
    assert said("same-value:value=7").tolist() == [[7, 7], [7, 7]]


def test_little_is_enough_is_so_many_deviations_below_the_mean():
    everyone = np.vstack([OWN, HONEST])
    expected = everyone.mean(axis=0) - 1.5 * everyone.std(axis=0)
    assert said("little-is-enough") == pytest.approx(np.tile(expected, (2, 1)))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 1.5])
def test_dissensus_undoes_agreement(epsilon):
    """What the device takes from its neighbours and liars is 1 − ε times what honest ones give."""
    lies, view = torch.from_numpy(said(f"dissensus:epsilon={epsilon}")), hearing()
    honest = (view.honest_weights * (HONEST - OWN)).sum(0)
    taken = honest + (view.liars_weights * (lies - OWN)).sum(0)
    assert taken.numpy() == pytest.approx((1 - epsilon) * honest.numpy())


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_leave_what_they_look_at_as_it_was(attack):
    noise = torch.ones_like(LIARS)
    before = [OWN.clone(), HONEST.clone(), LIARS.clone()]
    assert said(attack, noise).shape == (2, 2)
    assert all(torch.equal(*pair) for pair in zip(before, (OWN, HONEST, LIARS), strict=True))


def test_unknown_attacks_and_options():
    with pytest.raises(
        InputError, match="faults.attack = gaslight: expected one of sign-flip, noise"
    ):
        find_attack("gaslight")
    with pytest.raises(InputError, match="attack noise: z = 1: expected one of the options scale"):
        find_attack("noise:z=1")
