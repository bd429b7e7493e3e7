"""``report.html``: a run in one file, readable offline."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from itertools import chain
from pathlib import Path

from matplotlib.figure import Figure

from ssdfl.clusters import Plan
from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.methods import find_method
from ssdfl.records.bounds import BoundRow, summarise_bounds
from ssdfl.records.config import Experiment, to_toml
from ssdfl.records.engines import engine_traits
from ssdfl.records.folder import RunFolder
from ssdfl.records.record import METRICS
from ssdfl.records.scores import OWN_TESTS
from ssdfl.records.tables import Row, has_test
from ssdfl.report.bounds import bound_table
from ssdfl.report.condensed import if_large
from ssdfl.report.figures import plot_curves, plot_network, save
from ssdfl.report.formats import write_csv, write_table_files
from ssdfl.report.network_data import diagnostics_table, formation_line, plan_reason, settings_table
from ssdfl.report.numbers import listed
from ssdfl.report.page import PLAN_SCRIPTS, asset, fill, html_table, page
from ssdfl.report.ranking import RunResults, headline, is_reference, rankable
from ssdfl.report.run_data import run_data
from ssdfl.report.series import names_of_ranked_costs
from ssdfl.report.summary import flat_columns
from ssdfl.report.tables import cost_table, summary_table
from ssdfl.report.winners import Winner, winners

RUN_SCRIPTS = (*PLAN_SCRIPTS, "curves.js", "devices.js", "bounds.js", "run_page.js")


def write_report(folder: RunFolder, latex: bool = False) -> Path:
    """Write a run's ``report.html`` and the figures in ``figures/``; returns the page's path.

    Args:
        latex: also write tables as LaTeX, Markdown and CSV into ``tables/``, and figures as PDF.

    Raises:
        InputError: the folder holds no run, or one that has tested nothing yet.
    """
    experiment, rows = tested_rows(folder)
    drawings = _drawings(folder, experiment, rows)
    figures = [_saved(folder, name, *drawing) for name, drawing in drawings.items()]
    if latex:
        _write_for_latex(folder, experiment, rows, drawings)
    bounds = folder.read_bounds()
    body = run_body(folder, experiment, rows, bounds, figures)
    data = run_data(folder, experiment, rows, bounds)
    path = folder.path / "report.html"
    write_text(path, page(f"ssdfl: {experiment.name}", body, data, RUN_SCRIPTS, charts=True))
    return path


def tested_rows(folder: RunFolder) -> tuple[Experiment, list[Row]]:
    """A run's experiment and records.

    Raises:
        InputError: the folder holds no run, or one that has tested nothing yet.
    """
    experiment, rows = folder.experiment(), folder.all_rows()
    if not any(map(has_test, rows)):
        go_on = ["ssdfl", "run", str(folder.experiment_file), "--resume", "--out", str(folder.path)]
        remedy = f"Continue with: {shlex.join(go_on)}"
        raise InputError("records", str(folder.path), "a run that has tested something", remedy)
    return experiment, rows


def run_body(
    folder: RunFolder,
    experiment: Experiment,
    rows: Sequence[Row],
    bounds: Sequence[BoundRow] = (),
    figures: Sequence[tuple[Path, str]] = (),
    status: str = "",
) -> str:
    """The body of a run's page; its scripts draw the rest from `run_data`.

    Args:
        figures: pictures and captions for readers with scripts turned off.
        status: shown at the top of a page that is served during the run.
    """
    again = shlex.join(["ssdfl", "run", str(folder.experiment_file)])
    goal = folder.goal(experiment)
    of_target = ("", "") if goal.target is None else _OF_TARGET
    return fill(
        "run.html",
        title=escape(experiment.name),
        subtitle=escape(_subtitle(experiment) + _own_tests(folder)),
        status=status,
        curves_part=asset("curves_part.html"),
        plan_part=asset("plan_part.html"),
        figures="\n".join(_figure(path, caption) for path, caption in figures),
        references=_references(experiment.methods),
        score=escape(goal.noun),
        dashes=of_target[0],
        elsewhere=of_target[1],
        data_notes=_data_notes(folder),
        cross_tests=_cross_tests(folder, experiment),
        experiment=escape(to_toml(experiment)),
        command=escape(again),
        **run_parts(folder, experiment, rows, bounds, goes_on=bool(status)),
    )


_OF_TARGET = (
    "A dash means that no seed reached the target, (1/2) that one of two did.",
    "The cost of reaching the target is in the results above.",
)
"""Notes that only make sense if there is a target."""


def run_parts(
    folder: RunFolder,
    experiment: Experiment,
    rows: Sequence[Row],
    bounds: Sequence[BoundRow] = (),
    *,
    goes_on: bool = False,
) -> dict[str, str]:
    """The parts of a run's page that change during the run, by their names in the template."""
    goal = folder.goal(experiment)
    results = RunResults(experiment, rows)
    summaries = results.summaries(goal)
    return {
        "tiles": tiles(winners(rankable([results], goal), goal)),
        "headline": escape(headline([results], goal)),
        "results": html_table(*summary_table(summaries, goal)),
        "costs": html_table(*cost_table(summaries)),
        "plan": _plans(folder, experiment),
        "bounds": _bounds(folder, experiment, bounds, goes_on),
        "versions": _versions(folder),
    }


