"""The paper's statements as functions: `published` as printed, `rigorous` in corrected form."""

from ssdfl.theory import published, rigorous
from ssdfl.theory.constants import ClusterTerms, Constants
from ssdfl.theory.disagreement import Disagreement, disagreement, slowdown
from ssdfl.theory.effective import (
    RegimeState,
    consensus_gaps,
    effective_gradient,
    effective_loss,
    regulariser,
)
from ssdfl.theory.integrated import consensus_gap, integrated_bound
from ssdfl.theory.pilot import Pilot
from ssdfl.theory.threshold import THRESHOLD_STEPS, conductance_threshold

__all__ = [
    "THRESHOLD_STEPS",
    "ClusterTerms",
    "Constants",
    "Disagreement",
    "Pilot",
    "RegimeState",
    "conductance_threshold",
    "consensus_gap",
    "consensus_gaps",
    "disagreement",
    "effective_gradient",
    "effective_loss",
    "integrated_bound",
    "published",
    "regulariser",
    "rigorous",
    "slowdown",
]
