import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pages import data_of, without_plotly
from ssdfl.clusters import plan_clusters, spectral_bisection, write_plan
from ssdfl.errors import InputError
from ssdfl.experiments import run_experiment
from ssdfl.experiments.bounds import compare_bounds
from ssdfl.graph import load_network, make_network, to_json
from ssdfl.records import (
    Goal,
    RunFolder,
    load_experiment,
)
from ssdfl.records.bounds import BoundRow
from ssdfl.report import (
    RunResults,
    headline,
    plot_bounds_by_clusters,
    plot_curves,
    plot_measured_bounds,
    plot_network,
    save,
    summarise,
    summary_table,
    winners,
    write_comparison,
    write_report,
)
from ssdfl.report.bounds import STATEMENTS
from ssdfl.report.figures import COLOURS
from ssdfl.report.formats import latex_text
from ssdfl.report.network_data import network_data
from ssdfl.report.page import page
from ssdfl.report.page import to_json as page_json
from ssdfl.report.ranking import is_reference, rankable
from ssdfl.report.run_data import metrics_data, run_data, series_data
from ssdfl.report.series import curve
from ssdfl.report.tables import cost_table
from ssdfl.report.winners import verdict

HALF = Goal(target=0.5)
AVERAGED = Goal(target=0.6, reading="average_model_score")


def rows_of(method, seed, accuracies):
    return [
        {
            "method": method,
            "seed": seed,
            "cycle": cycle,
            "score": accuracy,
            "score_worst": accuracy - 0.1,
            "transmissions": 10 * cycle,
            "sent_bytes": 1_000_000 * cycle,
            "time_s": 0.5 * cycle,
            "consensus_distance": 1 / cycle,
        }
        for cycle, accuracy in enumerate(accuracies, start=1)
    ]


def cells(summary):
    """A summary as a line of the table of results."""
    return summary_table([summary], HALF).rows[0]


def with_cost(summary, **to_target):
    """A summary that took something else to the target."""
    return replace(summary, to_target={**summary.to_target, **to_target})


class FakeFolder(RunFolder):
    """A run folder whose records are given."""

    def __init__(self, experiment, rows, path=Path("nowhere")):
        super().__init__(path)
        object.__setattr__(self, "fake", (experiment, rows))

    def experiment(self):
        return self.fake[0]

    def all_rows(self):
        return self.fake[1]


@pytest.fixture
def folder():
    experiment = load_experiment(
        None, ["methods=['ssdfl', 'pdfl', 'central']", "evaluate.target_accuracy=0.5", "cycles=3"]
    )
    rows = [
        *rows_of("ssdfl", 0, [0.2, 0.6, 0.8]),
        *rows_of("ssdfl", 1, [0.5, 0.6, 0.7]),
        *rows_of("pdfl", 0, [0.2, math.nan, 0.5]),
        *rows_of("pdfl", 1, [0.2, math.nan, 0.4]),
        *rows_of("central", 0, [0.9, 0.9, 0.9]),
        *rows_of("central", 1, [0.9, 0.9, 0.9]),
    ]
    return FakeFolder(experiment, rows)


def test_summaries_by_hand(folder):
    ours, periodic, _ = summarise(folder)
    assert ours.score == pytest.approx(0.75)
    assert ours.score_std == pytest.approx(0.05)
    assert ours.score_worst == pytest.approx(0.65)
    assert (ours.cycles_to_target, ours.bytes_to_target, ours.seconds_to_target) == (
        1.5,
        1_500_000,
        0.75,
    )
    assert (periodic.seeds_at_target, periodic.seeds) == (1, 2)
    assert periodic.cycles_to_target == 3
    assert cells(periodic) == [
        "pdfl",
        "45.0 ±5.0",
        "35.0",
        "3 (1/2)",
        "3 (1/2)",
        "1.5 (1/2)",
        "3",
        "1.5",
    ]
    assert len(summary_table([ours], HALF).headers) == len(cells(ours))