def tiles(found: Sequence[Winner]) -> str:
    """The winners side by side."""
    return "".join(
        f'<div class="tile"><h3>{escape(one.category)}</h3>'
        f'<p class="winner">{escape(one.method)}</p>'
        f'<p class="value">{escape(one.value)}</p><p class="margin">{escape(one.margin)}</p></div>'
        for one in found
    )


def _subtitle(experiment: Experiment) -> str:
    seeds = ", ".join(map(str, experiment.seeds))
    schedule = f"τ_a = {experiment.schedule.tau_a}, τ_r = {experiment.schedule.tau_r}"
    where = f"{experiment.data.name} with {experiment.model.name} on {experiment.network.spec}"
    return f"{where}; {experiment.cycles} cycles of {schedule}; seeds {seeds}{_lies(experiment)}"


def _own_tests(folder: RunFolder) -> str:
    return "; each device is tested on its own held-out data" if OWN_TESTS in folder.notes() else ""


def _lies(experiment: Experiment) -> str:
    """Which devices lie, and how; results are then those of the honest devices."""
    liars, attack = experiment.faults.liars, experiment.faults.attack
    if not liars:
        return ""
    who = f"{liars} liars" if isinstance(liars, int) else f"liars {', '.join(liars)}"
    return f"; {who} by {attack}, scores are those of honest devices"


def _data_notes(folder: RunFolder) -> str:
    """How the data were prepared."""
    lines = "".join(f"<li>{escape(note)}</li>" for note in folder.notes())
    return f"<h3>How the data were prepared</h3><ul>{lines}</ul>" if lines else ""


def _cross_tests(folder: RunFolder, experiment: Experiment) -> str:
    """Every model's score on every device's held-out data, if these were tested."""
    tests, score = folder.cross_tests(), folder.goal(experiment).score
    if tests is None:
        return ""
    headers = [
        f"{score.header} of the model of",
        *(f"on {name}" for name in tests.devices),
        "mean",
        "worst",
    ]
    rows = [
        [name, *map(score.number, (*found, sum(found) / len(found), score.worst(found)))]
        for name, found in zip(tests.devices, tests.scores, strict=True)
    ]
    samples = ["test samples", *map(str, tests.samples), str(sum(tests.samples)), ""]
    table = html_table(headers, [*rows, samples])
    return f'<h3>Every model on every device\'s held-out data</h3><div class="scroll">{table}</div>'


def _references(methods: Sequence[str]) -> str:
    """Notes on the methods that are not ranked."""
    references = [find_method(method) for method in filter(is_reference, methods)]
    return " ".join(
        f"<em>{escape(one.name)}</em> ({escape(one.summary)}) is a reference and is not ranked."
        for one in references
    )


def _plans(folder: RunFolder, experiment: Experiment) -> str:
    """Remarks on each seed's plan; the scripts show those of the chosen seed."""
    plans = {seed: plan for seed in experiment.seeds if (plan := folder.plan(seed)) is not None}
    first = next(iter(plans), None)
    return "".join(_plan_text(seed, plan, seed == first) for seed, plan in plans.items())


def _plan_text(seed: int, plan: Plan, shown: bool) -> str:
    return fill(
        "plan_text.html",
        seed=str(seed),
        hidden="" if shown else "hidden",
        reason=escape(plan_reason(plan)),
        diagnostics=diagnostics_table(plan) if plan.diagnostics else "",
        formation=escape(formation_line(plan)) if plan.candidates else "",
        settings=settings_table(plan) if plan.settings else "",
    )


