"""Figures: the network with its clusters, and curves with a band over seeds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, NullFormatter

from ssdfl.arrays import BoolArray, FloatArray, IntArray
from ssdfl.clusters import Clusters, labels_of
from ssdfl.files import atomic_path
from ssdfl.graph import Network
from ssdfl.records.record import Metric, metrics_of
from ssdfl.records.scores import Goal
from ssdfl.records.tables import Row
from ssdfl.report.grouping import group_by
from ssdfl.report.places import discs_of_clusters
from ssdfl.report.series import curve, names_of_ranked_costs
from ssdfl.report.world import WORLD

Places = dict[int, FloatArray]
"""Where each device is drawn."""
# Okabe and Ito's colours, which colour-blind people can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A900")
DASHES = ("-", "--", "-.", ":")
INSIDE, BETWEEN = "#555555", "#999999"
"""Colours of links inside a cluster and between clusters."""
MOST_NAMES = 8
"""The number of methods in one line of a legend."""
MANY_DEVICES = 60
"""Above this number, devices are drawn small and without names."""


def plot_network(network: Network, clusters: Clusters = (), title: str = "") -> Figure:
    """Draw the network: clusters coloured, links between clusters dashed, slower links thinner.

    Devices that have coordinates are drawn on a map.
    """
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    axes = figure.add_subplot()
    labels = labels_of(clusters or (tuple(range(network.num_devices)),), network.num_devices)
    places = layout(network, labels)
    inside = np.array([labels[i] == labels[j] for i, j in network.links], dtype=bool)
    _plot_links(axes, network, places, inside, "solid", INSIDE)
    _plot_links(axes, network, places, ~inside, "dashed", BETWEEN)
    _plot_devices(axes, network, places, labels)
    title = title or f"{network.title}: {network.num_devices} devices, {network.num_links} links"
    axes.set_title(title, parse_math=False)
    handles = _link_legend(network, one_cluster=bool(inside.all()))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    if network.geographic and network.positions is not None:
        _plot_map(figure, axes, network.positions)
    else:
        axes.margins(0.12)
    axes.set_axis_off()
    return figure


def _plot_map(figure: Figure, axes: Axes, positions: FloatArray) -> None:
    """Draw the land around devices, true to scale at their middle latitude."""
    for outline in WORLD:
        axes.fill(*np.array(outline).T, facecolor="#e2e8df", edgecolor="#c3cdbf", zorder=0)
    low, high = positions.min(axis=0), positions.max(axis=0)
    margin = np.maximum(
        (high - low) * [0.1, 0.2], 2.0
    )  # show some surroundings even of a single city
    (west, south), (east, north) = low - margin, high + margin
    axes.set(xlim=(west, east), ylim=(south, north))
    stretch = 1 / np.cos(np.radians((south + north) / 2))
    axes.set_aspect(stretch)
    height = 9.2 * stretch * (north - south) / (east - west) + 0.8  # title and legend
    figure.set_size_inches(9.2, min(height, 9.2))


def _plot_links(
    axes: Axes, network: Network, places: Places, chosen: BoolArray, style: str, colour: str
) -> None:
    nx.draw_networkx_edges(
        network.to_networkx(),
        places,
        edgelist=[tuple(link) for link in network.links[chosen]],
        width=link_widths(network)[chosen].tolist(),
        style=style,
        edge_color=colour,
        ax=axes,
    )


def _plot_devices(axes: Axes, network: Network, places: Places, labels: IntArray) -> None:
    many = network.num_devices > MANY_DEVICES
    nx.draw_networkx_nodes(
        network.to_networkx(),
        places,
        node_color=[COLOURS[label % len(COLOURS)] for label in labels],
        node_size=30 if many else 120 if network.geographic else 260,
        edgecolors="white",
        ax=axes,
    )
    if not many:
        for device, name in enumerate(network.names):
            _plot_name(axes, places[device], name)


def _plot_name(axes: Axes, place: FloatArray, name: str) -> None:
    """A short name inside its circle, a long one below it."""
    fits = len(name) <= 3
    axes.annotate(
        name,
        tuple(place),
        xytext=(0, 0 if fits else -14),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=8 if fits else 7,
        color="white" if fits else "black",
        parse_math=False,
        path_effects=None if fits else [withStroke(linewidth=2, foreground="white")],
    )


def layout(network: Network, labels: IntArray) -> Places:
    """Where to draw devices: at coordinates, by springs, or in discs of clusters if there are many.

    Springs between clusters are longer, which keeps clusters apart.
    """
    if network.positions is not None:
        return dict(enumerate(network.positions))
    graph = network.to_networkx()
    if len(graph) <= 150:
        for i, j in graph.edges:
            graph.edges[i, j]["length"] = 1.0 if labels[i] == labels[j] else 2.0
        return dict(nx.kamada_kawai_layout(graph, weight="length"))
    if len(graph) <= 600:
        return dict(nx.spring_layout(graph, seed=0))
    return dict(enumerate(discs_of_clusters(network, labels)))


def link_widths(network: Network) -> FloatArray:
    """Line widths from 2 (fastest) to 0.7 (slowest link), by the log of a megabyte's time."""
    time = np.log(network.message_time_s(10**6))
    if not len(time) or np.ptp(time) == 0:
        return np.full(len(time), 1.4)
    widths: FloatArray = 2.0 - 1.3 * (time - time.min()) / np.ptp(time)
    return widths


