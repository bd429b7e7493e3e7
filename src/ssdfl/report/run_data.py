"""A run as its page's scripts read it: curves, networks, devices, plans, bounds. Kept to a few megabytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ssdfl.arrays import FloatArray
from ssdfl.clusters import Plan
from ssdfl.graph import read_network
from ssdfl.records.bounds import BoundRow
from ssdfl.records.config import Experiment
from ssdfl.records.folder import Row, RunFolder, measured
from ssdfl.report.bounds import STATEMENTS, bound_means
from ssdfl.report.network_data import network_data, plan_data, short
from ssdfl.report.page import palette
from ssdfl.report.series import QUANTITIES, Curve, curve, spread

CURVE_POINTS = 300
DEVICE_NUMBERS = 120_000
SHOWN_CYCLES = 10


Facts = dict[int, dict[str, Any]]
"""What the folder says of each seed's network, plan and devices."""


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
    instances = _instances(folder, experiment, rows, facts)
    return {
        **palette(),
        "target": experiment.evaluate.target_accuracy,
        "methods": list(experiment.methods),
        "series": series_data(rows, experiment.methods),
        "instances": instances,
        "left_out": len(facts) - len(instances),
        "bounds": _bounds(bounds),
    }


def series_data(rows: Sequence[Row], methods: Sequence[str], run: str = "") -> list[dict[str, Any]]:
    """The curves of every method that has records."""
    of_methods: dict[str, list[Row]] = {method: [] for method in methods}
    for row in rows:
        of_methods[row["method"]].append(row)
    return [
        {
            "run": run,
            "method": method,
            "curves": {quantity: _curve_data(curve(own, quantity)) for quantity in QUANTITIES},
        }
        for method, own in of_methods.items()
        if own
    ]


def _curve_data(found: Curve) -> dict[str, list[float]]:
    kept = spread(len(found.mean), CURVE_POINTS)
    columns = {**found.costs, "mean": found.mean, "low": found.low, "high": found.high}
    return {name: _numbers(values[kept]) for name, values in columns.items()}


def _numbers(values: FloatArray | Iterable[float], digits: int = 7) -> list[float]:
    return [short(float(value), digits) for value in values]


def _instances(
    folder: RunFolder, experiment: Experiment, rows: Sequence[Row], facts: Facts
) -> list[dict[str, Any]]:
    """Network, plan and devices of as many seeds as the page can hold, at least the first."""
    for seed in experiment.seeds:
        if seed not in facts and (plan := folder.plan(seed)) is not None:
            facts[seed] = _facts(folder, seed, plan)
    shown: list[int] = []
    room = DEVICE_NUMBERS
    for seed, known in facts.items():
        of_device = SHOWN_CYCLES * len(experiment.methods) + len(known["candidates"])
        room -= len(known["names"]) * of_device + len(known["links"])
        if not shown or room >= 0:
            shown.append(seed)
    result = []
    for seed in shown:
        most = DEVICE_NUMBERS // (len(shown) * len(experiment.methods) * len(facts[seed]["names"]))
        of_seed = [row for row in rows if row["seed"] == seed]
        result.append({**facts[seed], "accuracy": _device_accuracy(of_seed, most)})
    return result


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
    tested: dict[str, list[Row]] = {}
    for row in rows:
        if measured(row):
            tested.setdefault(row["method"], []).append(row)
    shown = {method: [own[k] for k in spread(len(own), max(most, 2))] for method, own in tested.items()}
    return {
        method: {
            "cycles": [row["cycle"] for row in own],
            "devices": [_numbers(row["device_accuracy"], 4) for row in own],
        }
        for method, own in shown.items()
    }


def _bounds(rows: Sequence[BoundRow]) -> list[dict[str, Any]]:
    """By method and statement: means over clusters and seeds of measured, published and rigorous."""
    result = []
    for method in dict.fromkeys(row.method for row in rows):
        for statement, meaning in STATEMENTS.items():
            own = [row for row in rows if (row.method, row.statement) == (method, statement)]
            cycles, means = bound_means(own)
            kept = spread(len(cycles), CURVE_POINTS)
            result.append(
                {
                    "method": method,
                    "statement": statement,
                    "meaning": meaning,
                    "cycles": [cycles[k] for k in kept],
                    **{kind: _numbers(values[kept]) for kind, values in means.items()},
                }
            )
    return result
