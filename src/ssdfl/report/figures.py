"""Pictures: the network with its clusters, and curves with a band over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.clusters import Clusters, labels_of
from ssdfl.files import atomic_path
from ssdfl.graph import Network
from ssdfl.records.folder import Row
from ssdfl.report.series import curve

# Okabe and Ito's colours, which colour-blind people can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A900")
DASHES = ("-", "--", "-.", ":")
AXES = {
    "cycle": "cycles",
    "transmissions": "messages sent",
    "sent_bytes": "megabytes sent",
    "time_s": "simulated seconds",
}
UNIT = {"sent_bytes": 1e6}


def draw_network(network: Network, clusters: Clusters = (), title: str = "") -> Figure:
    """The network with clusters coloured, links between clusters dashed, slower links thinner."""
    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    axes = figure.add_subplot()
    graph = network.to_networkx()
    labels = labels_of(clusters or (tuple(range(network.num_devices)),), network.num_devices)
    places = layout(network, labels)
    inside = [labels[i] == labels[j] for i, j in network.links]
    width = link_widths(network)
    for within, style, colour in ((True, "solid", "#555555"), (False, "dashed", "#999999")):
        chosen = [k for k, same in enumerate(inside) if same == within]
        nx.draw_networkx_edges(
            graph,
            places,
            edgelist=[tuple(network.links[k]) for k in chosen],
            width=[width[k] for k in chosen],
            style=style,
            edge_color=colour,
            ax=axes,
        )
    small = network.num_devices > 60
    nx.draw_networkx_nodes(
        graph,
        places,
        node_color=[COLOURS[label % len(COLOURS)] for label in labels],
        node_size=30 if small else 260,
        edgecolors="white",
        ax=axes,
    )
    if not small:
        for device, name in enumerate(network.names):
            _draw_name(axes, places[device], name)
    title = title or f"{network.title}: {network.num_devices} devices, {network.num_links} links"
    axes.set_title(title, parse_math=False)
    axes.legend(handles=_link_legend(network, all(inside)), loc="lower center", ncols=3, frameon=False)
    axes.margins(0.12)
    axes.set_axis_off()
    return figure


def _draw_name(axes: Axes, place: FloatArray, name: str) -> None:
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
    )


def layout(network: Network, labels: IntArray) -> dict[int, FloatArray]:
    """Where to draw devices: at their places, by springs, or, if there are many, on a circle by clusters.

    Springs between clusters are longer, so that clusters stand apart.
    """
    if network.positions is not None:
        return dict(enumerate(network.positions))
    graph = network.to_networkx()
    if len(graph) <= 150:
        for i, j in graph.edges:
            graph.edges[i, j]["length"] = 1.0 if labels[i] == labels[j] else 2.0
        places: dict[int, FloatArray] = nx.kamada_kawai_layout(graph, weight="length")
        return places
    if len(graph) <= 600:
        return dict(nx.spring_layout(graph, seed=0))
    return dict(nx.circular_layout(np.argsort(labels, kind="stable").tolist()))


def link_widths(network: Network) -> FloatArray:
    """2 for the fastest links down to 0.7 for the slowest, by the logarithm of a megabyte's time."""
    time = np.log(network.message_time_s(10**6))
    if not len(time) or np.ptp(time) == 0:
        return np.full(len(time), 1.4)
    widths: FloatArray = 2.0 - 1.3 * (time - time.min()) / np.ptp(time)
    return widths


def _link_legend(network: Network, one_cluster: bool) -> list[Line2D]:
    handles = [Line2D([], [], color="#555555", linewidth=1.4, label="link")]
    if not one_cluster:
        handles = [
            Line2D([], [], color="#555555", linewidth=1.4, label="inside a cluster"),
            Line2D([], [], color="#999999", linewidth=1.4, linestyle="--", label="between clusters"),
        ]
    if len(set(link_widths(network))) > 1:
        handles.append(Line2D([], [], color="#777777", linewidth=0.7, label="thin: slow link"))
    return handles


def draw_curves(
    rows: Sequence[Row],
    quantity: str,
    label: str,
    axes_keys: Sequence[str] = ("cycle", "sent_bytes", "time_s"),
) -> Figure:
    """A quantity against each of several costs: the mean over seeds, a band from the lowest to the highest.

    A cost differs a little from seed to seed; curves are drawn at its mean.
    """
    figure = Figure(figsize=(4.6 * len(axes_keys), 3.9), layout="constrained")
    panels = figure.subplots(1, len(axes_keys), squeeze=False)[0]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for axes, key in zip(panels, axes_keys, strict=True):
        for place, method in enumerate(methods):
            _draw_curve(axes, [r for r in rows if r["method"] == method], key, quantity, place)
        axes.set_xlabel(AXES[key])
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if key == "cycle":
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        elif all(row[key] > 0 for row in rows):
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
    panels[0].set_ylabel(label)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(methods), frameon=False)
    return figure


def _draw_curve(axes: Axes, rows: Sequence[Row], x: str, y: str, place: int) -> None:
    found = curve(rows, y, [x])
    xs = found.costs[x] / UNIT.get(x, 1)
    colour, dash = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
    axes.plot(xs, found.mean, color=colour, linestyle=dash, label=rows[0]["method"], linewidth=1.6)
    axes.fill_between(xs, found.low, found.high, color=colour, alpha=0.15, linewidth=0)


def save(figure: Figure, path: Path | str) -> None:
    """Write a figure as PNG."""
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=120)
