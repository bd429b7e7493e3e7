"""The paper's statements as functions."""

from ssdfl.theory.constants import Constants
from ssdfl.theory.convergence import (
    ClusterTerms,
    consensus_gap,
    effective_smoothness,
    gamma,
    integrated_bound,
    stationarity_bound,
)
from ssdfl.theory.disagreement import disagreement, slowdown
from ssdfl.theory.threshold import conductance_threshold

__all__ = [
    "ClusterTerms",
    "Constants",
    "conductance_threshold",
    "consensus_gap",
    "disagreement",
    "effective_smoothness",
    "gamma",
    "integrated_bound",
    "slowdown",
    "stationarity_bound",
]
