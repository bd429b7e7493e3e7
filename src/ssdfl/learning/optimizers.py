"""The optimizers of devices: pairs of functions over rows, `init` and `update`.

An update turns a gradient into a descent direction: θ ← θ − η · direction. The paper's family is
SGD with momentum, a proximal term, or both (`eq:eff_sgd_ovr`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ssdfl.errors import InputError, import_object
from ssdfl.mappings import picked, without
from ssdfl.specs import convert, parse_spec

PAPER_RHO = (0.8, 0.85)
PAPER_MU = (5e-5, 1e-4)

Memory = dict[str, Tensor]
"""The state that an optimizer keeps from step to step, by name: (n, k) rows."""

Update = Callable[..., tuple[Tensor, Memory]]
"""``update(gradient, theta, memory, *, name=…)``: (n, d) directions and the memory to keep.

Hyperparameters are keyword-only (n, 1) tensors with one row per device. An update may write
into ``gradient`` and into the tensors of ``memory``, not into ``theta``.
"""


def _nothing(theta: Tensor) -> Memory:
    return {}


@dataclass(frozen=True)
class OptimizerKind:
    """A kind of optimizer.

    Attributes:
        name: its name in specs.
        update: from gradients to directions.
        init: the memory of devices that start a regime at (n, d) parameters.
        restarts: memory that is reset in every regime, even if momenta are kept across regimes.
        plain: directions are the gradients themselves, so `update` need not be called.
        by_number: each number of a direction depends on the same number of gradient, parameters and
            memory alone, so that parts of rows may be updated one after the other.
    """

    name: str
    update: Update
    init: Callable[[Tensor], Memory] = _nothing
    restarts: frozenset[str] = frozenset()
    plain: bool = False
    by_number: bool = False

    @cached_property
    def defaults(self) -> Mapping[str, float]:
        """The hyperparameters and their defaults; NaN for one that has none."""
        parameters = inspect.signature(self.update).parameters.values()
        own = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        return {p.name: float("nan") if p.default is p.empty else float(p.default) for p in own}


def sgd(gradient: Tensor, theta: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
    """Plain SGD: the direction is the gradient (`eq:eff_sgd`)."""
    return gradient, memory


def momentum(
    gradient: Tensor, theta: Tensor, memory: Memory, *, rho: Tensor
) -> tuple[Tensor, Memory]:
    """SGD with momentum: v ← g + ρ v; the direction is v (`eq:eff_sgd_mtm`)."""
    return _pushed(memory["velocity"], gradient, rho), memory


def damped(
    gradient: Tensor, theta: Tensor, memory: Memory, *, rho: Tensor
) -> tuple[Tensor, Memory]:
    """Damped momentum: v ← (1 − ρ) g + ρ v; the direction is v, with the step size of SGD."""
    return _pushed(memory["velocity"], gradient.mul_(1 - rho), rho), memory


def nesterov(
    gradient: Tensor, theta: Tensor, memory: Memory, *, rho: Tensor
) -> tuple[Tensor, Memory]:
    """Nesterov momentum: v ← g + ρ v; the direction is g + ρ v."""
    velocity = _pushed(memory["velocity"], gradient, rho)
    return gradient.addcmul_(rho, velocity), memory


def proximal(
    gradient: Tensor, theta: Tensor, memory: Memory, *, mu: Tensor
) -> tuple[Tensor, Memory]:
    """Proximal SGD: the direction is g + μ (θ − θ⁰); θ⁰ starts the regime (`eq:eff_prox_sgd`)."""
    return gradient.addcmul_(-mu, memory["anchor"]).addcmul_(mu, theta), memory


def effective(
    gradient: Tensor, theta: Tensor, memory: Memory, *, rho: Tensor, mu: Tensor
) -> tuple[Tensor, Memory]:
    """Momentum and proximal term: v ← g + ρ v; direction v + μ (θ − θ⁰) (`eq:eff_sgd_ovr`)."""
    velocity = _pushed(memory["velocity"], gradient, rho)
    return torch.addcmul(velocity, -mu, memory["anchor"]).addcmul_(mu, theta), memory


def _pushed(velocity: Tensor, gradient: Tensor, rho: Tensor) -> Tensor:
    """v ← g + ρ v, in place."""
    return torch.addcmul(gradient, rho, velocity, out=velocity)


def adam(
    gradient: Tensor,
    theta: Tensor,
    memory: Memory,
    *,
    beta1: Tensor | float = 0.9,
    beta2: Tensor | float = 0.999,
    epsilon: Tensor | float = 1e-8,
) -> tuple[Tensor, Memory]:
    """Adam: m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g²; the direction is m̂ / (√v̂ + ε).

    m̂ and v̂ are corrected for their initial value 0.
    """
    first, second, count = memory["first"], memory["second"], memory["count"]
    count += 1
    first.mul_(beta1).add_((1 - beta1) * gradient)
    second.mul_(beta2).add_((1 - beta2) * gradient.square())
    scale = (second / (1 - beta2**count)).sqrt_().add_(epsilon)
    return first / (1 - beta1**count) / scale, memory


def adamw(
    gradient: Tensor,
    theta: Tensor,
    memory: Memory,
    *,
    beta1: Tensor | float = 0.9,
    beta2: Tensor | float = 0.999,
    epsilon: Tensor | float = 1e-8,
    decay: Tensor | float = 0.01,
) -> tuple[Tensor, Memory]:
    """Adam with decoupled weight decay: Adam's direction plus decay · θ."""
    direction, memory = adam(gradient, theta, memory, beta1=beta1, beta2=beta2, epsilon=epsilon)
    return direction + decay * theta, memory