def test_a_target_that_nobody_reaches(folder):
    experiment = load_experiment(
        None, ["methods=['pdfl']", "evaluate.target_accuracy=0.99", "cycles=3"]
    )
    (summary,) = summarise(FakeFolder(experiment, folder.all_rows()))
    assert summary.cycles_to_target is None
    assert cells(summary)[3] == "–"
    assert "No method reached 99 %" in verdict([summary], Goal(target=0.99))


def test_the_headline_leaves_the_reference_out(folder):
    assert headline([RunResults(folder.experiment(), folder.all_rows())], HALF) == (
        "Best final accuracy: ssdfl, 75.0 %, 30.0 points ahead of pdfl. "
        "Soonest at 50 %: ssdfl by cycles (1.5), bytes (1.5 MB) and simulated seconds (0.75 s). "
        "The reference central is not ranked."
    )


def test_margins_say_how_sure_a_win_is(folder):
    ours, periodic, _ = summarise(folder)
    close = replace(with_cost(ours, cycle=3.0), method="sdfl", score=ours.score - 0.01)
    best, cycles, megabytes, _ = winners([ours, close, periodic], HALF)
    assert best.margin == "1.0 points ahead of sdfl, less than the spread over seeds"
    level = replace(ours, method="sdfl")
    assert winners([ours, level], HALF)[0].margin == "level with sdfl"
    assert cycles.margin == "sdfl takes 2.00 times as many"
    assert (megabytes.method, megabytes.margin) == (
        "ssdfl and sdfl",
        "no other method reached it with every seed",
    )
    assert winners([ours, periodic], HALF)[1].margin == "no other method reached it with every seed"
    assert winners([ours], HALF)[0].margin == ""
    assert winners([], HALF) == []


def test_all_who_are_level_are_named(folder):
    ours, *_ = summarise(folder)
    field = [replace(ours, method=name) for name in ("ssdfl", "sdfl", "pdfl")]
    best, cycles, *_ = winners(field, HALF)
    assert best.margin == "level with sdfl and pdfl"
    assert (cycles.method, cycles.margin) == ("ssdfl, sdfl and pdfl", "")
    field[2] = with_cost(field[2], sent_bytes=1_600_000)
    assert verdict(field, HALF).endswith(
        "Soonest at 50 %: ssdfl, sdfl and pdfl by cycles (1.5) and simulated seconds (0.75 s), "
        "ssdfl and sdfl by bytes (1.5 MB)."
    )


@pytest.mark.parametrize(("points", "level"), [(0.04, True), (0.06, False)])
def test_accuracies_less_than_a_twentieth_of_a_point_apart_are_level(points, level, folder):
    ours, *_ = summarise(folder)
    near = replace(ours, method="sdfl", score=ours.score - points / 100)
    assert winners([ours, near], HALF)[0].margin.startswith("level with sdfl") == level


@pytest.mark.parametrize(("factor", "names"), [(1.004, "ssdfl and sdfl"), (1.006, "ssdfl")])
def test_costs_within_half_a_percent_are_level(factor, names, folder):
    ours, *_ = summarise(folder)
    near = replace(with_cost(ours, sent_bytes=factor * ours.to_target["sent_bytes"]), method="sdfl")
    sent = next(won for won in winners([ours, near], HALF) if won.noun == "bytes")
    assert sent.method == names


def test_one_seed_is_no_certainty(folder):
    ours, periodic, _ = (replace(summary, seeds=1, score_std=0.0) for summary in summarise(folder))
    assert (
        winners([ours, periodic], HALF)[0].margin == "30.0 points ahead of pdfl, of one seed only"
    )


def test_what_costs_nothing_is_ahead_of_what_costs_something(folder):
    ours, *_ = summarise(folder)
    free = replace(with_cost(ours, sent_bytes=0.0, cycle=2000.0), method="central")
    _, cycles, sent, _ = winners([ours, free], HALF)
    assert (sent.method, sent.value, sent.margin) == ("central", "0 B", "ssdfl takes 1.5 MB")
    assert (cycles.value, cycles.margin) == ("1.5", "central takes 1,333.33 times as many")
    assert winners([free], HALF)[1].value == "2,000"


