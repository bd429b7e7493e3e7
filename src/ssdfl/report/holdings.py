"""Who holds what: samples of each device, and of which labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssdfl.arrays import IntArray
from ssdfl.report.figures import COLOURS, MANY_DEVICES

MOST_LABELS = 30
"""Beyond so many, only samples are drawn."""


def plot_holdings(names: Sequence[str], sizes: IntArray, labels: IntArray | None, title: str) -> Figure:
    """A bar for each device, and below it how many samples of each label it holds.

    Args:
        labels: (devices, classes) counts; None if there are no classes.
    """
    shown = labels if labels is not None and labels.shape[1] <= MOST_LABELS else None
    figure = Figure(figsize=(min(16.0, max(6.4, 0.22 * len(names))), 4.8), layout="constrained")
    panels = figure.subplots(1 if shown is None else 2, 1, sharex=True, squeeze=False)[:, 0]
    panels[0].bar(range(len(names)), sizes, color=COLOURS[0])
    panels[0].set_ylabel("samples")
    panels[0].set_title(title, parse_math=False)
    panels[0].spines[["top", "right"]].set_visible(False)
    if sizes.max() > 20 * sizes.min():
        panels[0].set_yscale("log")
    if shown is not None:
        _draw_labels(figure, panels[1], shown)
    panels[-1].set_xlabel("device")
    few = len(names) <= MANY_DEVICES
    panels[-1].set_xticks(
        range(len(names)) if few else [], names if few else [], rotation=90, parse_math=False
    )
    return figure


def _draw_labels(figure: Figure, axes: Axes, labels: IntArray) -> None:
    image = axes.imshow(labels.T, aspect="auto", cmap="Blues", vmin=0, interpolation="nearest")
    axes.set_ylabel("label")
    axes.set_yticks(np.arange(labels.shape[1]))
    figure.colorbar(image, ax=axes, label="samples", pad=0.01)
