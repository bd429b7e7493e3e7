"""The paper's tables and figures as data."""

import pytest

from ssdfl.errors import InputError
from ssdfl.experiments.paper import artefact_rows
from ssdfl.learning import load_data
from ssdfl.preparation import prepare
from ssdfl.preparation.planning import measure_devices
from ssdfl.records.artefacts import artefact_names, load_artefact, paper_folder
from ssdfl.records.cache import run_key, single_runs, whole_rows
from ssdfl.records.folder import RunFolder
from ssdfl.records.scores import READINGS

NAMES = artefact_names(paper_folder())
KEPT_RUNS = [RunFolder(path) for path in sorted((paper_folder() / "runs").iterdir())]


def test_all_artefacts_of_the_paper_are_there():
    tables = {f"{data}-taur{rest}" for data in ("fmnist", "cifar10") for rest in ("", "1", "-sgd")}
    figures = {
        f"{data}-{what}{rest}"
        for data in ("fmnist", "cifar10")
        for what in ("taua", "size", "architecture", "links", "bound")
        for rest in ("", "-sgd")
    }
    assert set(NAMES) == tables | figures | {"beyond-costs", "beyond-tables"}


@pytest.mark.parametrize("name", NAMES)
def test_an_artefact_is_whole(name):
    for profile in ("smoke", "small", "medium", "larger", "drawn", "averaged", "plain", "paper"):
        artefact = load_artefact(name, profile)
        cases = {(case.panel, case.point, case.series) for case in artefact.cases}
        assert len(cases) == len(artefact.panels) * len(artefact.points) * len(artefact.series)
        thresholds = {(panel.name, f"{t:g}") for panel in artefact.panels for t in panel.thresholds}
        for row in artefact.expected:
            assert (row["panel"], row["point"], row["series"]) in cases
            assert not row["threshold"] or (row["panel"], row["threshold"]) in thresholds
            assert not row["value"] or float(row["value"]) > 0
    if artefact.kind == "table":
        assert len(artefact.expected) == 5 * 4 * 4
    experiment = artefact.cases[0].experiment
    if not name.startswith("beyond"):
        assert experiment.cycles == 20
        assert experiment.data.name == artefact.name.split("-")[0]
    assert experiment.optimizers.kind == ("sgd" if name.endswith(("-sgd", "-taur1")) else "mixed")


def test_numbers_that_the_text_quotes_are_those_of_the_tables():
    told = {
        (name, row["panel"], row["series"], row["threshold"]): row["value"]
        for name in ("fmnist-taur", "cifar10-taur")
        for row in load_artefact(name).expected
    }
    assert told["fmnist-taur", "τ_r = 3, mild", "SSD-FL", "0.65"] == "6.56"
    assert told["fmnist-taur", "τ_r = 3, mild", "pDFL", "0.72"] == "13.80"
    assert told["fmnist-taur", "τ_r = 3, extreme", "pDFL", "0.4"] == "11.01"
    assert told["fmnist-taur", "τ_r = 3, extreme", "sDFL", "0.45"] == ""
    assert told["cifar10-taur", "τ_r = 3, mild", "sDFL", "0.48"] == "18.64"


def test_later_settings_win_and_methods_differ_in_nothing_else():
    artefact = load_artefact("fmnist-taur", "small", seeds=2)
    by_series = {}
    for case in artefact.cases:
        if case.panel == "τ_r = 5, extreme":
            by_series[case.series] = case.experiment
    one = by_series["SSD-FL"]
    assert (one.schedule.tau_a, one.schedule.tau_r, one.data.labels_per_device) == (1, 5, 1)
    assert one.data.name == "fmnist-half"
    assert one.seeds == (0, 1)
    for other in by_series.values():
        update = {"methods": one.methods, "clusters": one.clusters}
        assert other.model_copy(update=update) == one


def test_profiles_deviate_from_the_papers_rule_and_networks_only_as_stated():
    cases = {
        name: load_artefact("fmnist-size", name).cases
        for name in ("small", "averaged", "medium", "paper", "plain")
    }
    networks = {
        name: {case.point: case.experiment.network.spec for case in found}
        for name, found in cases.items()
    }
    rules = {
        name: {method.partition("+")[2] for case in found for method in case.experiment.methods}
        for name, found in cases.items()
    }
    stated = networks["small"]
    assert stated["10"] == "er:n=10,p=0.1"
    assert networks["averaged"] == stated
    assert networks["medium"] == networks["paper"] == stated | {"10": "er:n=10,p=0.5"}
    assert networks["plain"] == stated | {"10": "er:n=10,p=0.3"}
    after = {name: {"atc"} for name in ("medium", "paper", "plain")}
    assert rules == {"small": {""}, "averaged": {"cta"}} | after


def test_another_reading_has_the_same_runs_unless_they_do_not_test_it():
    def runs(profile, reading=None):
        return [
            run_key(one) for one in load_artefact("fmnist-links", profile, reading=reading).runs()
        ]

    devices, averaged = READINGS
    assert load_artefact("fmnist-links", "medium").reading == devices
    assert load_artefact("fmnist-links", "medium", reading=averaged).reading == averaged
    assert runs("medium", averaged) == runs("medium")
    assert runs("averaged", averaged) == runs("averaged")
    assert not set(runs("averaged", devices)) & set(runs("averaged"))
    tested = load_artefact("fmnist-links", "averaged", reading=devices).cases[0].experiment.evaluate
    assert tested.models == "all"
    with pytest.raises(InputError, match="--reading = best: expected one of score, average_model"):
        load_artefact("fmnist-links", "medium", reading="best")