def test_small_costs_keep_their_digits(folder):
    ours, *_ = summarise(folder)
    small = replace(
        with_cost(ours, sent_bytes=40_000.0),
        totals={"cycle": 3, "sent_bytes": 41_234.0, "time_s": 0.00123},
    )
    assert cells(small)[4:] == ["0.04", "0.75", "0.0412", "0.00123"]
    assert winners([small], HALF)[2].value == "40 kB"


def with_real_seconds(rows, factor=2.0):
    return [{**row, "real_s": factor * row["time_s"]} for row in rows]


def test_real_seconds_stand_beside_simulated_ones(folder):
    real = FakeFolder(folder.experiment(), with_real_seconds(folder.all_rows()))
    ours, *_ = summaries = summarise(real)
    assert (ours.seconds_to_target, ours.to_target["real_s"]) == (0.75, 1.5)
    assert (ours.time_s, ours.totals["real_s"]) == (1.5, 3.0)
    assert (ours.flat()["seconds_to_target"], ours.flat()["real_s_to_target"]) == (0.75, 1.5)
    headers, rows = summary_table(summaries, HALF)
    assert headers[5:] == ["sim. s to 50%", "real s to 50%", "MB", "sim. s", "real s"]
    assert rows[0][5:] == ["0.75", "1.5", "3", "1.5", "3"]
    assert cost_table(summaries).headers[-2:] == ["real s", "real s a cycle"]
    assert "real seconds (1.5 s)" in headline(
        [RunResults(real.experiment(), real.all_rows())], HALF
    )
    figure = plot_curves(real.all_rows(), "score")
    assert [axes.get_xlabel() for axes in figure.axes][-2:] == ["simulated seconds", "real seconds"]


def test_nothing_is_said_of_real_seconds_that_nobody_measured(folder):
    rows = with_real_seconds(folder.all_rows(), factor=math.nan)
    unmeasured = FakeFolder(folder.experiment(), rows)
    assert summarise(unmeasured) == summarise(folder)
    assert "real_s" not in summarise(unmeasured)[0].flat()
    assert "real" not in " ".join(summary_table(summarise(unmeasured), HALF).headers)
    assert "real_s" not in json.dumps(series_data(rows, ("ssdfl", "pdfl", "central")))
    assert "real_s" not in metrics_data(rows, HALF)["costs"]


def test_simulated_and_real_runs_are_not_ranked_by_real_seconds(folder):
    ours, *_ = summarise(folder)
    real, *_ = summarise(FakeFolder(folder.experiment(), with_real_seconds(folder.all_rows())))
    rows = summary_table([real, ours], HALF).rows
    assert [row[6] for row in rows] == ["1.5", "–"]
    assert [winner.noun for winner in winners([real, replace(ours, method="sdfl")], HALF)] == [
        "",
        "cycles",
        "bytes",
        "simulated seconds",
    ]


def test_references_are_known_by_what_they_are_not_by_name():
    assert [
        is_reference(name) for name in ("central", "central+atc", "ssdfl", "not_here:method")
    ] == [
        True,
        True,
        False,
        False,
    ]
    runs = [
        results_of(
            ("ssdfl", 0, [0.5] * 4),
            ("central", 0, [0.9] * 4),
            ("central+atc", 0, [0.9] * 4),
            settings=(*UNFINISHED[:2], "methods=['ssdfl', 'central', 'central+atc']", "seeds=[0]"),
        )
    ]
    assert headline(runs, HALF).endswith("The references central and central+atc are not ranked.")


UNFINISHED = (
    "cycles=4",
    "evaluate.target_accuracy=0.5",
    "methods=['ssdfl', 'sdfl', 'pdfl', 'central']",
    "seeds=[0, 1]",
)


def results_of(*runs, settings=UNFINISHED, name=""):
    return RunResults(
        load_experiment(None, settings), [row for run in runs for row in rows_of(*run)], name
    )


