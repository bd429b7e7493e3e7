"""A run as its page's scripts read it: curves, networks, devices, plans, bounds. Kept to a few megabytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Plan
from ssdfl.graph import read_network
from ssdfl.records.bounds import BoundRow
from ssdfl.records.config import Experiment
from ssdfl.records.folder import RunFolder
from ssdfl.records.tables import Row, is_measured
from ssdfl.report.bounds import STATEMENTS, bound_means
from ssdfl.report.network_data import network_data, plan_data, rounded
from ssdfl.report.page import palette
from ssdfl.report.series import Curve, curve, evenly_spaced, shown_metrics
from ssdfl.report.summary import rows_by_method

CURVE_POINTS = 300
DEVICE_NUMBERS = 120_000
SHOWN_CYCLES = 10
DRAWN_FIRST = ("accuracy", "loss", "consensus_distance")
"""What the three charts of a page show until the reader chooses something else."""

Facts = dict[int, dict[str, Any]]
"""What the folder says of each seed's network, plan and devices."""
Statement = tuple[str, str]
"""A method and one of `STATEMENTS`."""


def run_data(
    folder: RunFolder,
    experiment: Experiment,
    rows: Sequence[Row],
    bounds: Sequence[BoundRow] = (),
    facts: Facts | None = None,
) -> dict[str, Any]:
    """Everything that a run's page draws.

    Args:
        facts: what earlier calls found, so that it is not found again; added to.
    """
    facts = {} if facts is None else facts
    seeds = _seeds(folder, experiment, rows, facts)
    return {
        **palette(),
        **metrics_data(rows),
        "target": experiment.evaluate.target_accuracy,
        "methods": list(experiment.methods),
        "series": series_data(rows, experiment.methods),
        "seeds": seeds,
        "left_out": len(facts) - len(seeds),
        "bounds": _bounds(bounds),
    }


def metrics_data(rows: Sequence[Row]) -> dict[str, Any]:
    """The metrics that the charts can show, and the costs that they can be drawn against."""
    metrics = shown_metrics(rows)
    return {
        "metrics": {metric.name: {**asdict(metric), "scale": metric.scale} for metric in metrics},
        "costs": [metric.name for metric in metrics if metric.axis],
        "quantities": [metric.name for metric in metrics if not metric.axis],
        "drawn_first": DRAWN_FIRST,
    }


def series_data(rows: Sequence[Row], methods: Sequence[str], run: str = "") -> list[dict[str, Any]]:
    """The curves of every method that has records."""
    of_methods: dict[str, list[Row]] = {method: [] for method in methods}
    for row in rows:
        of_methods[row["method"]].append(row)
    return [
        {"run": run, "method": method, "curves": _curves(own)} for method, own in of_methods.items() if own
    ]


def _curves(rows: Sequence[Row]) -> dict[str, dict[str, list[float]]]:
    quantities = [metric.name for metric in shown_metrics(rows) if not metric.axis]
    return {name: _curve_data(curve(rows, name)) for name in quantities}


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
    for seed in experiment.seeds:
        if seed not in facts and (plan := folder.plan(seed)) is not None:
            facts[seed] = _facts(folder, seed, plan)
    num_methods = len(experiment.methods)
    shown = _seeds_that_fit(facts, num_methods)
    result = []
    for seed in shown:
        room = DEVICE_NUMBERS // (len(shown) * num_methods * len(facts[seed]["names"]))
        of_seed = [row for row in rows if row["seed"] == seed]
        result.append({**facts[seed], "accuracy": _device_accuracy(of_seed, room)})
    return result


def _seeds_that_fit(facts: Facts, num_methods: int) -> list[int]:
    """The seeds that have room on the page, at least the first."""
    shown: list[int] = []
    room = DEVICE_NUMBERS
    for seed, known in facts.items():
        of_device = SHOWN_CYCLES * num_methods + len(known["candidates"])
        room -= len(known["names"]) * of_device + len(known["links"])
        if not shown or room >= 0:
            shown.append(seed)
    return shown


def _facts(folder: RunFolder, seed: int, plan: Plan) -> dict[str, Any]:
    network = read_network(folder.seed_folder(seed) / "network.json")
    return {
        "seed": seed,
        "devices": folder.devices(seed),
        **network_data(network, plan.clusters),
        **plan_data(plan),
    }


def _device_accuracy(rows: Sequence[Row], most: int) -> dict[str, Any]:
    """By method: the cycles that tested, at most so many, and every device's accuracy after each."""
    tested = rows_by_method(row for row in rows if is_measured(row))
    return {
        method: _accuracy_by_cycle(run, most)
        for method, of_seeds in tested.items()
        for run in of_seeds.values()
    }


def _accuracy_by_cycle(run: Sequence[Row], most: int) -> dict[str, Any]:
    shown = [run[k] for k in evenly_spaced(len(run), max(most, 2))]
    return {
        "cycles": [row["cycle"] for row in shown],
        "devices": [_numbers(row["device_accuracy"], 4) for row in shown],
    }


def _bounds(rows: Sequence[BoundRow]) -> list[dict[str, Any]]:
    """By method and statement: means over clusters and seeds of measured, published and rigorous."""
    methods = list(dict.fromkeys(row.method for row in rows))
    by_statement: dict[Statement, list[BoundRow]] = {key: [] for key in product(methods, STATEMENTS)}
    for row in rows:
        by_statement[row.method, row.statement].append(row)
    return [_statement_data(key, own) for key, own in by_statement.items()]


def _statement_data(key: Statement, rows: Sequence[BoundRow]) -> dict[str, Any]:
    method, statement = key
    cycles, means = bound_means(rows)
    kept = evenly_spaced(len(cycles), CURVE_POINTS)
    return {
        "method": method,
        "statement": statement,
        "meaning": STATEMENTS[statement],
        "cycles": [cycles[k] for k in kept],
        **{kind: _numbers(values[kept]) for kind, values in means.items()},
    }