def test_tables_have_both_readings_of_sdfl_and_the_weak_one_has_the_runs_of_pdfl():
    artefact = load_artefact("fmnist-taur")
    of_series = {
        name: [
            run_key(run)
            for case in artefact.cases
            if case.series == name
            for run in single_runs(case.experiment)
        ]
        for name in ("sDFL", "weak sDFL", "pDFL")
    }
    assert of_series["weak sDFL"] == of_series["pDFL"]
    assert not set(of_series["sDFL"]) & set(of_series["pDFL"])
    assert next(one.paper for one in artefact.series if one.name == "weak sDFL") == "sDFL"
    in_figure = [one.name for one in load_artefact("fmnist-size").series]
    assert in_figure == ["SSD-FL", "sDFL", "pDFL", "STC", "cSTC"]


def test_tables_by_cost_take_the_runs_of_the_tables():
    of_tables = {
        run_key(run)
        for name in ("fmnist-taur1", "fmnist-taur")
        for case in load_artefact(name, "medium").cases
        for run in single_runs(case.experiment)
    }
    cases = load_artefact("beyond-tables", "medium").cases
    for case in cases:
        keys = {run_key(run) for run in single_runs(case.experiment)}
        assert (keys <= of_tables) == (case.series != "SSD-FL, our formation")


def test_only_the_models_that_are_read_are_tested():
    tested = {
        of: load_artefact(*of).cases[0].experiment.evaluate.models
        for of in (
            ("fmnist-taur", "small"),
            ("fmnist-taur", "averaged"),
            ("fmnist-taur", "medium"),
            ("beyond-costs", "small"),
        )
    }
    assert list(tested.values()) == ["mean", "mean", "all", "all"]


@pytest.mark.parametrize(("dataset", "least"), [("fmnist", 5), ("cifar10", 3)])
def test_tables_have_enough_seeds(dataset, least):
    assert len(load_artefact(f"{dataset}-taur", "medium").cases[0].experiment.seeds) >= least


def test_runs_are_shared_between_artefacts():
    keys = [
        {run_key(one) for one in load_artefact(n).runs()} for n in ("fmnist-taua", "fmnist-taur1")
    ]
    assert len(keys[0] & keys[1]) == 5 * 2 * 3  # τ_a = τ_r = 1, hybrid


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table-9",), "artefact = table-9: expected one of"),
        (("fmnist-taur", "huge"), "--profile = huge"),
    ],
)
def test_unknown_names_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        load_artefact(*arguments)


def test_a_part_of_an_artefact_shares_the_runs_of_the_whole():
    whole = load_artefact("fmnist-architecture", "smoke")
    part = whole.part(["Comp", "SSD-FL"])
    assert [case.key for case in part.cases] == [
        ("mild", "Comp", "SSD-FL"),
        ("extreme", "Comp", "SSD-FL"),
    ]
    assert {run_key(one) for one in part.runs()} < {run_key(one) for one in whole.runs()}
    assert whole.part([]) == whole


def test_what_is_finished_is_the_first_seeds_of_each_case():
    whole = load_artefact("fmnist-architecture", "small", seeds=3)
    done = {
        ("ssdfl", "mild", "Comp"): (0, 1, 2),
        ("sdfl", "mild", "Comp"): (0, 2),
        ("pdfl", "extreme", "Comp"): (1, 2),
        ("ssdfl", "mild", "RNG"): (0,),
    }
    finished = {
        run_key(one)
        for case in whole.cases
        for one in single_runs(case.experiment)
        if one.seeds[0] in done.get((one.methods[0], case.panel, case.point), ())
    }
    held = whole.finished(lambda one: run_key(one) in finished)
    assert {case.key: case.experiment.seeds for case in held.cases} == {
        ("mild", "RNG", "SSD-FL"): (0,),
        ("mild", "Comp", "SSD-FL"): (0, 1, 2),
        ("mild", "Comp", "sDFL"): (0,),
    }
    assert [one.name for one in held.panels] == ["mild"]
    assert [one.name for one in held.points] == ["RNG", "Comp"]
    assert [one.name for one in held.series] == ["SSD-FL", "sDFL"]
    assert held.seeds == (0, 1, 2)
    assert not held.is_even
    assert whole.finished(lambda one: True).cases == whole.cases
    assert whole.finished(lambda one: False) is None


def test_runs_that_are_kept_are_found_again_and_complete():
    wanted = {
        run_key(one)
        for name in NAMES
        for profile in ("medium", "larger", "drawn", "averaged", "plain")
        for one in load_artefact(name, profile).runs()
    }
    for folder in KEPT_RUNS:
        experiment = folder.experiment()
        assert run_key(experiment) == folder.path.name
        assert folder.path.name in wanted
        assert len(whole_rows(experiment, folder)) == experiment.cycles


def test_the_bounds_of_a_figure_measure_each_task_once(monkeypatch, tmp_path):
    measured = []

    def counting(experiment, task, seed):
        measured.append(seed)
        return measure_devices(experiment, task, seed)

    monkeypatch.setattr("ssdfl.experiments.paper.measure_devices", counting)
    artefact = load_artefact("fmnist-bound", "smoke", seeds=2)
    rows = artefact_rows(artefact, tmp_path)
    assert len(artefact.cases) == 2 * 3 * 3  # skews, τ_a and scores
    assert sorted(measured) == [0, 0, 1, 1]  # skews
    for case in artefact.cases:
        plan = prepare(case.experiment, 1, load_data(case.experiment.data)).plan
        assert [row["score"] for row in rows[case.key][1]] == [one.score for one in plan.candidates]