def _bounds(
    folder: RunFolder, experiment: Experiment, rows: Sequence[BoundRow], goes_on: bool
) -> str:
    if rows:
        table = html_table(*bound_table(summarise_bounds(list(rows))))
        return f'<div class="scroll">{table}</div>'
    return f"<p>{escape(_how_to_get_bounds(folder, experiment, goes_on))}</p>"


def _how_to_get_bounds(folder: RunFolder, experiment: Experiment, goes_on: bool) -> str:
    """Why a page shows no bounds, and what to do about it."""
    if not engine_traits(experiment.engine.name).records_gaps:
        return (
            f"No device of a {experiment.engine.name} sees the quantities that the bounds need. "
            "Record them with another engine."
        )
    if not experiment.evaluate.gaps:
        return "Not recorded. Add --set evaluate.gaps=true --set training.local_steps=1 to the run."
    if experiment.training.local_steps > 1:
        return "The paper's bounds are for one local step. Run with --set training.local_steps=1."
    if goes_on:
        return "The bounds are computed when the run ends."
    return (
        f"Not compared yet: {shlex.join(['ssdfl', 'bounds', str(folder.path)])}, then ssdfl report."
    )


def _versions(folder: RunFolder) -> str:
    parts = folder.versions()
    names = dict.fromkeys(chain.from_iterable(parts))
    titles = [f"part {k} of the run" for k in range(1, len(parts) + 1)]
    if len(parts) == 1:
        titles = ["version"]
    return html_table(["", *titles], ([name, *_versions_of(name, parts)] for name in names))


def _versions_of(name: str, parts: Sequence[Mapping[str, str]]) -> list[str]:
    return [versions.get(name, "–") for versions in parts]


def _write_for_latex(
    folder: RunFolder,
    experiment: Experiment,
    rows: Sequence[Row],
    drawings: Mapping[str, tuple[Figure, str]],
) -> None:
    """Write files for a LaTeX document: tables, and figures as PDF."""
    for name, (figure, _) in drawings.items():
        save(figure, folder.path / "figures" / f"{name}.pdf")
    goal, tables = folder.goal(experiment), folder.path / "tables"
    summaries = RunResults(experiment, rows).summaries(goal)
    write_csv(tables / "results.csv", *flat_columns(summaries))
    write_table_files(tables / "results", summary_table(summaries, goal), experiment.name)
    write_table_files(tables / "costs", cost_table(summaries), f"{experiment.name}: costs")


def _drawings(
    folder: RunFolder, experiment: Experiment, rows: Sequence[Row]
) -> dict[str, tuple[Figure, str]]:
    """All figures and their captions, by name."""
    costs = listed(METRICS[name].noun for name in names_of_ranked_costs(rows))
    goal = folder.goal(experiment)
    return {
        "network": _network_figure(folder, experiment),
        goal.score.name.replace(":", "."): (
            plot_curves(rows, goal.reading, goal=goal),
            f"{goal.noun.capitalize()} in tests against {costs}; bands show the seeds.",
        ),
        "consensus": (
            plot_curves(rows, "consensus_distance"),
            "How far devices' parameters are from their mean (root mean square).",
        ),
    }


def _saved(folder: RunFolder, name: str, figure: Figure, caption: str) -> tuple[Path, str]:
    """Write a figure as PNG; returns its path and caption."""
    path = folder.path / "figures" / f"{name}.png"
    save(figure, path)
    return path, caption


def _network_figure(folder: RunFolder, experiment: Experiment) -> tuple[Figure, str]:
    """The first seed's network and clusters, and a caption."""
    seed = experiment.seeds[0]
    network, plan = folder.network(seed), folder.plan(seed)
    clusters = plan.clusters if plan else ()
    title = f"{experiment.network.spec}: {network.num_devices} devices, {len(clusters)} clusters"
    caption = f"The network of seed {seed} and the clusters of SSD-FL."
    if network.added_links:
        caption += f" {len(network.added_links)} links were added to make it connected."
    groups = if_large(network, clusters or (tuple(range(network.num_devices)),))
    if groups is not None:
        caption += f" Each of the {groups.network.num_devices} circles stands for several devices."
        return plot_network(groups.network, groups.clusters, title), caption
    return plot_network(network, clusters, title), caption


def _figure(path: Path, caption: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
