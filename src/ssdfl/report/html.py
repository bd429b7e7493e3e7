"""``report.html``: one file with the pictures inside it, readable with no network."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path

import ssdfl
from ssdfl.clusters import read_plan
from ssdfl.experiments.config import Experiment, to_toml
from ssdfl.experiments.store import RunFolder
from ssdfl.files import write_text
from ssdfl.graph import read_network
from ssdfl.report.figures import draw_curves, draw_network, save
from ssdfl.report.page import fill, table
from ssdfl.report.summary import MethodSummary, cells, headers, summarise


def write_report(folder: RunFolder) -> Path:
    """Draw a run's figures into ``figures/``, write ``report.html``, and return the latter's path."""
    experiment = folder.experiment()
    figures = _draw_figures(folder, experiment)
    summaries = summarise(folder)
    text = fill(
        "page.html",
        title=escape(experiment.name),
        headline=escape(headline(summaries, experiment.evaluate.target_accuracy)),
        table=table(headers(experiment.evaluate.target_accuracy), map(cells, summaries)),
        figures="\n".join(_figure(path, caption) for path, caption in figures),
        experiment=escape(to_toml(experiment)),
        version=escape(ssdfl.__version__),
    )
    path = folder.path / "report.html"
    write_text(path, text)
    return path


def headline(summaries: Sequence[MethodSummary], target: float) -> str:
    """Who was best and who was soonest, in plain words; `central` is a reference, not a contender."""
    field = [summary for summary in summaries if summary.method != "central"] or list(summaries)
    best = max(field, key=lambda s: s.accuracy)
    text = f"Best final accuracy: {best.method}, {100 * best.accuracy:.1f} %."
    racing = [s for s in field if s.seeds_at_target == s.seeds]
    for key, unit in (("cycles", "cycles"), ("bytes", "bytes"), ("seconds", "simulated seconds")):
        if racing:
            soonest = min(racing, key=lambda s: asdict(s)[f"{key}_to_target"])
            value = asdict(soonest)[f"{key}_to_target"]
            shown = f"{value / 1e6:.1f} MB" if key == "bytes" else f"{value:.3g} {unit}"
            text += f" Fewest {unit} to {100 * target:g} %: {soonest.method}, {shown}."
    if not racing:
        text += f" No method reached {100 * target:g} % with every seed."
    return text + (" The reference central is not ranked." if len(field) < len(summaries) else "")


def _draw_figures(folder: RunFolder, experiment: Experiment) -> list[tuple[Path, str]]:
    """Draw all figures; their paths and captions."""
    first_seed = folder.seed_folder(experiment.seeds[0])
    network, plan = read_network(first_seed / "network.json"), read_plan(first_seed / "plan.json")
    rows = folder.all_rows()
    title = f"{experiment.network.spec}: {network.num_devices} devices, {plan.num_clusters} clusters"
    added = (
        f" {len(network.added_links)} links were added to make it connected." if network.added_links else ""
    )
    drawings = {
        "network": (
            draw_network(network, plan.clusters, title),
            f"The network of seed {experiment.seeds[0]} and the clusters of SSD-FL.{added}",
        ),
        "accuracy": (
            draw_curves(rows, "accuracy", "mean test accuracy"),
            "Mean test accuracy of devices against cycles, bytes and simulated seconds, seeds as bands.",
        ),
        "consensus": (
            draw_curves(rows, "consensus_distance", "consensus distance"),
            "How far devices' parameters are from their mean (root mean square).",
        ),
    }
    result = []
    for name, (figure, caption) in drawings.items():
        path = folder.path / "figures" / f"{name}.png"
        save(figure, path)
        result.append((path, caption))
    return result


def _figure(path: Path, caption: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
