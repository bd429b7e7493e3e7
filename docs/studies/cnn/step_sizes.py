"""At which step sizes does Theorem 1 apply to the CNN, and where is its score least?

    python docs/studies/cnn/step_sizes.py     # writes step_sizes.csv, prints it; a few minutes

The cases of `fmnist-bound` in the profiles `medium` (with batch normalisation) and `plain`
(without), three seeds, with the constants that formation measures at θ⁰. They do not depend on η,
so only clusters are formed again for each step size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import pandas as pd

from ssdfl.clusters import Device, FormationSettings, Plan, form_clusters
from ssdfl.graph import Network
from ssdfl.learning import load_data
from ssdfl.preparation.draw import draw
from ssdfl.preparation.planning import measured_settings
from ssdfl.preparation.sharing import shared_devices
from ssdfl.records.artefacts import Case, load_artefact

RESULTS = Path(__file__).with_name("step_sizes.csv")
PROFILES = ("medium", "plain")
RATES = (0.03, 0.01, 0.003, 0.001, 0.0003)
SCORES = ("stationarity", "integrated")
SEEDS = 3


@dataclass(frozen=True)
class Found:
    """What formation finds.

    Attributes:
        profile: of the CNN: `medium` has batch normalisation, `plain` has none.
        smoothness: γ̂ as measured.
        gradient_bound: B as measured.
        finite: how many numbers of clusters have a finite score.
        least_at: the number of clusters of least score; None if no score is finite.
        feasible: how many reach Φ_min.
        chosen: the number of clusters of the plan.
    """

    profile: str
    skew: str
    seed: int
    smoothness: float
    gradient_bound: float
    tau_a: int
    eta: float
    score: str
    finite: int
    least_at: int | None
    feasible: int
    chosen: int


def measured(case: Case) -> Iterator[tuple[Network, Sequence[Device], FormationSettings]]:
    """What formation is given, seed by seed."""
    experiment = case.experiment
    data = load_data(experiment.data)
    for seed in experiment.seeds:
        network, task, optimizers = draw(experiment, seed, data)
        devices = shared_devices(experiment, task, optimizers, seed)
        yield network, devices, measured_settings(experiment, task, seed)


def all_found() -> Iterator[Found]:
    """Form clusters for every profile, skew, seed, τ_a, η and score."""
    for profile in PROFILES:
        yield from _found_in(profile)


def _found_in(profile: str) -> Iterator[Found]:
    artefact = load_artefact("fmnist-bound", profile, seeds=SEEDS)
    taus = sorted({case.experiment.schedule.tau_a for case in artefact.cases})
    for skew, case in {case.panel: case for case in artefact.cases}.items():
        for seed, (network, devices, settings) in enumerate(measured(case)):
            for tau_a, eta, score in product(taus, RATES, SCORES):
                constants = replace(settings.constants, tau_a=tau_a, learning_rate=eta)
                given = replace(settings, score=score, constants=constants)
                plan = form_clusters(network, devices, given)
                finite, least_at = finite_scores(plan)
                yield Found(
                    profile=profile,
                    skew=skew,
                    seed=seed,
                    smoothness=round(constants.smoothness, 2),
                    gradient_bound=round(constants.gradient_bound, 2),
                    tau_a=tau_a,
                    eta=eta,
                    score=score,
                    finite=finite,
                    least_at=least_at,
                    feasible=plan.decision.num_feasible,
                    chosen=plan.num_clusters,
                )


def finite_scores(plan: Plan) -> tuple[int, int | None]:
    """How many candidates have a finite score, and the number of clusters of the least."""
    scores = {len(one.clusters): one.score for one in plan.candidates if math.isfinite(one.score)}
    return len(scores), min(scores, key=lambda number: scores[number]) if scores else None


def table(found: pd.DataFrame) -> str:
    """How many of ten numbers of clusters have a finite score, on average over seeds."""
    lines = [f"| skew | τ_a | score | {' | '.join(f'η = {eta}' for eta in RATES)} |"]
    lines.append("|---|---|---|" + "---|" * len(RATES))
    for (skew, tau_a, score), own in found.groupby(["skew", "tau_a", "score"], sort=False):
        finite = own.groupby("eta")["finite"].mean()
        cells = " | ".join(f"{finite[eta]:.1f}" for eta in RATES)
        lines.append(f"| {skew} | {tau_a} | {score} | {cells} |")
    return "\n".join(lines)


def summary(found: pd.DataFrame) -> str:
    """What was measured, where scores are least, and what formation takes by the paper's score."""
    γ, B = found["smoothness"], found["gradient_bound"]
    lines = [
        f"γ̂ from {γ.min():.3g} to {γ.max():.3g}, B from {B.min():.3g} to {B.max():.3g}.",
        f"Where finite, least at S = {', '.join(map(str, found['least_at'].dropna().unique()))}.",
    ]
    by_stationarity = found[found["score"] == "stationarity"].groupby("eta")
    for eta, own in by_stationarity[["feasible", "chosen"]].mean().iterrows():
        lines.append(
            f"η = {eta}: {own['feasible']:.1f} of 10 reach Φ_min, "
            f"formation takes {own['chosen']:.1f} clusters."
        )
    return "\n".join(lines)


def main() -> None:
    """Form clusters, write and print what was found."""
    pd.DataFrame(map(asdict, all_found())).astype({"least_at": "Int64"}).to_csv(
        RESULTS, index=False
    )
    found = read_found()
    for profile, own in found.groupby("profile"):
        print(f"{profile}\n\n{table(own)}\n\n{summary(own)}\n")


def read_found() -> pd.DataFrame:
    """What was found and written."""
    return pd.read_csv(RESULTS, dtype={"least_at": "Int64"})


if __name__ == "__main__":
    main()