def _velocity(theta: Tensor) -> Memory:
    return {"velocity": torch.zeros_like(theta)}


def _anchor(theta: Tensor) -> Memory:
    return {"anchor": theta.clone()}


def _velocity_and_anchor(theta: Tensor) -> Memory:
    return _velocity(theta) | _anchor(theta)


def _moments(theta: Tensor) -> Memory:
    zeros = torch.zeros_like(theta)
    return {"first": zeros, "second": zeros.clone(), "count": zeros[:, :1].clone()}


_KNOWN = (
    OptimizerKind("sgd", sgd, plain=True, by_number=True),
    OptimizerKind("momentum", momentum, _velocity, by_number=True),
    OptimizerKind("damped", damped, _velocity, by_number=True),
    OptimizerKind("nesterov", nesterov, _velocity, by_number=True),
    OptimizerKind("proximal", proximal, _anchor, frozenset({"anchor"}), by_number=True),
    OptimizerKind(
        "effective", effective, _velocity_and_anchor, frozenset({"anchor"}), by_number=True
    ),
    OptimizerKind("adam", adam, _moments),
    OptimizerKind("adamw", adamw, _moments),
)

OPTIMIZERS: dict[str, OptimizerKind] = {kind.name: kind for kind in _KNOWN}

KINDS = ("mixed", *OPTIMIZERS)

MIXED = ("sgd", "momentum", "proximal")
"""The kinds that ``mixed`` draws from, as in the paper's hybrid setting."""

_BELOW_ONE = ("rho", "mu", "beta1", "beta2")
RATE = "rate"


@dataclass(frozen=True)
class Optimizer:
    """One device's optimizer: a kind and its hyperparameters.

    Attributes:
        kind: how it turns gradients into directions.
        hyper: its hyperparameters by name; missing ones take the kind's defaults.
        rate: the device's own learning rate; None for the experiment's.
    """

    kind: OptimizerKind
    hyper: Mapping[str, float] = field(default_factory=dict)
    rate: float | None = None

    def __post_init__(self) -> None:
        known = self.kind.defaults
        for name, value in self.hyper.items():
            _check_hyper(self.kind.name, name, value, known)
        self._check_complete()
        if self.rate is not None and not self.rate > 0:
            what = f"optimizer {self.kind.name}: rate"
            raise InputError(what, self.rate, "a number above 0", "Raise it.")
        object.__setattr__(self, "hyper", {**known, **self.hyper})

    def _check_complete(self) -> None:
        """Refuse an optimizer that lacks a value without a default, which is NaN."""
        for name, default in without(self.kind.defaults, self.hyper).items():
            if math.isnan(default):
                remedy = f"Write it like {self.kind.name}:{name}=0.9."
                raise InputError("optimizer", self.kind.name, f"a value of {name}", remedy)

    @property
    def rho(self) -> float:
        """The momentum for formation and bounds; 0 if there is none."""
        return self.hyper.get("rho", 0.0)

    @property
    def mu(self) -> float:
        """The proximal factor for formation and bounds; 0 if there is none."""
        return self.hyper.get("mu", 0.0)

    def __str__(self) -> str:
        values = {**self.hyper} if self.rate is None else {**self.hyper, RATE: self.rate}
        if len(values) == 1 and self.rate is None:
            return f"{self.kind.name}:{next(iter(values.values())):g}"
        options = ",".join(f"{name}={value:g}" for name, value in values.items())
        return f"{self.kind.name}:{options}" if options else self.kind.name


def _check_hyper(kind: str, name: str, value: float, known: Mapping[str, float]) -> None:
    if name not in known:
        choices = f"one of {', '.join([*known, RATE])}"
        raise InputError(f"optimizer {kind}: {name}", value, choices, "Correct or remove it.")
    if name in _BELOW_ONE and not 0 <= value < 1:
        raise InputError(f"optimizers: {name}", value, "a number in [0, 1)", "Choose such a value.")
    if not np.isfinite(value):
        raise InputError(
            f"optimizer {kind}: {name}", value, "a finite number", "Choose such a value."
        )


