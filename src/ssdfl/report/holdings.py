"""A figure of what devices hold: their samples, and the labels of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ssdfl.arrays import IntArray
from ssdfl.report.figures import COLOURS, MANY_DEVICES

MOST_LABELS = 30
"""Above this number, only samples are drawn."""


def plot_holdings(
    names: Sequence[str], sizes: IntArray, labels: IntArray | None, title: str
) -> Figure:
    """Draw a bar for each device, and below it its number of samples of each label.

    Args:
        labels: (devices, classes) counts; None if there are no classes.
    """
    shown = None if labels is None or labels.shape[1] > MOST_LABELS else labels
    figure = Figure(figsize=(min(16.0, max(6.4, 0.22 * len(names))), 4.8), layout="constrained")
    panels = figure.subplots(1 if shown is None else 2, 1, sharex=True, squeeze=False)[:, 0]
    _draw_sizes(panels[0], sizes, title)
    if shown is not None:
        _draw_labels(figure, panels[1], shown)
    _name_devices(panels[-1], names)
    return figure


def _draw_sizes(axes: Axes, sizes: IntArray, title: str) -> None:
    axes.bar(range(len(sizes)), sizes, color=COLOURS[0])
    axes.set_ylabel("samples")
    axes.set_title(title, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    if sizes.max() > 20 * sizes.min():
        axes.set_yscale("log")


def _name_devices(axes: Axes, names: Sequence[str]) -> None:
    """Write names below the bars, unless there are too many to read."""
    axes.set_xlabel("device")
    shown = list(names) if len(names) <= MANY_DEVICES else []
    axes.set_xticks(range(len(shown)), shown, rotation=90, parse_math=False)


def _draw_labels(figure: Figure, axes: Axes, labels: IntArray) -> None:
    image = axes.imshow(labels.T, aspect="auto", cmap="Blues", vmin=0, interpolation="nearest")
    axes.set_ylabel("label")
    axes.set_yticks(np.arange(labels.shape[1]))
    figure.colorbar(image, ax=axes, label="samples", pad=0.01)
