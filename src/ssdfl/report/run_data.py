"""A run's data for the scripts of its page: curves, networks, plans, bounds, in a few MB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import product
from operator import attrgetter, itemgetter
from typing import Any

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Plan
from ssdfl.mappings import without
from ssdfl.records.bounds import BoundRow
from ssdfl.records.config import Experiment
from ssdfl.records.folder import RunFolder
from ssdfl.records.record import metrics_of
from ssdfl.records.scores import READINGS, Goal
from ssdfl.records.tables import Row, is_measured
from ssdfl.report.bounds import STATEMENTS, bound_means
from ssdfl.report.condensed import Condensed, if_large
from ssdfl.report.grouping import group_by
from ssdfl.report.network_data import drawn_data, rounded
from ssdfl.report.page import palette
from ssdfl.report.series import (
    Curve,
    curve,
    evenly_spaced,
    names_of_costs,
    names_of_quantities,
    shown_metrics,
)
from ssdfl.report.summary import rows_by_method

CURVE_POINTS = 300
DEVICE_NUMBERS = 120_000
SHOWN_CYCLES = 10
GROUPED = "grouped"
"""The key of a seed's groups of devices in its facts; they are not part of the page."""
DRAWN_NEXT = {
    READINGS[0]: ("loss", "consensus_distance"),
    READINGS[1]: ("consensus_distance", "effective_gradient"),
}
"""The initial metrics of a page's second and third chart, by the metric that is ranked."""

Facts = dict[int, dict[str, Any]]
"""The recorded facts about each seed's network, plan and devices."""


def run_data(
    folder: RunFolder,
    experiment: Experiment,
    rows: Sequence[Row],
    bounds: Sequence[BoundRow] = (),
    facts: Facts | None = None,
) -> dict[str, Any]:
    """All data that a run's page draws.

    Args:
        facts: a cache of earlier calls' results; this call adds to it.
    """
    facts = {} if facts is None else facts
    goal = folder.goal(experiment)
    seeds = _seeds(folder, experiment, rows, facts)
    return {
        **palette(),
        **metrics_data(rows, goal),
        "methods": list(experiment.methods),
        "series": series_data(rows, experiment.methods),
        "seeds": seeds,
        "left_out": len(facts) - len(seeds),
        "bounds": _bounds(bounds),
    }


def metrics_data(rows: Sequence[Row], goal: Goal) -> dict[str, Any]:
    """The metrics for charts, the costs they can be drawn against, and the target."""
    shown = shown_metrics(rows, metrics_of(goal))
    return {
        "metrics": {one.name: {**asdict(one), "scale": one.scale} for one in shown},
        "score": {**asdict(goal.score), "scale": goal.score.scale},
        "target": goal.target,
        "costs": names_of_costs(rows),
        "quantities": names_of_quantities(rows),
        "drawn_first": (goal.reading, *DRAWN_NEXT[goal.reading]),
        "reading": goal.reading,
    }


def series_data(rows: Sequence[Row], methods: Sequence[str], run: str = "") -> list[dict[str, Any]]:
    """The curves of every method that has records."""
    of_methods = group_by(rows, itemgetter("method"))
    return [
        {"run": run, "method": method, "curves": _curves(of_methods[method])}
        for method in methods
        if method in of_methods
    ]


def _curves(rows: Sequence[Row]) -> dict[str, dict[str, list[float]]]:
    costs = names_of_costs(rows)
    return {name: _curve_data(curve(rows, name, costs)) for name in names_of_quantities(rows)}


def _curve_data(found: Curve) -> dict[str, list[float]]:
    kept = evenly_spaced(len(found.mean), CURVE_POINTS)
    columns = {**found.costs, "mean": found.mean, "low": found.low, "high": found.high}
    return {name: _numbers(values[kept]) for name, values in columns.items()}


def _numbers(values: FloatArray | Iterable[float], digits: int = 7) -> list[float]:
    return [rounded(float(value), digits) for value in values]


def _seeds(
    folder: RunFolder, experiment: Experiment, rows: Sequence[Row], facts: Facts
) -> list[dict[str, Any]]:
    """Network, plan and devices of as many seeds as the page can hold, at least the first."""
    _add_facts(facts, folder, experiment.seeds)
    num_methods = len(experiment.methods)
    shown = _seeds_that_fit(facts, num_methods)
    result = []
    for seed in shown:
        known = without(facts[seed], [GROUPED])
        most = DEVICE_NUMBERS // (len(shown) * num_methods * len(known["names"]))
        of_seed = [row for row in rows if row["seed"] == seed]
        result.append({**known, "scores": _device_scores(of_seed, most, facts[seed][GROUPED])})
    return result


def _add_facts(facts: Facts, folder: RunFolder, seeds: Iterable[int]) -> None:
    """Add the seeds whose plan has been made since the last call."""
    for seed in seeds:
        plan = None if seed in facts else folder.plan(seed)
        if plan is not None:
            facts[seed] = _facts(folder, seed, plan)


def _seeds_that_fit(facts: Facts, num_methods: int) -> list[int]:
    """The seeds that fit on the page, at least the first."""
    shown: list[int] = []
    room = DEVICE_NUMBERS
    for seed, known in facts.items():
        of_device = SHOWN_CYCLES * num_methods + len(known["candidates"])
        room -= len(known["names"]) * of_device + len(known["links"])
        if not shown or room >= 0:
            shown.append(seed)
    return shown


def _facts(folder: RunFolder, seed: int, plan: Plan) -> dict[str, Any]:
    network, devices = folder.network(seed), folder.devices(seed)
    groups = if_large(network, plan.clusters)
    return {
        "seed": seed,
        "devices": devices if groups is None else groups.facts(devices),
        **drawn_data(network, plan, groups),
        GROUPED: groups,
    }


def _device_scores(rows: Sequence[Row], most: int, groups: Condensed | None) -> dict[str, Any]:
    """By method: some of the tested cycles, and the scores of devices or groups after each."""
    tested = rows_by_method(row for row in rows if is_measured(row))
    return {
        method: _scores_by_cycle(run, most, groups)
        for method, of_seeds in tested.items()
        for run in of_seeds.values()
    }


def _scores_by_cycle(run: Sequence[Row], most: int, groups: Condensed | None) -> dict[str, Any]:
    shown = [run[k] for k in evenly_spaced(len(run), max(most, 2))]
    drawn = (row["device_score"] for row in shown)
    return {
        "cycles": [row["cycle"] for row in shown],
        "devices": [_numbers(groups.means(one) if groups else one, 4) for one in drawn],
    }


def _bounds(rows: Sequence[BoundRow]) -> list[dict[str, Any]]:
    """Means over clusters and seeds of measurements and both bounds, by statement."""
    by_method = group_by(rows, attrgetter("method"))
    by_statement = {
        method: group_by(own, attrgetter("statement")) for method, own in by_method.items()
    }
    return [
        _statement_data(method, statement, by_statement[method].get(statement, []))
        for method, statement in product(by_method, STATEMENTS)
    ]


def _statement_data(method: str, statement: str, rows: Sequence[BoundRow]) -> dict[str, Any]:
    cycles, means = bound_means(rows)
    kept = evenly_spaced(len(cycles), CURVE_POINTS)
    return {
        "method": method,
        "statement": statement,
        "meaning": STATEMENTS[statement],
        "cycles": [cycles[k] for k in kept],
        **{kind: _numbers(values[kept]) for kind, values in means.items()},
    }