def paper_optimizer(rho: float = 0.0, mu: float = 0.0) -> Optimizer:
    """The optimizer of `eq:eff_sgd_ovr` with momentum ρ and proximal factor μ; either may be 0.

    Examples:
        >>> [str(paper_optimizer(*values)) for values in ((0, 0), (0.9, 0), (0, 0.1), (0.9, 0.1))]
        ['sgd', 'momentum:0.9', 'proximal:0.1', 'effective:rho=0.9,mu=0.1']
    """
    name = {(False, False): "sgd", (True, False): "momentum", (False, True): "proximal"}.get(
        (bool(rho), bool(mu)), "effective"
    )
    kind = OPTIMIZERS[name]
    return Optimizer(kind, picked({"rho": rho, "mu": mu}, kind.defaults))


def parse_optimizer(text: str) -> Optimizer:
    """An optimizer from ``kind:name=value,…``; a single number is the first hyperparameter.

    ``rate`` is the device's own learning rate. Your own kind is ``module:function``: an update, or
    an `OptimizerKind`.

    Raises:
        InputError: the kind or a hyperparameter is unknown, or a value is not valid.

    Examples:
        >>> parse_optimizer("momentum:0.9").rho
        0.9
        >>> str(parse_optimizer("adam:beta2=0.99,rate=0.001"))
        'adam:beta1=0.9,beta2=0.99,epsilon=1e-08,rate=0.001'
    """
    name, options = parse_spec(text, "optimizers")
    head, colon, number = name.rpartition(":")
    if colon and head in OPTIMIZERS and not options:
        first = next(iter(OPTIMIZERS[head].defaults), None)
        if first is None:
            raise InputError("optimizer", text, f"{head} with no number", f"Write {head}.")
        name, options = head, {first: number}
    values = {
        key: float(convert(f"optimizer {name}: {key}", value, float))
        for key, value in options.items()
    }
    rate = values.pop(RATE, None)
    return Optimizer(find_optimizer(name), values, rate)


def find_optimizer(name: str) -> OptimizerKind:
    """A kind of optimizer by its name, or a user's own by ``package.module:function``.

    Raises:
        InputError: it does not exist, or is neither an `OptimizerKind` nor a function.
    """
    if name in OPTIMIZERS:
        return OPTIMIZERS[name]
    if ":" not in name:
        choices = f"one of {', '.join(OPTIMIZERS)}"
        raise InputError("optimizer", name, choices, "Or name your own as package.module:function.")
    found = import_object(name, "optimizer")
    if isinstance(found, OptimizerKind):
        return found
    if not callable(found):
        raise InputError(
            "optimizer", name, "an update function or an OptimizerKind", "See docs/extend.md."
        )
    _check_update(name, found)
    return OptimizerKind(name, found)


def _check_update(name: str, update: Callable[..., object]) -> None:
    try:
        inspect.signature(update).bind_partial("gradient", "theta", "memory")
    except TypeError as error:
        expected = "a function (gradient, theta, memory, *, name=value)"
        raise InputError("optimizer", name, expected, f"Python says: {error}.") from None


def draw_optimizers(
    kind: str,
    num_devices: int,
    rng: np.random.Generator,
    rhos: tuple[float, ...] = PAPER_RHO,
    mus: tuple[float, ...] = PAPER_MU,
    mix: tuple[str, ...] = MIXED,
) -> tuple[Optimizer, ...]:
    """One optimizer per device: all of one kind, or ``mixed`` kinds drawn from ``mix``.

    ρ and μ are drawn uniformly from ``rhos`` and ``mus``, by default the paper's values, unless the
    kind is given with its own, as in ``momentum:0.9``.

    Examples:
        >>> drawn = draw_optimizers("mixed", 30, np.random.default_rng(0))
        >>> {optimizer.kind.name for optimizer in drawn} == set(MIXED)
        True
    """
    kinds = rng.choice(mix, size=num_devices) if kind == "mixed" else [kind] * num_devices
    drawn = [(float(rng.choice(rhos)), float(rng.choice(mus))) for _ in range(num_devices)]
    wanted = [(str(k), rho, mu) for k, (rho, mu) in zip(kinds, drawn, strict=True)]
    made = {one: _drawn(*one) for one in dict.fromkeys(wanted)}  # few kinds for many devices
    return tuple(made[one] for one in wanted)


def _drawn(spec: str, rho: float, mu: float) -> Optimizer:
    if spec not in OPTIMIZERS:
        return parse_optimizer(spec)
    kind = OPTIMIZERS[spec]
    return Optimizer(kind, picked({"rho": rho, "mu": mu}, kind.defaults))
