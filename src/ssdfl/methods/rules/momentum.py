"""Rules with momentum, per step or per cycle."""

from __future__ import annotations

from dataclasses import dataclass

from ssdfl.errors import InputError, check_range
from ssdfl.methods.moment import Moment, Rows
from ssdfl.methods.rules.base import Heard, Memory, Move, Rule
from ssdfl.methods.rules.wrapped import WrappedRule


def _check_momentum(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise InputError(name, value, "a number in [0, 1)", "0.9 is usual; 0 is no momentum.")


@dataclass(frozen=True)
class QuasiGlobalMomentum(Rule):
    """Quasi-global momentum: it averages the moves of mixed parameters, not local gradients.

        x⁺ = W (x − η (g + β m)),  m⁺ = β m + (1 − β) (x − x⁺) / η

    Each of E local steps descends along g + β m, and η becomes η E in m. A step that only mixes
    counts as part of the training step before it: it adds (1 − β)(x − x⁺)/(η E), and m does not
    decay.

    Source: Lin, Karimireddy, Stich and Jaggi, Quasi-global momentum, ICML 2021.
    """

    beta: float = 0.9
    early = False
    steers = True

    def __post_init__(self) -> None:
        _check_momentum("beta", self.beta)

    def init(self, theta: Rows) -> Memory:
        """Zero. β m is kept instead of m, since local steps use it."""
        return {"pull": theta * 0}

    def steer(self, at: Moment, memory: Memory) -> Rows:
        """The momentum term of a local step."""
        return memory["pull"]

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """The mixed parameters."""
        gain = self.beta * (1 - self.beta) / (at.rate * at.local_steps)
        if at.trains:
            memory["pull"].mul_(self.beta)
        memory["pull"].add_(theta - heard.mixed, alpha=gain)
        return heard.mixed, memory


@dataclass(frozen=True)
class Outer(WrappedRule):
    """SlowMo or DiLoCo: another rule, with a Nesterov step along its displacement after each cycle.

        Δ = x₀ − x_τ,  v ← μ v + Δ,  x₀⁺ = x₀ − α (Δ + μ v)

    x₀ is a device's position at the start of the cycle, and x_τ its position after the inner rule.
    Each device takes the step alone; the mean of all devices takes the same step. The inner rule's
    memory is left unchanged.

    Source: Wang, Tantia, Ballas and Rabbat, SlowMo, ICLR 2020; Douillard et al., DiLoCo, 2023.
    """

    rate: float = 0.7
    momentum: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("rate", self.rate, 0, 10, "1 takes the cycle's displacement unchanged.")
        _check_momentum("momentum", self.momentum)

    def init(self, theta: Rows) -> Memory:
        """The parameters at the start of the first cycle."""
        return self.with_inner(
            {"anchor": theta.clone(), "velocity": theta * 0}, self.rule.init(theta)
        )

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """The inner rule's result; at the end of a cycle, the outer step."""
        after, kept = self.rule.receive(at, theta, move, self.inner(memory), heard)
        memory = self.with_inner(memory, kept)
        if not at.ends_cycle:
            return after, memory
        moved = memory["anchor"] - after
        velocity = memory["velocity"].mul_(self.momentum).add_(moved)
        after = memory["anchor"] - self.rate * moved.add_(velocity, alpha=self.momentum)
        memory["anchor"].copy_(after)
        return after, memory
