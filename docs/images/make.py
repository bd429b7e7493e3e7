"""Draw the README's map and the pictures of docs/concepts.md from the library's own results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import ssdfl
from ssdfl.arrays import FloatArray
from ssdfl.graph import Clock, links_of
from ssdfl.report.figures import COLOURS, plot_network, save

HERE = Path(__file__).parent
NETWORK = ssdfl.load_network("sites:sites=4,size=5,seed=0")
PLAN = ssdfl.form_clusters(NETWORK)
SETTING = ssdfl.ScheduleInputs(NETWORK, PLAN.clusters, tau_a=5, tau_r=1)
CYCLE = SETTING.tau_a + SETTING.tau_r
COMPUTE_S = 2 * NETWORK.compute_s
MESSAGE_BYTES = 4 * 4810
SHOWN = {
    "pdfl": "pdfl: every device alone",
    "ssdfl": "ssdfl: four clusters",
    "sdfl": "sdfl: one cluster",
}


def draw_steps() -> Figure:
    """Who mixes with whom in a training step of three methods, and in the last step of a cycle."""
    figure = Figure(figsize=(9.2, 2.9))
    panels = figure.subplots(
        1, 4, gridspec_kw={"left": 0, "right": 1, "top": 0.84, "bottom": 0, "wspace": 0.02}
    )
    for axes, (name, title) in zip(panels, SHOWN.items(), strict=False):
        _draw_active(axes, ssdfl.METHODS[name].schedule(SETTING)(0))
        axes.set_title(f"training step of\n{title}", fontsize=11)
    _draw_active(panels[3], ssdfl.METHODS["ssdfl"].schedule(SETTING)(SETTING.tau_a))
    panels[3].set_title("mixing step of all three,\nthe last of a cycle", fontsize=11)
    return figure


def _draw_active(axes: Axes, step: ssdfl.Step) -> None:
    places = NETWORK.positions
    assert places is not None
    for i, j in NETWORK.links:
        axes.plot(*places[[i, j]].T, color="#dddddd", linewidth=0.8, zorder=1)
    for i, j in zip(*links_of(step.W)[:2], strict=True):
        slow = PLAN.labels[i] != PLAN.labels[j]
        colour, dash = ("#222222", "--") if slow else ("#666666", "-")
        axes.plot(*places[[i, j]].T, color=colour, linewidth=1.3, linestyle=dash, zorder=2)
    colours = [COLOURS[label] for label in PLAN.labels]
    filled = colours if step.train.any() else "white"
    x, y = places.T
    axes.scatter(x, y, s=55, c=filled, edgecolors=colours, linewidths=1.5, zorder=3)
    axes.set_aspect("equal")
    axes.margins(0.08)
    axes.set_axis_off()


def draw_clock() -> Figure:
    """When each device computes and when it waits, for one cycle of three methods."""
    figure = Figure(figsize=(8.6, 5.2), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    for axes, (name, title) in zip(panels, SHOWN.items(), strict=True):
        ready_s = np.zeros(NETWORK.num_devices)
        for start_s, computed_s, ready_s in _steps(ssdfl.METHODS[name].schedule(SETTING)):
            _plot_bars(axes, start_s, computed_s, ready_s)
        axes.axvline(ready_s.max(), color="black", linewidth=1.2)
        axes.text(
            ready_s.max() + 0.004, 9.5, f"{1000 * ready_s.max():.0f} ms", va="center", fontsize=10
        )
        axes.set_title(title, fontsize=11, loc="left")
        axes.set_yticks([2, 7, 12, 17], [f"site {site}" for site in range(4)])
        axes.invert_yaxis()
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    panels[-1].set_xlabel("simulated seconds since the start of the cycle")
    handles = [
        Patch(color="#555555", label="computes"),
        Patch(color="#e4e4e4", label="waits for messages"),
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False)
    return figure


def _steps(schedule: ssdfl.Schedule) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """For every step of a cycle: when each device starts, has computed, and is ready."""
    clock, ready_s = Clock(NETWORK, MESSAGE_BYTES), np.zeros(NETWORK.num_devices)
    for t in range(CYCLE):
        step, start_s = schedule(t), ready_s
        compute_s = COMPUTE_S * step.train
        ready_s, _ = clock.advance(start_s, step.W, compute_s)
        yield start_s, start_s + compute_s, ready_s


def _plot_bars(
    axes: Axes, start_s: FloatArray, computed_s: FloatArray, ready_s: FloatArray
) -> None:
    devices = np.arange(NETWORK.num_devices)
    axes.barh(devices, ready_s - start_s, left=start_s, height=0.8, color="#e4e4e4")
    colours = [COLOURS[label] for label in PLAN.labels]
    if (computed_s > start_s).any():
        width_s = computed_s - start_s
        axes.barh(
            devices,
            width_s,
            left=start_s,
            height=0.8,
            color=colours,
            edgecolor="white",
            linewidth=0.7,
        )


def draw_drift() -> Figure:
    """How far devices that pull in different directions are apart, step by step."""
    rng = np.random.default_rng(0)
    pull = rng.normal(size=(NETWORK.num_devices, 50))
    pull -= pull.mean(axis=0)
    pull /= np.sqrt((pull**2).sum(axis=1).mean())
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    steps = np.arange(5 * CYCLE + 1)
    for cycle in range(5):
        axes.axvspan((cycle + 1) * CYCLE - 1, (cycle + 1) * CYCLE, color="#eeeeee", linewidth=0)
    for colour, (name, title) in zip(COLOURS, SHOWN.items(), strict=False):
        schedule = ssdfl.METHODS[name].schedule(SETTING)
        distances = list(_distances(schedule, pull, len(steps)))
        axes.plot(steps, distances, color=colour, label=title)
    axes.set_xlabel("step (grey: the whole network mixes, nobody trains)")
    axes.set_ylabel("distance from the mean,\nin training steps")
    axes.set_xlim(0, steps[-1])
    axes.set_ylim(0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure


def _distances(schedule: ssdfl.Schedule, pull: FloatArray, count: int) -> Iterator[float]:
    """Root mean square distance of devices from their mean under X ← W X + pull."""
    X = np.zeros_like(pull)
    for t in range(count):
        yield float(np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()))
        step = schedule(t)
        X = step.W @ X + step.train[:, None] * pull


def draw_map() -> Figure:
    """The plan of eleven cloud regions, which formation makes from the latencies between them."""
    network = ssdfl.load_network("gaia")
    plan = ssdfl.form_clusters(network)
    return plot_network(
        network, plan.clusters, f"gaia: 11 data centres in {plan.num_clusters} clusters"
    )


if __name__ == "__main__":
    save(draw_map(), HERE / "world-plan.png")
    save(draw_steps(), HERE / "steps.png")
    save(draw_clock(), HERE / "clock.png")
    save(draw_drift(), HERE / "drift.png")