def test_only_whole_runs_of_shared_seeds_are_rankable():
    results = results_of(
        ("ssdfl", 0, [0.5, 0.6, 0.7, 0.8]),
        ("ssdfl", 1, [0.1, 0.1, 0.1, 0.1]),
        ("sdfl", 0, [0.5, 0.6, 0.7, 0.7]),
        ("sdfl", 1, [0.9, 0.9]),
        ("pdfl", 0, [0.99]),
        ("central", 0, [0.9]),
    )
    assert [(one.method, one.seeds, one.score) for one in rankable([results], HALF)] == [
        ("ssdfl", 1, 0.8),
        ("sdfl", 1, 0.7),
    ]
    assert headline([results], HALF) == (
        "Best final accuracy: ssdfl, 80.0 %, 10.0 points ahead of sdfl, of one seed only. "
        "Soonest at 50 %: ssdfl and sdfl by cycles (1), bytes (1 MB) "
        "and simulated seconds (0.5 s). "
        "The reference central is not ranked. Unfinished: 16 of 32 cycles are recorded. "
        "Only complete runs are ranked, on the seeds that every ranked method finished."
    )
    lines = results.summaries(HALF)
    assert [cells(one)[0] for one in lines] == [
        "ssdfl",
        "sdfl (1 of 2 seeds)",
        "pdfl (after cycle 1)",
        "central (after cycle 1)",
    ]
    assert {row[5] for row in cost_table(lines).rows} == {"1.00"}  # a cycle costs all the same


def test_whole_runs_of_different_seeds_are_not_ranked():
    results = results_of(("ssdfl", 0, [0.5] * 4), ("sdfl", 1, [0.9] * 4), ("sdfl", 0, [0.1]))
    assert headline([results], HALF) == (
        "So far, 1 of 2 seeds: ssdfl 50.0 %, sdfl 90.0 %. Unfinished: 9 of 32 cycles are recorded."
    )


def test_what_has_no_whole_run_is_told_so_far():
    results = results_of(
        ("ssdfl", 0, [0.2, 0.3, math.nan]), ("ssdfl", 1, [0.4]), ("sdfl", 0, [0.5, 0.6])
    )
    assert winners(rankable([results], HALF), HALF) == []
    assert headline([results], HALF) == (
        "So far, after cycle 1: ssdfl 30.0 %; after cycle 2: sdfl 60.0 %. "
        "Unfinished: 6 of 32 cycles are recorded."
    )
    assert headline([results_of()], HALF).startswith("There is nothing to rank yet.")


def test_the_reference_is_ranked_only_where_nobody_else_is():
    alone = results_of(
        ("central", 0, [0.9] * 4), settings=(*UNFINISHED[:2], "methods=['central']", "seeds=[0]")
    )
    assert headline([alone], HALF).startswith("Best final accuracy: central, 90.0 %.")
    assert "not ranked" not in headline([alone], HALF)
    both = [replace(alone, name="a"), results_of(("ssdfl", 0, [0.5] * 4), name="b")]
    assert [one.method for one in rankable(both, HALF)] == ["ssdfl in b"]
    assert "The reference central is not ranked. b is unfinished: 4 of 32" in headline(both, HALF)


def averaged_only(rows):
    """Records of a run that tested only the mean model, which is 0.1 better than its devices."""
    nothing = {"score": math.nan, "score_worst": math.nan}
    return [{**row, "average_model_score": row["score"] + 0.1, **nothing} for row in rows]


def test_a_run_that_tested_the_mean_model_only_is_ranked_by_it():
    results = results_of(("ssdfl", 0, [0.4, 0.5, 0.6, 0.7]), ("sdfl", 0, [0.1, math.nan, 0.3, 0.5]))
    averaged = replace(results, rows=averaged_only(results.rows))
    ours, _ = summaries = rankable([averaged], AVERAGED)
    assert (ours.score, ours.cycles_to_target) == (pytest.approx(0.8), 2)
    assert summary_table(summaries, AVERAGED).headers[:3] == [
        "method",
        "averaged model's accuracy %",
        "cycles to 60%",
    ]
    assert ours.flat()["score_worst"] is None
    assert ours.flat()["reading"] == "average_model_score"
    said = headline([averaged], AVERAGED)
    assert said.startswith("Best final averaged model's accuracy: ssdfl, 80.0 %, 20.0 points ahead")
    why = "Scores are those of averaged models: single devices were not tested"
    assert f"{why} (evaluate.models = mean)." in said


