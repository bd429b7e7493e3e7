"""Suggest changes that bring a plan above its conductance threshold; each is tried first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from ssdfl.clusters.candidates import Candidate, choose
from ssdfl.theory import Constants, conductance_threshold

_FACTORS = (1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0)
_CHANGES = {
    "tolerance": ("tolerance", 1.0),
    "learning_rate": ("learning rate", -1.0),
}
"""Settings to change, their names in text, and whether to raise (1) or to lower (−1) them."""

Settings = Mapping[str, Any]


def advice(
    candidates: Sequence[Candidate], settings: Settings, indifference: float, most: int
) -> str:
    """The smallest changes of tolerance or learning rate so that the choice reaches its threshold.

    Candidates are weighed again with the changed setting. Changes that do not help are left out.

    Args:
        most: the most clusters that the choice may then have: as many as in the plan.
    """
    tried = [_try(name, candidates, settings, indifference, most) for name in _CHANGES]
    found = [text for text in tried if text]
    if found:
        return f"Tried: {'; or '.join(found)}."
    factor = f"{_FACTORS[-1]:g}"
    return (
        f"Neither a tolerance up to {factor} times as large nor a learning rate down to 1/{factor} "
        "makes this few clusters reach their threshold."
    )


def _try(
    name: str, candidates: Sequence[Candidate], settings: Settings, indifference: float, most: int
) -> str:
    """The effect of changing one setting, as text; empty if it does not help."""
    what, direction = _CHANGES[name]
    now = float(settings[name])
    for factor in _FACTORS:
        value = float(f"{now * factor**direction:.2g}")
        weighed = reweighed(candidates, {**settings, name: value})
        chosen, choice = choose(weighed, math.inf, indifference)
        if choice == "feasible" and chosen.num_clusters <= most:
            verb = "raise" if direction > 0 else "lower"
            return (
                f"{verb} the {what} from {now:g} to {value:g}, "
                f"and S = {chosen.num_clusters} reaches it"
            )
    return ""


def reweighed(candidates: Sequence[Candidate], settings: Settings) -> list[Candidate]:
    """The candidates with the thresholds that follow from these settings."""
    constants = Constants(**{one.name: settings[one.name] for one in fields(Constants)})
    num_devices = sum(map(len, candidates[0].clusters))
    with_tau_a, step = bool(settings["with_tau_a"]), str(settings["threshold_step"])

    def threshold(num_clusters: int) -> float:
        return conductance_threshold(constants, num_devices, num_clusters, with_tau_a, step)

    return [replace(one, threshold=threshold(one.num_clusters)) for one in candidates]
