"""Judge every way to choose clusters by what was measured.

python docs/studies/formation/report.py    # writes choices.csv and figure.png, prints the summary
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from measure import Case, Row, cases, inputs_of, pool, read
from scipy.stats import spearmanr

from ssdfl.clusters import SCORES, Candidate, Clusters, ScoreInputs, choose, clusters_of
from ssdfl.clusters.formation import INDIFFERENCE, PREDICTIONS, PRICE
from ssdfl.report import save
from ssdfl.report.figures import COLOURS
from ssdfl.rng import generator
from ssdfl.theory import conductance_threshold

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Policy:
    """A way to choose: the partition's candidates, the score, and the price of Φ_min."""

    partition: str
    score: str
    price: float = math.inf
    measured: str = "seconds"


POLICIES = {
    "default (cost, time)": Policy("cost", "time", PRICE),
    "time, Φ_min kept": Policy("cost", "time"),
    "time, paper's partition": Policy("paper", "time", PRICE),
    "drift, least": Policy("cost", "drift", price=1.0),
    "integrated, least": Policy("cost", "integrated", price=1.0),
    "stationarity, least": Policy("cost", "stationarity", price=1.0),
    "paper (Algorithms 1, 2)": Policy("paper", "stationarity"),
    "bytes (regret in bytes)": Policy("cost", "bytes", PRICE, "bytes"),
}


def clusters_in(row: Row) -> Clusters:
    """The partition that a measurement is of."""
    return clusters_of(np.array(row["labels"].split("."), dtype=int))


def candidates_of(
    inputs: ScoreInputs, rows: list[Row], policy: Policy, known: Mapping[Clusters, set[str]]
) -> list[Candidate]:
    """The measured partitions that a policy chooses from."""
    found = []
    n = inputs.network.num_devices
    for row in rows:
        clusters = clusters_in(row)
        if policy.partition in known[clusters]:
            threshold = conductance_threshold(inputs.constants, n, len(clusters))
            score = SCORES[policy.score](inputs, clusters)
            weakest = inputs.cache.weakest(clusters)
            found.append(Candidate(clusters, score, threshold, weakest, (), row["labels"]))
    return found


def judge(case: Case, seed: int, rows: list[Row]) -> list[dict[str, object]]:
    """Each policy's rank correlation with the measurements, its choice, and that choice's cost."""
    inputs = inputs_of(case, seed)
    known = pool(inputs)
    rows = [row for row in rows if clusters_in(row) in known]
    n = inputs.network.num_devices
    result = []
    for name, policy in POLICIES.items():
        measured = {row["labels"]: float(row[policy.measured]) for row in rows}
        best = min(measured, key=lambda labels: measured[labels])
        ends = [measured[".".join(["0"] * n)], measured[".".join(map(str, range(n)))]]
        found = candidates_of(inputs, rows, policy, known)
        chosen, choice = choose(
            found, policy.price, INDIFFERENCE if policy.score in PREDICTIONS else 1.0
        )
        scores = np.array([c.score for c in found])
        truth = np.array([measured[c.rule] for c in found])
        scores = np.where(np.isfinite(scores), scores, 1e300)
        varied = np.ptp(scores) > 0
        ranked = np.where(np.isfinite(truth), truth, 1e300)
        least = measured[best]
        values = {
            "case": case.name,
            "seed": seed,
            "costs": case.costs,
            "labels_per_device": case.labels_per_device,
            "tau_a": case.tau_a,
            "devices": n,
            "target": rows[0]["target"],
            "policy": name,
            "rank_correlation": spearmanr(scores, ranked)[0] if varied else math.nan,
            "clusters": chosen.num_clusters,
            "choice": choice,
            "best_clusters": len(set(best.split("."))),
            "regret": measured[chosen.rule] / least - 1,
            "against_ends": measured[chosen.rule] / min(ends) - 1,
            "sdfl_regret": ends[0] / least - 1,
            "pdfl_regret": ends[1] / least - 1,
        }
        result.append({k: f"{v:.4f}" if isinstance(v, float) else v for k, v in values.items()})
    return result


