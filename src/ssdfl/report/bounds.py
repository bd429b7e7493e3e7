"""Pictures of bounds: beside what a run measured, and against the number of clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssdfl.arrays import FloatArray
from ssdfl.records.bounds import BoundRow, BoundSummary
from ssdfl.report.figures import COLOURS, DASHES

STATEMENTS = {
    "Lemma 1": "‖Δ_s‖ after training",
    "Lemma 2": "‖Δ̂‖ after mixing",
    "Theorem 1": "Σ_q ‖∇F̃_s‖² of a regime",
}
KINDS = ("measured", "published", "rigorous")
BOUND_HEADERS = ("method", "statement", "rows", "form", "violated", "says nothing", "measured / bound")


def bound_cells(summary: BoundSummary) -> list[list[str]]:
    """A summary as rows of a table, one for each form, in the order of `BOUND_HEADERS`."""
    return [
        [
            summary.method,
            summary.statement,
            str(summary.rows),
            form,
            f"{summary.violated[form]:.1%}",
            f"{summary.silent[form]:.1%}",
            "–" if math.isnan(summary.ratio[form]) else f"{summary.ratio[form]:.2g}",
        ]
        for form in summary.violated
    ]


def draw_measured_bounds(rows: Sequence[BoundRow], title: str) -> Figure:
    """Measured, published and rigorous against cycles, for each statement: means over clusters and seeds."""
    figure = Figure(figsize=(13.5, 4.0), layout="constrained")
    figure.suptitle(title, parse_math=False)
    for axes, (statement, label) in zip(figure.subplots(1, len(STATEMENTS)), STATEMENTS.items(), strict=True):
        _draw_statement(axes, [row for row in rows if row.statement == statement])
        axes.set(title=f"{statement}: {label}", xlabel="cycle", yscale="log")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return figure


def bound_means(rows: Sequence[BoundRow]) -> tuple[list[int], dict[str, FloatArray]]:
    """One statement's cycles, and for each of `KINDS` the (K,) means over clusters and seeds."""
    by_cycle: dict[int, list[BoundRow]] = {}
    for row in rows:
        by_cycle.setdefault(row.cycle, []).append(row)
    cycles = sorted(by_cycle)
    means = {
        kind: np.array([np.mean([getattr(row, kind) for row in by_cycle[cycle]]) for cycle in cycles])
        for kind in KINDS
    }
    return cycles, means


def _draw_statement(axes: Axes, rows: Sequence[BoundRow]) -> None:
    cycles, of_kinds = bound_means(rows)
    for place, (name, means) in enumerate(of_kinds.items()):
        known = np.isfinite(means) & (means > 0)
        label = name if known.any() else f"{name} ({'says nothing' if np.isinf(means).any() else 'is 0'})"
        shown = np.array(cycles)[known]
        axes.plot(shown, means[known], color=COLOURS[place], linestyle=DASHES[place], label=label)


def draw_bounds_by_clusters(panels: Mapping[str, Mapping[int, FloatArray]], title: str) -> Figure:
    """Theorem 1's bound, averaged over clusters and over a regime's steps, against S, for several τ_a.

    The paper's Figs. "Normalized intra-cluster gradients"; each curve is divided by its largest value.

    Args:
        panels: title → τ_a → (N,) the bound for S = 1 … N.
    """
    figure = Figure(figsize=(3.6 * len(panels), 3.6), layout="constrained")
    figure.suptitle(title, parse_math=False)
    axes_row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (name, curves) in zip(axes_row, panels.items(), strict=True):
        for place, (tau_a, values) in enumerate(curves.items()):
            known = np.isfinite(values)
            S = np.arange(1, len(values) + 1)[known]
            if known.any():
                shares = values[known] / values[known].max()
                least = S[int(np.argmin(shares))]
                label = f"τ_a = {tau_a}, least at S = {least}"
                axes.plot(S, shares, color=COLOURS[place], marker=".", label=label)
            else:
                axes.plot([], [], color=COLOURS[place], label=f"τ_a = {tau_a}: says nothing")
        axes.set(title=name, xlabel="clusters S")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=8)
    axes_row[0].set_ylabel("bound, normalised")
    return figure