def test_runs_are_compared_by_an_accuracy_that_all_have():
    both_kinds = results_of(("ssdfl", 0, [0.4, 0.5, 0.6, 0.7]), name="a")
    rows = [{**row, "average_model_score": 0.9} for row in both_kinds.rows]
    both_kinds = replace(both_kinds, rows=rows)
    averaged = replace(both_kinds, rows=averaged_only(both_kinds.rows), name="b")
    assert [one.score for one in rankable([both_kinds], Goal(target=0.6))] == [0.7]
    compared = rankable([both_kinds, averaged], AVERAGED)
    assert [one.score for one in compared] == pytest.approx([0.9, 0.8])
    assert "were not tested in b (evaluate" in headline([both_kinds, averaged], AVERAGED)


def test_a_page_of_a_run_that_tested_the_mean_model_only(tmp_path):
    settings = [
        "evaluate.models=mean",
        "seeds=[0]",
        "cycles=2",
        "data.name=digits",
        "model.name=logreg",
    ]
    settings += ["methods=['pdfl']", "evaluate.samples=50"]
    folder = run_experiment(load_experiment(None, settings), tmp_path / "run")
    text = write_report(folder).read_text(encoding="utf-8")
    assert "single devices were not tested (evaluate.models = mean)" in text
    assert "averaged model&#x27;s accuracy %" in text
    data = data_of(text)
    assert data["reading"] == data["drawn_first"][0] == "average_model_score"
    assert data["seeds"][0]["scores"] == {}
    assert len(data["series"][0]["curves"]["average_model_score"]["mean"]) > 0


def test_a_curve_of_a_run_that_goes_on_takes_the_seeds_there_are():
    rows = [*rows_of("a", 0, [0.2, 0.4, 0.6]), *rows_of("a", 1, [0.4])]
    found = curve(rows, "score")
    assert found.mean == pytest.approx([0.3, 0.4, 0.6])
    assert found.low == pytest.approx([0.2, 0.4, 0.6])
    assert found.costs["sent_bytes"] == pytest.approx([1e6, 2e6, 3e6])


def test_curves_have_a_line_and_a_band_per_method(folder):
    figure = plot_curves(folder.all_rows(), "score")
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "cycles",
        "megabytes sent",
        "simulated seconds",
    ]
    cycles, megabytes, _ = figure.axes
    assert cycles.lines[0].get_ydata() == pytest.approx([0.35, 0.6, 0.75])
    assert megabytes.lines[0].get_xdata() == pytest.approx([1, 2, 3])
    assert cycles.lines[1].get_xdata() == pytest.approx(
        [1, 3]
    )  # a cycle without a test is left out
    assert len(cycles.lines) == len(cycles.collections) == 3


def test_long_and_odd_names_are_drawn_as_they_are(tmp_path):
    network = make_network(3, [(0, 1), (1, 2)], names=["Zürich", "a$^$", "c"])
    figure = plot_network(network)
    assert [text.get_text() for text in figure.axes[0].texts] == ["Zürich", "a$^$", "c"]
    save(figure, tmp_path / "a.png")


def test_devices_with_coordinates_stand_on_a_map_that_is_true_to_scale():
    network = load_network("gaia")
    figure = plot_network(network)
    (axes,) = figure.axes
    south, north = axes.get_ylim()
    assert len(axes.patches) > 5  # the continents
    assert axes.get_aspect() == pytest.approx(1 / np.cos(np.radians((south + north) / 2)))
    (west, south), (east, north) = network.positions.min(axis=0), network.positions.max(axis=0)
    assert axes.get_xlim()[0] < west < east < axes.get_xlim()[1]
    assert axes.get_ylim()[0] < south < north < axes.get_ylim()[1]


def test_maps_are_as_wide_as_a_page_and_no_higher_than_wide():
    cities = load_network("gaia")
    wide = plot_network(cities).get_size_inches()
    assert wide[0] == 9.2
    assert wide[1] < 9.2
    along_a_meridian = replace(cities, positions=cities.positions * [0.01, 1.0])
    assert plot_network(along_a_meridian).get_size_inches().tolist() == [9.2, 9.2]


