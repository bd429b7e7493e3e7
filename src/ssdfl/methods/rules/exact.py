"""Rules that reach the optimum of all devices' data with a constant learning rate.

Each rule gives every device a correction c_i, which local steps add to the gradient. Σ c_i = 0 at
every step, for any mixing matrices. A fixed point has g_i + c_i = 0 for all devices, so Σ g_i = 0.
With more than one local step, the correction acts in each of them. g_i is the descent direction of
device i's optimizer. The optimum weighs all data equally only if all optimizers are the same: with
momentum ρ, a device counts up to 1/(1 − ρ) times.
"""

from __future__ import annotations

from dataclasses import dataclass

from ssdfl.methods.moment import Moment, Rows
from ssdfl.methods.rules.base import Heard, Memory, Message, Move, Rule


@dataclass(frozen=True)
class GradientTracking(Rule):
    """Gradient tracking: devices descend along an estimate of the mean gradient of all.

        y = ȳ + g − g₋,  x⁺ = W (x − η y),  ȳ⁺ = W y

    Two vectors are sent, x − η y and y; g and ȳ are kept. With E local steps it is K-GT: each step
    descends along g + c, with c = ȳ − g₋, and y is their mean. A device that does not train sends x
    and ȳ. So trackers cross clusters when all devices mix, and Σ ȳ = Σ g holds at every step. It is
    exact if all optimizers are the same.

    Source: Di Lorenzo and Scutari, NEXT, IEEE TSIPN 2016; Nedić, Olshevsky and Shi, DIGing, SIAM J.
    Optim. 2017; Liu, Lin, Koloskova and Stich, K-GT, Optimization Methods and Software 2024.
    """

    early = False
    steers = True
    corrects = True

    def init(self, theta: Rows) -> Memory:
        """Zero, since no gradient is known."""
        return {"tracker": theta * 0, "gradient": theta * 0}

    def steer(self, at: Moment, memory: Memory) -> Rows:
        """The difference between the mean gradient's estimate and the device's own gradient."""
        return memory["tracker"] - memory["gradient"]

    def send(
        self, at: Moment, theta: Rows, move: Move | None, memory: Memory
    ) -> tuple[Message, Memory]:
        """The parameters after training, and the tracker."""
        assert move is not None
        if not at.trains:
            return Message(theta, memory["tracker"]), memory
        y = move.direction()
        memory["gradient"].add_(y).sub_(memory["tracker"])
        return Message(move.applied_to(theta), y), memory

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """Both, mixed."""
        d = theta.shape[1]
        return heard.mixed[:, :d], {**memory, "tracker": heard.mixed[:, d:]}


def _gain(at: Moment) -> float:
    """The factor from the distance between devices to a correction of their local steps.

    A correction acts in all local steps until the next one: those of a step, or those of a cycle if
    the step only mixes. The factor is the same for all devices, so corrections still sum to 0.
    """
    return 1 / (at.rate * at.local_steps * (1 if at.training else at.training_steps))


@dataclass(frozen=True)
class ExactDiffusion(Rule):
    """Exact diffusion, or D²: one vector corrects the bias from mixing different optima.

        φ = x − η (g + c),  x⁺ = W̄ φ,  c⁺ = c + (φ − W̄ φ) / η,  W̄ = (I + W) / 2

    With a constant W that is x⁺ = W̄ (ψ + x − ψ₋), ψ = x − η g, as it is usually written. With E
    local steps it is local exact diffusion. Steps that only mix have φ = x and correct by 1/(η E
    τ_a).

    Source: Yuan, Ying, Zhao and Sayed, Exact diffusion, IEEE TSP 2019; Tang, Lian, Yan, Zhang and
    Liu, D², ICML 2018; Alghunaim, Local exact-diffusion, IEEE TAC 2024.
    """

    early = False
    steers = True
    corrects = True

    def init(self, theta: Rows) -> Memory:
        """Nothing to correct."""
        return {"correction": theta * 0}

    def steer(self, at: Moment, memory: Memory) -> Rows:
        """The correction."""
        return memory["correction"]

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """Move halfway to the mixed parameters."""
        apart = heard.own - heard.mixed
        memory["correction"].add_(apart, alpha=_gain(at) / 2)
        return heard.mixed.add_(apart, alpha=0.5), memory


@dataclass(frozen=True)
class Extra(Rule):
    """EXTRA: the paper's rule with a correction that makes it exact; messages leave early.

        x⁺ = W x − η (g + c),  c⁺ = c + (x − W x) / (2 η)

    With a constant W that is x⁺⁺ = (I + W) x⁺ − W̄ x − η (g⁺ − g), as it is usually written. The
    correction acts in each of E local steps. Steps that only mix correct by 1/(2 η E τ_a), and need
    eigenvalues of W above −3/5.

    Source: Shi, Ling, Wu and Yin, EXTRA, SIAM J. Optim. 2015.
    """

    steers = True
    corrects = True

    def init(self, theta: Rows) -> Memory:
        """Nothing to correct."""
        return {"correction": theta * 0}

    def steer(self, at: Moment, memory: Memory) -> Rows:
        """The correction."""
        return memory["correction"]

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """The mixed parameters plus the displacement."""
        memory["correction"].add_(theta - heard.mixed, alpha=_gain(at) / 2)
        return move.added_to(heard.mixed), memory
