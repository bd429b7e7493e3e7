"""Pictures of bounds: beside what a run measured, and against the number of clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssdfl.arrays import FloatArray
from ssdfl.experiments.bound_rows import BoundRow
from ssdfl.report.figures import COLOURS, DASHES

STATEMENTS = {
    "Lemma 1": "‖Δ_s‖ after training",
    "Lemma 2": "‖Δ̂‖ after mixing",
    "Theorem 1": "Σ_q ‖∇F̃_s‖² of a regime",
}


def draw_measured_bounds(rows: Sequence[BoundRow], title: str) -> Figure:
    """Measured, published and rigorous against cycles, for each statement: means over clusters and seeds."""
    figure = Figure(figsize=(13.5, 4.0), layout="constrained")
    figure.suptitle(title)
    for axes, (statement, label) in zip(figure.subplots(1, len(STATEMENTS)), STATEMENTS.items(), strict=True):
        _draw_statement(axes, [row for row in rows if row.statement == statement])
        axes.set(title=f"{statement}: {label}", xlabel="cycle", yscale="log")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return figure


def _draw_statement(axes: Axes, rows: Sequence[BoundRow]) -> None:
    cycles = sorted({row.cycle for row in rows})
    for place, name in enumerate(("measured", "published", "rigorous")):
        by_cycle = [[getattr(row, name) for row in rows if row.cycle == cycle] for cycle in cycles]
        means = np.array([np.mean(values) for values in by_cycle])
        known = np.isfinite(means) & (means > 0)
        label = name if known.any() else f"{name} (says nothing)"
        shown = np.array(cycles)[known]
        axes.plot(shown, means[known], color=COLOURS[place], linestyle=DASHES[place], label=label)


def draw_bounds_by_clusters(panels: Mapping[str, Mapping[int, FloatArray]], title: str) -> Figure:
    """Theorem 1's bound, averaged over clusters and over a regime's steps, against S, for several τ_a.

    The paper's Figs. "Normalized intra-cluster gradients"; each curve is divided by its largest value.

    Args:
        panels: title → τ_a → (N,) the bound for S = 1 … N.
    """
    figure = Figure(figsize=(3.6 * len(panels), 3.6), layout="constrained")
    figure.suptitle(title)
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