@pytest.mark.parametrize(
    "spec", ["sites:sites=4,size=5", "er:n=70,p=0.1", "complete:n=1", "rgeo:n=10"]
)
def test_networks_are_drawn(spec, tmp_path):
    network = load_network(spec)
    clusters = spectral_bisection(network, min(4, network.num_devices))
    figure = plot_network(network, clusters)
    save(figure, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 20)}
    for place in range(len(clusters)):
        wanted = tuple(bytes.fromhex(COLOURS[place][1:]))
        assert wanted in colours


SETTINGS = (
    "name=small",
    "cycles=2",
    "data.name=helpers:tiny_data",
    "data.labels_per_device=2",
    "network.spec=barbell:size=3",
    "clusters.number=2",
    "methods=['ssdfl', 'pdfl']",
)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    return run_experiment(
        load_experiment(None, SETTINGS), tmp_path_factory.mktemp("runs") / "small"
    )


def test_a_report_is_one_file_that_holds_everything(small_run):
    path = write_report(small_run)
    page = without_plotly(path.read_text())
    assert path.stat().st_size < 8e6
    assert page.count("data:image/png;base64,") == 3  # for readers who allow no scripts
    assert not re.search(r"(src|href)=[\"']?(https?:|/|\.)|fetch\(", page)
    assert "connect-src 'none'" in page
    for summary in summarise(small_run):
        for text in cells(summary):
            assert f"<td>{text}</td>" in page
    assert "barbell:size=3" in page
    assert f"ssdfl run {small_run.path}/experiment.toml" in page
    for name, version in small_run.versions()[0].items():
        assert f"<td>{name}</td><td>{version}</td>" in page
    assert "Add --set evaluate.gaps=true" in page
    assert {path.name for path in (small_run.path / "figures").iterdir()} == {
        "network.png",
        "accuracy.png",
        "consensus.png",
    }


def test_the_pages_numbers_are_the_records(small_run):
    data = data_of(write_report(small_run).read_text())
    rows = small_run.all_rows()
    assert [one["method"] for one in data["series"]] == ["ssdfl", "pdfl"]
    for one in data["series"]:
        for quantity in ("score", "loss", "consensus_distance"):
            curve = one["curves"][quantity]
            assert curve["cycle"] == [1, 2]
            for place, cycle in enumerate(curve["cycle"]):
                of_seeds = [r for r in rows if (r["method"], r["cycle"]) == (one["method"], cycle)]
                values = [r[quantity] for r in of_seeds]
                assert len(values) == 2
                for name, value in (
                    ("mean", sum(values) / 2),
                    ("low", min(values)),
                    ("high", max(values)),
                ):
                    assert curve[name][place] == pytest.approx(value, rel=1e-6)
                for cost in ("transmissions", "sent_bytes", "time_s"):
                    assert curve[cost][place] == pytest.approx(
                        sum(r[cost] for r in of_seeds) / 2, rel=1e-6
                    )
    assert [instance["seed"] for instance in data["seeds"]] == [0, 1]
    for instance in data["seeds"]:
        assert [one["labels"] for one in instance["devices"]] == [
            one["labels"]
            for one in json.loads(
                (small_run.seed_folder(instance["seed"]) / "devices.json").read_text()
            )
        ]
        assert list(instance["scores"]) == ["ssdfl", "pdfl"]
        for method, found in instance["scores"].items():
            last = small_run.read_rows(instance["seed"], method)[-1]
            assert found["cycles"][-1] == last["cycle"]
            assert found["devices"][-1] == pytest.approx(last["device_score"], abs=1e-4)


def test_a_run_that_is_not_finished_says_so(small_run, tmp_path):
    experiment = small_run.experiment()
    rows = [row for row in small_run.all_rows() if row["method"] == "ssdfl"]
    page = write_report(FakeFolder(experiment, rows, small_run.path)).read_text()
    assert "Unfinished: 4 of 8 cycles are recorded." in page
    odd = tmp_path / "my run"
    go_on = f"ssdfl run '{odd}/experiment.toml' --resume --out '{odd}'"
    with pytest.raises(
        InputError, match=re.escape(f"a run that has tested something. Continue with: {go_on}")
    ):
        write_report(FakeFolder(experiment, [], odd))
    with pytest.raises(InputError, match="a folder that ssdfl run made"):
        write_report(RunFolder(tmp_path))