def _link_legend(network: Network, one_cluster: bool) -> list[Line2D]:
    handles = [Line2D([], [], color=INSIDE, linewidth=1.4, label="link")]
    if not one_cluster:
        handles = [
            Line2D([], [], color=INSIDE, linewidth=1.4, label="inside a cluster"),
            Line2D([], [], color=BETWEEN, linewidth=1.4, linestyle="--", label="between clusters"),
        ]
    if len(set(link_widths(network))) > 1:
        handles.append(Line2D([], [], color="#777777", linewidth=0.7, label="thin: slow link"))
    return handles


def plot_curves(
    rows: Sequence[Row], quantity: str, costs: Sequence[str] | None = None, goal: Goal | None = None
) -> Figure:
    """A quantity against several costs: the mean over seeds, with a min–max band.

    A cost differs a little from seed to seed; curves are drawn at its mean.

    Args:
        quantity: a metric's name.
        costs: by default the costs by which methods are ranked.
        goal: the metric of the run's tests; accuracy by default.
    """
    metrics = metrics_of(goal or Goal())
    costs = costs or names_of_ranked_costs(rows)
    by_method = group_by(rows, itemgetter("method"))
    figure = Figure(figsize=(4.6 * len(costs), 3.9), layout="constrained")
    panels = figure.subplots(1, len(costs), squeeze=False)[0]
    for axes, cost in zip(panels, costs, strict=True):
        for place, of_method in enumerate(by_method.values()):
            _plot_curve(axes, of_method, metrics[cost], metrics[quantity], place)
        _style_axes(axes, metrics[cost], [row[cost] for row in rows])
    panels[0].set_ylabel(metrics[quantity].label)
    handles, names = panels[0].get_legend_handles_labels()
    columns = min(len(names), MOST_NAMES)
    figure.legend(handles, names, loc="outside upper center", ncols=columns, frameon=False)
    return figure


def _plot_curve(
    axes: Axes, rows: Sequence[Row], cost: Metric, quantity: Metric, place: int
) -> None:
    found = curve(rows, quantity.name, [cost.name])
    x = found.costs[cost.name] / cost.scale
    colour, dash = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
    axes.plot(x, found.mean, color=colour, linestyle=dash, label=rows[0]["method"], linewidth=1.6)
    axes.fill_between(x, found.low, found.high, color=colour, alpha=0.15, linewidth=0)
    if quantity.log and (found.low > 0).all():
        axes.set_yscale("log")


def _style_axes(axes: Axes, cost: Metric, values: Sequence[float]) -> None:
    axes.set_xlabel(cost.label)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if not cost.log:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    elif all(value > 0 for value in values):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())


def save(figure: Figure, path: Path | str, dpi: int = 120) -> None:
    """Write a figure as PNG or PDF, by the suffix of the path; equal figures give equal bytes.

    Characters that the font lacks, such as those of a Chinese device name, become boxes. Pages show
    them correctly, so the warnings about them are suppressed.
    """
    with atomic_path(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        is_pdf = temporary.suffix == ".pdf"
        figure.savefig(temporary, dpi=dpi, metadata={"CreationDate": None} if is_pdf else None)
