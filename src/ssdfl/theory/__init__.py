"""The paper's statements as functions."""

from ssdfl.theory.constants import Constants
from ssdfl.theory.convergence import effective_smoothness, gamma, stationarity_bound
from ssdfl.theory.threshold import conductance_threshold

__all__ = ["Constants", "conductance_threshold", "effective_smoothness", "gamma", "stationarity_bound"]