def test_a_large_run_stays_small_on_the_page(tmp_path):
    experiment = load_experiment(None, ["network.spec=ws:n=1000,k=6,p=0.1", "seeds=[0, 1, 2]"])
    network = load_network(experiment.network.spec)
    for seed in experiment.seeds:
        (tmp_path / f"seed-{seed}").mkdir()
        (tmp_path / f"seed-{seed}" / "network.json").write_text(to_json(network))
        write_plan(plan_clusters(network, 2), tmp_path / f"seed-{seed}" / "plan.json")
    quantities = ("average_model_score", "loss", "effective_gradient")
    rows = [
        {**row, **dict.fromkeys(quantities, 0.123456789), "device_score": [0.123456789] * 1000}
        for method in experiment.methods
        for seed in experiment.seeds
        for row in rows_of(method, seed, [0.123456789] * 1200)
    ]
    data = run_data(RunFolder(tmp_path), experiment, rows)
    assert len(page_json(data)) < 2e6
    assert [one["seed"] for one in data["seeds"]] == [0]
    assert data["left_out"] == 2
    assert data["seeds"][0]["scores"]["ssdfl"]["cycles"][-1] == 1200
    assert data["series"][0]["curves"]["loss"]["cycle"][-1] == 1200


def test_seeds_that_have_not_begun_are_not_left_out(small_run):
    experiment = small_run.experiment().model_copy(update={"seeds": (0, 1, 2)})
    data = run_data(small_run, experiment, small_run.all_rows())
    assert ([one["seed"] for one in data["seeds"]], data["left_out"]) == ([0, 1], 0)


def test_a_network_with_many_links_counts_them_all():
    data = network_data(load_network("complete:n=300"), ())
    assert len(data["links"]) <= 20_000 < data["num_links"] == 300 * 299 // 2
    assert data["degrees"] == [299] * 300


def test_odd_names_do_no_harm(small_run, tmp_path):
    names = ["</script><script>alert(1)</script>", "$body", "a$^$", "<i>", "'\"", "&amp;"]
    links = load_network("barbell:size=3").links.tolist()
    spec = str(tmp_path / "</script>$^$.json")
    experiment = small_run.experiment()
    section = experiment.network.model_copy(update={"spec": spec})
    experiment = experiment.model_copy(update={"network": section})
    for seed in experiment.seeds:
        (tmp_path / f"seed-{seed}").mkdir()
        (tmp_path / f"seed-{seed}" / "network.json").write_text(
            to_json(make_network(6, links, names=names))
        )
        write_plan(small_run.plan(seed), tmp_path / f"seed-{seed}" / "plan.json")
    page = write_report(FakeFolder(experiment, small_run.all_rows(), tmp_path)).read_text()
    assert data_of(page)["seeds"][0]["names"] == names
    assert without_plotly(page).count("</script>") == 2
    assert "&lt;/script&gt;$^$.json" in page


def test_bounds_by_clusters_have_a_panel_of_each_name():
    curves = {2: np.array([4.0, 1.0, 2.0]), 5: np.full(3, math.inf)}
    figure = plot_bounds_by_clusters({"a": curves, "b": curves}, "both")
    assert [axes.get_title() for axes in figure.axes] == ["a", "b"]
    shown, nothing = figure.axes[1].get_lines()
    assert shown.get_xydata().tolist() == [[1, 1.0], [2, 0.25], [3, 0.5]]
    assert shown.get_label() == "τ_a = 2, least at S = 2"
    assert nothing.get_label() == "τ_a = 5: says nothing"


def test_pages_hold_plotly_only_if_they_have_charts():
    without = page("title", "body", {}, ())
    assert "Plotly" not in without
    assert len(page("title", "body", {}, (), charts=True)) > len(without) + 100_000


