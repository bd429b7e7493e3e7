"""Attacks: what a liar sends instead of the truth.

A liar trains and keeps memory as its rule says, but sends something else. It knows everything that
the device it lies to hears, and may send each neighbour something different.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ssdfl.errors import InputError, find_function
from ssdfl.specs import call_with_options, parse_spec

Rows = Any
"""(n, k) a tensor with one row for each message."""


@dataclass(frozen=True, eq=False)
class Hearing:
    """What one device would hear in a step if nobody lied.

    Attributes:
        own: (k,) the device's own message.
        honest: (h, k) the messages of its honest neighbours.
        honest_weights: (h, 1) w_ij of these.
        liars: (b, k) the true messages of its neighbours that lie.
        liars_weights: (b, 1) w_ij of these.
        noise: (b, k) standard normal numbers, for each liar and step the same whoever hears it.
    """

    own: Rows
    honest: Rows
    honest_weights: Rows
    liars: Rows
    liars_weights: Rows
    noise: Callable[[], Rows]


Attack = Callable[[Hearing], Rows]
"""(b, k) what the liars among a device's neighbours send to it."""


@dataclass(frozen=True)
class SignFlip:
    """The true message, pointing the other way.

        m̃_j = −scale · m_j

    Source: Li, Xu, Chen, Giannakis and Ling, RSA: Byzantine-robust stochastic aggregation methods,
    AAAI 2019.
    """

    scale: float = 1.0

    def __call__(self, hearing: Hearing) -> Rows:
        """The negative messages."""
        return -self.scale * hearing.liars


@dataclass(frozen=True)
class Noise:
    """The true message and normal noise of its own size.

        m̃_j = m_j + scale · rms(m_j) · n,  n ~ N(0, I)

    Source: the Gaussian attack of Blanchard, El Mhamdi, Guerraoui and Stainer, Machine learning
    with adversaries, NeurIPS 2017.
    """

    scale: float = 3.0

    def __call__(self, hearing: Hearing) -> Rows:
        """The messages with noise."""
        size = hearing.liars.square().mean(1, keepdim=True).sqrt()
        return hearing.liars + self.scale * size * hearing.noise()


@dataclass(frozen=True)
class SameValue:
    """The same number everywhere, from all liars.

        m̃_j = value · 1

    Source: Li, Xu, Chen, Giannakis and Ling, RSA: Byzantine-robust stochastic aggregation methods,
    AAAI 2019.
    """

    value: float = 1.0

    def __call__(self, hearing: Hearing) -> Rows:
        """Constant messages."""
        return hearing.liars * 0 + self.value


@dataclass(frozen=True)
class LittleIsEnough:
    """Off the mean of the honest messages, too little to stand out, all liars on the same side.

        m̃_j = μ − z σ

    μ and σ are mean and deviation, number by number, of what the device and its honest neighbours
    send.

    Source: Baruch, Baruch and Goldberg, A little is enough: circumventing defenses for distributed
    learning, NeurIPS 2019.
    """

    z: float = 1.5

    def __call__(self, hearing: Hearing) -> Rows:
        """The same message from all liars."""
        count = len(hearing.honest) + 1
        mean = (hearing.honest.sum(0) + hearing.own) / count
        squares = (hearing.honest - mean).square().sum(0) + (hearing.own - mean).square()
        return hearing.liars * 0 + (mean - self.z * (squares / count).sqrt())


@dataclass(frozen=True)
class Dissensus:
    """What undoes the honest neighbours' pull towards agreement, and more.

        m̃_j = x_i − ε Σ_{k honest} w_ik (x_k − x_i) / Σ_{b liar} w_ib

    Device i, which hears it, stays where it is for ε = 1, and moves away from its neighbours above
    that.

    Source: He, Karimireddy and Jaggi, Byzantine-robust decentralized learning via ClippedGossip,
    2022, arXiv:2202.01545.
    """

    epsilon: float = 1.5

    def __call__(self, hearing: Hearing) -> Rows:
        """The same message from all liars, another for every device that hears it."""
        pull = (hearing.honest_weights * (hearing.honest - hearing.own)).sum(0)
        return hearing.liars * 0 + (hearing.own - self.epsilon * pull / hearing.liars_weights.sum())


ATTACKS: dict[str, Callable[..., Attack]] = {
    "sign-flip": SignFlip,
    "noise": Noise,
    "same-value": SameValue,
    "little-is-enough": LittleIsEnough,
    "dissensus": Dissensus,
}


def find_attack(text: str) -> Attack:
    """The attack that ``name:key=value,…`` names, or a user's own by ``package.module:name``.

    A user's own is a class or function that returns an attack, called with the options.

    Raises:
        InputError: no such attack, or an option that it does not take.

    Examples:
        >>> find_attack("little-is-enough:z=1")
        LittleIsEnough(z=1.0)
    """
    name, options = parse_spec(text, "faults.attack")
    make = find_function(ATTACKS, name, "faults.attack")
    attack = make(**call_with_options(make, options, f"attack {name}"))
    if not callable(attack):
        remedy = "Return a function of a Hearing; see docs/methods.md, Liars."
        raise InputError("faults.attack", name, "an attack", remedy)
    return attack  # type: ignore[no-any-return]