def report() -> None:
    """Judge all policies, write ``choices.csv`` and ``figure.png``, print a Markdown summary."""
    by_case: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in read():
        by_case[row["case"], int(row["seed"])].append(row)
    named = {case.name: case for case in cases()}
    choices = [
        row for (name, seed), rows in by_case.items() for row in judge(named[name], seed, rows)
    ]
    with (HERE / "choices.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, choices[0])
        writer.writeheader()
        writer.writerows(choices)
    summary = summarise(choices)
    print(
        "| policy | rank correlation | median regret | 90th percentile | worst "
        "| worst against sDFL, pDFL |"
    )
    print("|---|---|---|---|---|---|")
    for name, line in summary.items():
        cells = (
            "–" if math.isnan(line["rank"]) else f"{line['rank']:.2f}",
            *(_percent(line[k]) for k in ("median", "p90", "worst", "against_ends")),
        )
        print(f"| {name} | {' | '.join(cells)} |")
    draw(choices)


def _percent(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.1%}" if math.isfinite(value) else "∞"


def summarise(choices: Iterable[Mapping[str, object]]) -> dict[str, dict[str, float]]:
    """Per policy, and for always sDFL and always pDFL: correlation and regret over all cases."""
    by_policy: dict[str, list[Mapping[str, object]]] = defaultdict(list)
    for row in choices:
        by_policy[str(row["policy"])].append(row)
    result = {}
    for name, rows in by_policy.items():
        result[name] = _spread([_number(row, "regret") for row in rows])
        result[name]["rank"] = float(
            np.nanmedian([_number(row, "rank_correlation") for row in rows])
        )
        result[name]["against_ends"] = max(_number(row, "against_ends") for row in rows)
    for name in ("sdfl", "pdfl"):
        regrets = [_number(row, f"{name}_regret") for row in next(iter(by_policy.values()))]
        result[f"always {name}"] = _spread(regrets) | {"rank": math.nan, "against_ends": math.nan}
    return result


def _number(row: Mapping[str, object], key: str) -> float:
    return float(str(row[key]))


def _spread(values: list[float]) -> dict[str, float]:
    ordered = np.sort(values)
    return {
        "median": float(np.median(ordered)),
        "p90": float(ordered[math.ceil(0.9 * len(ordered)) - 1]),
        "worst": float(ordered[-1]),
    }


def draw(choices: list[dict[str, object]]) -> None:
    """Regret of every policy, each case a dot, and the default's choice of S against the best."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    names = list(POLICIES)
    for place, name in enumerate(names):
        regrets = [_number(row, "regret") for row in choices if row["policy"] == name]
        shown = np.minimum(np.array(regrets), 9.0)
        jitter = generator(0, "jitter", place).uniform(-0.25, 0.25, len(shown))
        left.scatter(
            100 * shown + 0.3, place + jitter, s=14, alpha=0.6, color=COLOURS[place % len(COLOURS)]
        )
        left.plot([100 * np.median(shown) + 0.3] * 2, [place - 0.35, place + 0.35], color="black")
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.set_xscale("log")
    left.set_xlabel("regret, % (0.3 is none; a bar at the median; not reached counts as 900)")
    default = [row for row in choices if row["policy"] == names[0]]
    for place, cost in enumerate(dict.fromkeys(str(row["costs"]) for row in default)):
        rows = [row for row in default if row["costs"] == cost]
        best, chosen = ([_number(r, name) for r in rows] for name in ("best_clusters", "clusters"))
        right.scatter(best, chosen, s=26, alpha=0.7, label=cost, color=COLOURS[place])
    right.plot([1, 50], [1, 50], color="#999999", linewidth=0.8)
    right.set(xscale="log", yscale="log", xlabel="best S measured", ylabel="S chosen by default")
    right.legend(frameon=False)
    save(figure, HERE / "figure.png")


if __name__ == "__main__":
    report()
