"""Plots of bounds: compared with a run's measurements, and against the number of clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from operator import attrgetter

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssdfl.arrays import FloatArray
from ssdfl.records.bounds import BoundRow, BoundSummary
from ssdfl.report.figures import COLOURS, DASHES
from ssdfl.report.grouping import group_by
from ssdfl.report.tables import Table

STATEMENTS = {
    "Lemma 1": "‖Δ_s‖ after training",
    "Lemma 2": "‖Δ̂‖ after mixing",
    "Theorem 1": "Σ_q ‖∇F̃_s‖² of a regime",
}
KINDS = ("measured", "published", "rigorous")


def bound_table(summaries: Sequence[BoundSummary]) -> Table:
    """How often each form of each bound failed or said nothing, and how tight it was."""
    headers = [
        "method",
        "statement",
        "rows",
        "form",
        "violated",
        "says nothing",
        "measured / bound",
    ]
    return Table(headers, [_bound_row(one, form) for one in summaries for form in one.violated])


def _bound_row(summary: BoundSummary, form: str) -> list[str]:
    ratio = summary.ratio[form]
    return [
        summary.method,
        summary.statement,
        str(summary.rows),
        form,
        f"{summary.violated[form]:.1%}",
        f"{summary.silent[form]:.1%}",
        "–" if math.isnan(ratio) else f"{ratio:.2g}",
    ]


def plot_measured_bounds(rows: Sequence[BoundRow], title: str) -> Figure:
    """Plot measurements and both bounds against cycles, averaged over clusters and seeds."""
    figure = Figure(figsize=(13.5, 4.0), layout="constrained")
    figure.suptitle(title, parse_math=False)
    panels = figure.subplots(1, len(STATEMENTS))
    for axes, (statement, label) in zip(panels, STATEMENTS.items(), strict=True):
        _plot_statement(axes, [row for row in rows if row.statement == statement])
        axes.set(title=f"{statement}: {label}", xlabel="cycle", yscale="log")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return figure


def bound_means(rows: Sequence[BoundRow]) -> tuple[list[int], dict[str, FloatArray]]:
    """The cycles of a statement, and the (K,) means over clusters and seeds of each of `KINDS`."""
    by_cycle = group_by(rows, attrgetter("cycle"))
    cycles = sorted(by_cycle)
    means = {kind: np.array([_mean(by_cycle[k], kind) for k in cycles]) for kind in KINDS}
    return cycles, means


def _mean(rows: Sequence[BoundRow], kind: str) -> float:
    return float(np.mean([getattr(row, kind) for row in rows]))


def _plot_statement(axes: Axes, rows: Sequence[BoundRow]) -> None:
    cycles, of_kinds = bound_means(rows)
    for place, (name, means) in enumerate(of_kinds.items()):
        drawn = np.isfinite(means) & (means > 0)
        why_not = "says nothing" if np.isinf(means).any() else "is 0"
        label = name if drawn.any() else f"{name} ({why_not})"
        x, y = np.array(cycles)[drawn], means[drawn]
        axes.plot(x, y, color=COLOURS[place], linestyle=DASHES[place], label=label)


def plot_bounds_by_clusters(panels: Mapping[str, Mapping[int, FloatArray]], title: str) -> Figure:
    """Plot Theorem 1's bound, averaged over clusters and steps, against S, for several τ_a.

    This is the paper's figure "Normalized intra-cluster gradients". Each curve is divided by its
    largest value.

    Args:
        panels: title → τ_a → (N,) the bound for S = 1 … N.
    """
    figure = Figure(figsize=(3.6 * len(panels), 3.6), layout="constrained")
    figure.suptitle(title, parse_math=False)
    axes_row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (name, curves) in zip(axes_row, panels.items(), strict=True):
        for colour, (tau_a, values) in zip(cycle(COLOURS), curves.items(), strict=False):
            _plot_bound(axes, tau_a, values, colour)
        axes.set(title=name, xlabel="clusters S")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=8)
    axes_row[0].set_ylabel("bound, normalised")
    return figure


def _plot_bound(axes: Axes, tau_a: int, values: FloatArray, colour: str) -> None:
    """One curve: the bound where it is finite, relative to its largest value."""
    known = np.isfinite(values)
    if not known.any():
        axes.plot([], [], color=colour, label=f"τ_a = {tau_a}: says nothing")
        return
    S = np.arange(1, len(values) + 1)[known]
    shares = values[known] / values[known].max()
    least = S[int(np.argmin(shares))]
    axes.plot(S, shares, color=colour, marker=".", label=f"τ_a = {tau_a}, least at S = {least}")