def test_titles_are_drawn_as_they_are(tmp_path):
    save(plot_bounds_by_clusters({"a": {1: np.array([1.0, 2.0])}}, "a$^$"), tmp_path / "a.png")
    rows = [BoundRow(0, "ssdfl", 1, statement, 0, 0.0, math.inf, 1.0) for statement in STATEMENTS]
    figure = plot_measured_bounds(rows, "a$^$")
    save(figure, tmp_path / "b.png")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["measured (is 0)", "published (says nothing)", "rigorous"]


def test_a_mesh_is_told_that_it_has_no_bounds(small_run):
    experiment = small_run.experiment()
    experiment = experiment.model_copy(
        update={"engine": experiment.engine.model_copy(update={"name": "mesh"})}
    )
    folder = FakeFolder(experiment, small_run.all_rows(), small_run.path)
    assert (
        "No device of a mesh sees the quantities that the bounds need."
        in write_report(folder).read_text()
    )
    with pytest.raises(InputError, match="engine.name = mesh: expected a run that recorded gaps"):
        list(compare_bounds(folder))


def test_a_report_for_latex_has_tables_and_figures_as_pdf(small_run):
    write_report(small_run, latex=True)
    folder, goal = small_run.path, small_run.goal()
    latex = (folder / "tables" / "results.tex").read_text(encoding="utf-8")
    for row in summary_table(summarise(small_run), goal).rows:
        assert " & ".join(map(latex_text, row)) in latex
    with (folder / "tables" / "results.csv").open(newline="", encoding="utf-8") as file:
        found = {row["method"]: float(row["score"]) for row in csv.DictReader(file)}
    assert found == {one.method: one.score for one in summarise(small_run)}
    assert "MB a cycle" in (folder / "tables" / "costs.md").read_text(encoding="utf-8")
    for name in ("network", "accuracy", "consensus"):
        assert (folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_a_comparison_for_latex_names_the_runs(small_run, tmp_path):
    other = FakeFolder(small_run.experiment(), small_run.all_rows(), tmp_path / "other")
    write_comparison([small_run, other], tmp_path / "both.html", latex=True)
    lines = (tmp_path / "both.tex").read_text(encoding="utf-8").splitlines()
    assert [line.split(" & ")[:2] for line in lines if " & " in line] == [
        ["run", "method"],
        *([run, method] for run in ("small", "other") for method in ("ssdfl", "pdfl")),
    ]
    assert (tmp_path / "both.csv").read_text(encoding="utf-8").startswith("run,method,seeds,")
    assert (tmp_path / "both.pdf").read_bytes().startswith(b"%PDF")


def test_an_unfinished_run_is_named_in_a_comparison(small_run, tmp_path):
    rows = [row for row in small_run.all_rows() if (row["method"], row["seed"]) != ("pdfl", 1)]
    half = FakeFolder(small_run.experiment(), rows, tmp_path / "half")
    write_comparison([small_run, half], tmp_path / "both.html")
    page = without_plotly((tmp_path / "both.html").read_text())
    assert "half is unfinished: 6 of 8 cycles are recorded. Only complete runs are ranked" in page
    assert "small is unfinished" not in page
    assert "<td>half</td><td>pdfl (1 of 2 seeds)</td>" in page
    assert "not ranked" not in page
    assert "function drawNetwork" not in page


def test_a_comparison_names_what_differs(small_run, tmp_path):
    other = run_experiment(
        load_experiment(None, [*SETTINGS, "schedule.tau_a=2", "methods=['ssdfl']", "seeds=[0]"]),
        tmp_path / "other",
    )
    write_comparison([small_run, other], tmp_path / "both.html")
    page = (tmp_path / "both.html").read_text()
    data = data_of(page)
    assert [(one["run"], one["method"]) for one in data["series"]] == [
        ("small", "ssdfl"),
        ("small", "pdfl"),
        ("other", "ssdfl"),
    ]
    assert "<td>schedule.tau_a</td><td>5</td><td>2</td>" in page
    assert "data.name" not in without_plotly(page)
    for run in (small_run, other):
        for summary in summarise(run):
            row = "".join(f"<td>{text}</td>" for text in [run.path.name, *cells(summary)])
            assert row in page
    with pytest.raises(InputError, match="at least two different folders"):
        write_comparison([small_run, small_run], tmp_path / "none.html")
