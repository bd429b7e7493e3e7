"""The two plain rules: mix and train, or train and mix."""

from __future__ import annotations

from dataclasses import dataclass

from ssdfl.methods.moment import Moment, Rows
from ssdfl.methods.rules.base import Heard, Memory, Move, Rule


@dataclass(frozen=True)
class CombineThenAdapt(Rule):
    """The paper's rule `eq:intraC_updates`: mix and train from the same starting point.

        x⁺ = W x − η g̃(x)

    Messages are sent while devices train.

    Source: the paper; Nedić and Ozdaglar, Distributed subgradient methods, IEEE TAC 2009.
    """

    additive = True

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """The mixed parameters plus the displacement."""
        return move.added_to(heard.mixed), memory


@dataclass(frozen=True)
class AdaptThenCombine(Rule):
    """Train, then mix: the usual implementation where a paper's text leaves it open.

        x⁺ = W (x − η g̃(x))

    A message leaves after its device has trained, so its transfer does not overlap with computing.

    Source: Chen and Sayed, Diffusion adaptation strategies, IEEE TSP 2012.
    """

    early = False
    additive = True

    def receive(
        self, at: Moment, theta: Rows, move: Move, memory: Memory, heard: Heard
    ) -> tuple[Rows, Memory]:
        """The mixed parameters."""
        return heard.mixed, memory
