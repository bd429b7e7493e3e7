"""How the clusters of a plan were chosen, for reports."""

from __future__ import annotations

import math
from dataclasses import dataclass

GIVEN = "given"
REPAIRED = "repaired"
CHOICES = {
    "feasible": "least score of the feasible candidates",
    "nearest": "nearest to its threshold",
    "fewest": "fewest clusters of the same predicted cost, though below its threshold",
    "assumed": "least predicted cost if devices held three of ten labels each; "
    "none reaches its threshold",
    "price": "least predicted cost, though below its threshold",
    REPAIRED: "an earlier plan's, repaired for a changed network",
    GIVEN: "given, not formed",
}
"""The rules that choose clusters, and their descriptions."""


@dataclass(frozen=True)
class Decision:
    """The rule that chose a plan's clusters, and the numbers it used.

    Attributes:
        rule: a name of `CHOICES`.
        num_clusters: S.
        score_name: the score; ``stationarity`` is the paper's H. Empty if the clusters were given.
        score: the clusters' score; infinite if the bound's condition fails, None if given.
        conductance: a lower bound for every cluster; None if the clusters were given.
        threshold: Φ_min(S); None if the clusters were given.
        num_feasible: the number of candidates that reach their threshold.
        num_candidates: the number of candidates weighed.
    """

    rule: str
    num_clusters: int
    score_name: str = ""
    score: float | None = None
    conductance: float | None = None
    threshold: float | None = None
    num_feasible: int = 0
    num_candidates: int = 0

    @property
    def words(self) -> str:
        """The description of the rule."""
        return CHOICES.get(self.rule, self.rule)

    def __str__(self) -> str:
        """One line for a report.

        Examples:
            >>> print(Decision("given", num_clusters=3))
            S = 3: given, not formed
        """
        rule = f"S = {self.num_clusters}: {self.words}"
        if self.score is None:
            return rule
        score = f"{self.score:.4g}" if math.isfinite(self.score) else "∞"
        return (
            f"{rule}; {self.score_name} = {score}, Φ = {self.conductance:.4f}, "
            f"Φ_min = {self.threshold:.4f}, {self.num_feasible} of {self.num_candidates} feasible"
        )
