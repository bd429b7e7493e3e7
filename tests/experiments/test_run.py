"""Runs into folders: determinism, resumption, and what is left when something goes wrong."""

import dataclasses
import importlib.metadata
import json
import math
import os
import signal
import sys
import time

import networkx as nx
import numpy as np
import pyarrow.parquet as parquet
import pytest
from safetensors import safe_open
from scipy.sparse import csr_array

import ssdfl
import ssdfl.experiments.run as module
from forked import Forked
from ssdfl.clusters import Plan
from ssdfl.errors import InputError
from ssdfl.experiments import iterate_experiment, run_experiment
from ssdfl.learning import load_dataset
from ssdfl.methods import Step
from ssdfl.preparation import make_job, prepare
from ssdfl.records import Record, RunFolder, load_experiment
from ssdfl.records.bounds import BoundRow
from ssdfl.records.folder import newest_folder, next_free_folder
from ssdfl.records.tables import record_schema
from ssdfl.report import summarise, summary_table, write_report

SMALL = (
    "data.name=helpers:tiny_data",
    "data.labels_per_device=2",
    "network.spec=barbell:size=3",
    "clusters.number=2",
    "model.name=logreg",
    "cycles=4",
    "methods=['ssdfl', 'stc']",
)


def small(*changes):
    return load_experiment(None, [*SMALL, *changes])


def contents(folder):
    """Every file that a run leaves, as bytes."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_schema_is_the_record():
    assert record_schema().names == [field.name for field in dataclasses.fields(Record)]


def test_a_run_leaves_a_whole_folder(tmp_path):
    experiment = small("name=mine")
    folder = run_experiment(experiment, tmp_path / "run")
    assert folder.experiment() == experiment
    names = {str(path) for path in contents(tmp_path / "run")}
    assert names == {
        "experiment.toml",
        "metrics.parquet",
        "versions.json",
        "task.json",
        "run.lock",
        *(f"seed-{s}/{name}.json" for s in (0, 1) for name in ("network", "plan", "devices")),
        *(f"seed-{s}/{m}/metrics.parquet" for s in (0, 1) for m in ("ssdfl", "stc")),
        *(f"seed-{s}/{m}/checkpoint.safetensors" for s in (0, 1) for m in ("ssdfl", "stc")),
    }
    table = parquet.read_table(tmp_path / "run" / "metrics.parquet")
    assert table.num_rows == 2 * 2 * 4
    assert set(table.column("method").to_pylist()) == {"ssdfl", "stc"}
    devices = json.loads((tmp_path / "run" / "seed-0" / "devices.json").read_text())
    assert all(sum(count > 0 for count in device["labels"]) == 2 for device in devices)


def test_versions_are_noted_once_and_again_when_they_change(tmp_path):
    folder = run_experiment(small("cycles=1", "methods=['pdfl']"), tmp_path / "run")
    run_experiment(small("cycles=1", "methods=['pdfl']"), tmp_path / "run", resume=True)
    (noted,) = folder.versions()
    assert noted["ssdfl"] == ssdfl.__version__
    assert noted["torch"] == importlib.metadata.version("torch")
    folder.note_versions({"ssdfl": "another"})
    assert folder.versions() == [noted, {"ssdfl": "another"}]


def test_bounds_are_read_as_they_were_written(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.read_bounds() == []
    rows = [BoundRow(0, "ssdfl", 1, "Lemma 1", 2, 0.5, math.inf, 1.5)]
    folder.write_bounds(rows)
    assert folder.read_bounds() == rows


def test_the_same_experiment_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        run_experiment(small(), tmp_path / name)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_seeds_differ(tmp_path):
    folder = run_experiment(small(), tmp_path / "run")
    assert folder.read_rows(0, "ssdfl") != folder.read_rows(1, "ssdfl")


def test_a_seedless_spec_is_drawn_anew_for_every_seed(tmp_path):
    run_experiment(
        small("network.spec=er:n=8,p=0.3", "methods=['sdfl']", "cycles=1"), tmp_path / "a"
    )
    run_experiment(
        small("network.spec=er:n=8,p=0.3,seed=5", "methods=['sdfl']", "cycles=1"), tmp_path / "b"
    )
    networks = {
        (name, seed): (tmp_path / name / f"seed-{seed}" / "network.json").read_text()
        for name in "ab"
        for seed in (0, 1)
    }
    assert networks["a", 0] != networks["a", 1]
    assert networks["b", 0] == networks["b", 1]


@pytest.mark.parametrize("stop_after", range(1, 16, 3))
@pytest.mark.parametrize("save_interval_s", [0.0, 1e9])
def test_stopped_anywhere_and_resumed(tmp_path, monkeypatch, stop_after, save_interval_s):
    monkeypatch.setattr(module, "SAVE_INTERVAL_S", save_interval_s)
    experiment = small("faults.link_loss=0.2", "faults.device_loss=0.2")
    run_experiment(experiment, tmp_path / "whole")
    steps = iterate_experiment(experiment, tmp_path / "broken")
    for _ in range(stop_after):
        next(steps)
    steps.close()
    run_experiment(experiment, tmp_path / "broken", resume=True)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_two_runs_never_share_a_folder(tmp_path):
    """The second is refused, whether it begins or resumes, and the first goes on undisturbed."""
    run_experiment(small(), tmp_path / "whole")
    steps = iterate_experiment(small(), tmp_path / "run")
    next(steps)
    for resume in (False, True):
        with pytest.raises(
            InputError, match=rf"no other run writes to \(process {os.getpid()} on .* since "
        ):
            run_experiment(small(), tmp_path / "run", resume=resume)
    for _ in steps:
        pass
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_a_refused_run_leaves_no_folder(tmp_path):
    with pytest.raises(InputError, match="network"):
        run_experiment(small("network.spec=nowhere.csv"), tmp_path / "new" / "run")
    assert list(tmp_path.iterdir()) == []


def test_one_flipped_bit_stops_a_run(tmp_path):
    run_experiment(small(), tmp_path / "run")
    checkpoint = tmp_path / "run" / "seed-0" / "ssdfl" / "checkpoint.safetensors"
    content = bytearray(checkpoint.read_bytes())
    content[-100] ^= 1 << 6
    checkpoint.write_bytes(content)
    with pytest.raises(
        InputError, match="checkpoint.safetensors.*its checksum says that it is damaged"
    ):
        run_experiment(small(), tmp_path / "run", resume=True)


def test_another_methods_checkpoint_is_not_resumed(tmp_path):
    run_experiment(small(), tmp_path / "run")
    seed = tmp_path / "run" / "seed-0"
    (seed / "stc" / "checkpoint.safetensors").replace(seed / "ssdfl" / "checkpoint.safetensors")
    with pytest.raises(InputError, match="method in .* = stc: expected ssdfl"):
        run_experiment(small(), tmp_path / "run", resume=True)


def test_killed_and_resumed(tmp_path):
    """kill -9 in the middle of a method; the resumed run equals one that was left alone."""
    settings = [*SMALL, "methods=['ssdfl', 'pdfl']", "seeds=[0]", "cycles=150"]
    checkpoint = tmp_path / "broken" / "seed-0" / "ssdfl" / "checkpoint.safetensors"
    process = Forked("helpers:run_saving_often", [tmp_path / "broken", *settings])
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    with safe_open(checkpoint, framework="np") as file:
        assert 0 < json.loads(file.metadata()["ssdfl"])["step"] < 150 * 4
    experiment = load_experiment(None, settings)
    run_experiment(experiment, tmp_path / "broken", resume=True)
    run_experiment(experiment, tmp_path / "whole")
    for name in ("seed-0/ssdfl/metrics.parquet", "seed-0/pdfl/metrics.parquet", "metrics.parquet"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_resumption_counts_what_is_done(tmp_path):
    run_experiment(small(), tmp_path / "run")
    advances = list(iterate_experiment(small(), tmp_path / "run", resume=True))
    assert len(advances) == 16
    assert all(advance.record is None for advance in advances)


def test_methods_and_seeds_may_be_added(tmp_path):
    run_experiment(small("seeds=[0]"), tmp_path / "run")
    before = (tmp_path / "run" / "seed-0" / "ssdfl" / "metrics.parquet").stat().st_mtime_ns
    folder = run_experiment(small("methods=['ssdfl', 'pdfl']"), tmp_path / "run", resume=True)
    assert {(row["method"], row["seed"]) for row in folder.all_rows()} == {
        (method, seed) for method in ("ssdfl", "stc", "pdfl") for seed in (0, 1)
    }
    assert (tmp_path / "run" / "seed-0" / "ssdfl" / "metrics.parquet").stat().st_mtime_ns == before


def test_results_are_neither_overwritten_nor_mixed(tmp_path):
    run_experiment(small(), tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(InputError, match="a folder with no run in it"):
        run_experiment(small(), tmp_path / "run")
    with pytest.raises(
        InputError, match=r"training.learning_rate = 0.01: expected 0.05 as in the run to resume"
    ):
        run_experiment(small("training.learning_rate=0.01"), tmp_path / "run", resume=True)
    assert contents(tmp_path / "run") == before


def test_a_changed_network_file_is_not_mixed_in(tmp_path):
    path = tmp_path / "net.csv"
    path.write_text("source,target\na,b\nb,c\nc,d\n")
    experiment = small(f"network.spec={path}")
    steps = iterate_experiment(experiment, tmp_path / "run")
    next(steps)
    steps.close()
    path.write_text("source,target\na,b\nb,c\nc,d\na,d\n")
    with pytest.raises(InputError, match="network.json of seed 0 = changed"):
        run_experiment(experiment, tmp_path / "run", resume=True)


def test_a_method_whose_records_are_lost_is_run_again(tmp_path):
    folder = run_experiment(small(), tmp_path / "run")
    whole = contents(tmp_path / "run")
    (folder.method_folder(0, "ssdfl") / "metrics.parquet").unlink()
    run_experiment(small(), tmp_path / "run", resume=True)
    assert contents(tmp_path / "run") == whole


def dense_mixing(setting):
    return lambda t: Step(
        np.ones(setting.network.num_devices, dtype=bool), np.eye(setting.network.num_devices)
    )


def nothing(setting):
    return None


def no_steps(setting):
    return lambda t: None


def all_train(setting):
    return lambda t: Step(True, setting.all_links(t))


def counts(setting):
    return lambda t: Step(np.ones(setting.network.num_devices), setting.all_links(t))


def too_small(setting):
    return lambda t: Step(np.full(setting.network.num_devices, True), csr_array(np.eye(2)))


def one_sided(setting):
    W = np.roll(np.eye(setting.network.num_devices), 1, axis=0)
    return lambda t: Step(np.full(setting.network.num_devices, True), csr_array(W))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("nothing", "what METHOD returned = None: expected a schedule.*Return setting.cycle"),
        ("no_steps", "step 0 of METHOD = None: expected a Step"),
        ("all_train", r"step 0 of METHOD: train = True: expected a bool array of shape \(6,\)"),
        ("counts", r"step 0 of METHOD: train = ndarray of float64 \(6,\): expected a bool array"),
        (
            "dense_mixing",
            r"step 0 of METHOD: W = ndarray of float64 \(6, 6\): expected a csr_array of shape",
        ),
        (
            "too_small",
            r"step 0 of METHOD: W = csr_array of float64 \(2, 2\): .* shape \(6, 6\): symmetric",
        ),
        ("one_sided", "step 0 of METHOD: W: mixing matrix: largest .* = 1.0: expected 0"),
    ],
)
@pytest.mark.parametrize("fault", ["faults.link_loss=0.0", "faults.link_loss=0.5"])
def test_a_users_method_must_return_valid_steps(tmp_path, method, message, fault):
    name = f"{__name__}:{method}"
    with pytest.raises(InputError, match=message.replace("METHOD", name)):
        run_experiment(small(f"methods=['{name}']", fault), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_old_results_are_not_taken_for_new_ones(tmp_path):
    run_experiment(small("cycles=1"), tmp_path / "run")
    (tmp_path / "run" / "experiment.toml").unlink()
    for resume in (False, True):
        with pytest.raises(InputError, match="a folder with no run in it"):
            run_experiment(small("cycles=1"), tmp_path / "run", resume=resume)


def bad_mixing(setting):
    half = csr_array(0.5 * np.eye(setting.network.num_devices))
    return setting.cycle(intra=lambda t: half, inter=setting.all_links)


def test_a_users_method_must_mix_validly(tmp_path):
    with pytest.raises(InputError, match="sum of row 0 = 0.5"):
        run_experiment(small(f"methods=['{__name__}:bad_mixing']"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_divergence_leaves_nothing_partial(tmp_path):
    changes = ("model.name=mlp", "training.learning_rate=1e30", "cycles=40")
    with pytest.raises(InputError, match="diverged at step"):
        run_experiment(small(*changes), tmp_path / "run")
    assert (tmp_path / "run" / "experiment.toml").exists()
    assert not list((tmp_path / "run").rglob("*.tmp*"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("clusters.number=7", "clusters.number = 7: expected a number in \\[1, 6\\]"),
        ("data.labels_per_device=5", "data.labels_per_device = 5"),
        ("data.samples_per_device=1000", "data.samples_per_device = 1000: expected at most"),
        ("optimizers.devices=['sgd']", "optimizers.devices = 1: expected 6"),
        ("methods=['ssdffl']", "method = ssdffl"),
        ("model.name=nothing", "model.name = nothing"),
        ("network.spec=nowhere.csv", "network file = nowhere.csv"),
        ("data.name=mnist", "data.name = mnist"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(tmp_path, setting, message):
    with pytest.raises(InputError, match=message):
        run_experiment(small("optimizers.kind=momentum", setting), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_given_optimizers_and_fewer_samples(tmp_path):
    devices = ["sgd", "momentum:0.5", "proximal:0.01"] * 2
    run_experiment(
        small(
            f"optimizers.devices={devices}", "data.samples_per_device=10", "training.batch_size=5"
        ),
        tmp_path / "run",
    )
    facts = json.loads((tmp_path / "run" / "seed-1" / "devices.json").read_text())
    assert [device["optimizer"] for device in facts] == devices
    assert all(device["samples"] == sum(device["labels"]) == 10 for device in facts)


@pytest.mark.parametrize("partition", ["labels", "dirichlet", "iid"])
def test_partitions(tmp_path, partition):
    folder = run_experiment(small(f"data.partition={partition}", "cycles=1"), tmp_path / "run")
    assert len(folder.all_rows()) == 4


def test_plans_of_another_network_are_refused(tmp_path):
    (tmp_path / "plan.json").write_text(
        json.dumps(Plan(((0, 5), (1, 2, 3, 4)), "by hand").to_json())
    )
    with pytest.raises(InputError, match=r"1 device moved away from their cluster \(5\)"):
        run_experiment(small(f"clusters.plan={tmp_path / 'plan.json'}"), tmp_path / "run")
    with pytest.raises(InputError, match=r"1 device new \(6\)"):
        run_experiment(
            small(f"clusters.plan={tmp_path / 'plan.json'}", "network.spec=ring:n=7"),
            tmp_path / "run",
        )


def test_reference_engine_agrees(tmp_path):
    rows = {
        engine: run_experiment(small(f"engine.name={engine}"), tmp_path / engine).all_rows()
        for engine in ("local", "reference")
    }
    for fast, slow in zip(rows["local"], rows["reference"], strict=True):
        assert fast["loss"] == pytest.approx(slow["loss"], abs=1e-4)
        assert fast["sent_bytes"] == slow["sent_bytes"]


def test_damaged_metrics_and_folders(tmp_path):
    folder = run_experiment(small(), tmp_path / "run")
    (tmp_path / "run" / "seed-0" / "ssdfl" / "metrics.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="expected a whole file"):
        folder.all_rows()
    with pytest.raises(InputError, match="a folder that ssdfl run made"):
        RunFolder(tmp_path / "nowhere").experiment()


def test_names_of_folders(tmp_path):
    assert next_free_folder("a", tmp_path) == newest_folder("a", tmp_path) == tmp_path / "a"
    for name in ("a", "a-2"):
        (tmp_path / name).mkdir()
    assert next_free_folder("a", tmp_path) == tmp_path / "a-3"
    assert newest_folder("a", tmp_path) == tmp_path / "a-2"


FORMED = [setting for setting in SMALL if not setting.startswith("clusters.number")]


def test_clusters_are_formed_by_default_and_once(tmp_path):
    experiment = load_experiment(None, [*FORMED, "methods=['ssdfl']", "seeds=[0]", "cycles=1"])
    run_experiment(experiment, tmp_path / "r")
    plan = RunFolder(tmp_path / "r").plan(0)
    assert plan.score_name == "time"
    assert len(plan.candidates) == 6
    assert plan.settings["gradient_bound"] > 0
    assert plan.settings["message_bytes"] == 4 * (16 * 4 + 4)
    changed = dataclasses.replace(plan, clusters=((0, 1, 2), (3, 4, 5)))
    (tmp_path / "r" / "seed-0" / "plan.json").write_text(
        json.dumps(changed.to_json(), indent=1) + "\n"
    )
    run_experiment(experiment, tmp_path / "r", resume=True)
    assert RunFolder(tmp_path / "r").plan(0).clusters == ((0, 1, 2), (3, 4, 5))


def test_a_method_with_other_messages_has_a_plan_of_its_own(tmp_path):
    """Formed for the bytes its rule really sends, used by its schedule, kept on resumption."""
    methods = "methods=['ssdfl', 'sdfl+choco', 'ssdfl+gt', 'ssdfl+choco:compressor=sign']"
    experiment = load_experiment(None, [*FORMED, methods, "seeds=[0]", "cycles=1"])
    folder = run_experiment(experiment, tmp_path / "r")
    numbers = 16 * 4 + 4
    kinds = {plan.exchange for plan in folder.plans(0)}
    assert folder.plan(0).exchange == (4 * numbers, True, False)
    assert kinds == {
        (4 * numbers, True, False),
        (8 * numbers, False, True),
        (4 + -(-numbers // 8), False, False),
    }
    before = contents(tmp_path / "r")
    run_experiment(experiment, tmp_path / "r", resume=True)
    assert contents(tmp_path / "r") == before
    formed = [
        dataclasses.replace(plan, clusters=((0, 1, 2), (3, 4, 5)) if place else (tuple(range(6)),))
        for place, plan in enumerate(folder.plans(0))
    ]
    prepared = prepare(experiment, 0, load_dataset("helpers:tiny_data"), formed)
    links = {
        name: make_job(experiment, prepared, name).step(0).W.nnz for name in experiment.methods
    }
    assert links["ssdfl"] == 6 + 14
    assert links["ssdfl+gt"] == links["ssdfl+choco:compressor=sign"] == 6 + 12


def test_a_rule_that_cannot_run_is_refused_before_anything_is_written(tmp_path):
    for changes in (
        ["methods=['ssdfl', 'stc+choco']"],
        ["methods=['sdfl+choco']", "faults.link_loss=0.1"],
    ):
        with pytest.raises(
            InputError, match="schedule of Choco = one whose links change at random"
        ):
            run_experiment(small(*changes), tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_constants_of_formation_may_be_given(tmp_path):
    settings = [
        "clusters.gradient_bound=2.5",
        "clusters.partition=paper",
        "clusters.score=stationarity",
    ]
    experiment = load_experiment(
        None, [*FORMED, *settings, "methods=['ssdfl']", "seeds=[0]", "cycles=1"]
    )
    plan = run_experiment(experiment, tmp_path / "r").plan(0)
    assert plan.settings["gradient_bound"] == 2.5
    assert plan.settings["smoothness"] != 1.0
    assert (plan.partition, plan.score_name) == ("paper", "stationarity")


@pytest.mark.parametrize(
    ("settings", "every"),
    [
        ([], 1),
        (["model.name=logreg"], 2),
        (["evaluate.every=3"], 3),
        (["training.local_steps=1"], 2),
        (["model.name=cnn"], 3),
        (["model.name=cnn", "evaluate.samples=50"], 1),
        (["training.batch_size=0"], 1),
    ],
    ids=str,
)
def test_by_default_testing_is_a_quarter_of_the_work(settings, every):
    experiment = load_experiment(settings=settings)
    job = make_job(experiment, prepare(experiment, 0, load_dataset("digits")), "pdfl")
    assert job.evaluate_every == every


def test_central_refuses_many_devices_before_anything_runs(tmp_path):
    experiment = load_experiment(
        settings=[
            "network.spec=ring:n=2001",
            "clusters.number=1",
            "data.partition=iid",
            "data.name=helpers:many_samples",
            "training.batch_size=2",
        ]
    )
    with pytest.raises(InputError, match="devices for central = 2001.*Leave central out"):
        run_experiment(experiment, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_device_that_torch_lacks_is_named():
    experiment = load_experiment(settings=["engine.device=cuda:7"])
    with pytest.raises(
        InputError, match="engine.device = cuda:7: expected a device that torch can use"
    ):
        prepare(experiment, 0, load_dataset("digits"))


def test_a_run_on_a_networkx_graph_repeats_from_its_folder(tmp_path):
    experiment = load_experiment(None, [*SMALL, "methods=['ssdfl']", "seeds=[0]"])
    graph = nx.cycle_graph(6)
    folder = run_experiment(experiment, str(tmp_path / "a"), network=graph)
    assert folder.plan(0).num_devices == 6
    assert len(json.loads((folder.seed_folder(0) / "network.json").read_text())["edges"]) == 6
    again = run_experiment(folder.experiment(), tmp_path / "b")
    assert (again.path / "metrics.parquet").read_bytes() == (
        folder.path / "metrics.parquet"
    ).read_bytes()
    run_experiment(experiment, folder.path, network=graph, resume=True)
    with pytest.raises(InputError, match="network = graph: expected the one in"):
        run_experiment(experiment, folder.path, network=nx.path_graph(6), resume=True)


def test_records_as_a_data_frame(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    experiment = load_experiment(None, [*SMALL, "methods=['ssdfl', 'pdfl']", "seeds=[0]"])
    folder = RunFolder(str(run_experiment(experiment, tmp_path / "run").path))
    frame = folder.to_pandas()
    assert list(frame["method"].unique()) == ["ssdfl", "pdfl"]
    assert frame.groupby("method")["sent_bytes"].max()["ssdfl"] == max(
        row["sent_bytes"] for row in folder.read_rows(0, "ssdfl")
    )
    assert frame["score"].equals(pandas.read_parquet(folder.path / "metrics.parquet")["score"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"pip install 'ssdfl\[pandas\]'"):
        folder.to_pandas()


def test_liars_are_marked_and_results_are_those_of_the_others(tmp_path):
    values = [
        "data.name=helpers:tiny_data",
        "data.labels_per_device=2",
        "network.spec=barbell:size=3",
    ]
    experiment = load_experiment(
        None,
        [
            *values,
            "clusters.number=2",
            "cycles=2",
            'faults.liars=["1","4"]',
            "faults.attack=same-value",
        ],
        {"methods": ["ssdfl", "ssdfl+clipped:liars=2"], "seeds": [0]},
    )
    folder = run_experiment(experiment, tmp_path / "run")
    assert [k for k, device in enumerate(folder.devices(0)) if device.get("liar")] == [1, 4]
    for row in folder.all_rows():
        accuracy = np.array(row["device_score"])
        assert row["score"] == pytest.approx(accuracy[[0, 2, 3, 5]].mean())
        assert row["liar_score"] == pytest.approx(accuracy[[1, 4]].mean())
    headers, rows = summary_table(summarise(folder), folder.goal())
    assert headers[1:4] == ["honest %", "worst honest %", "liars %"]
    last = folder.all_rows()[1]
    assert rows[0][1:4] == [
        f"{100 * last[name]:.1f}" for name in ("score", "score_worst", "liar_score")
    ]
    page = write_report(folder).read_text(encoding="utf-8")
    assert "liars 1, 4 by same-value, scores are those of honest devices" in page


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"liars": 6}, "faults.liars = 6: expected fewer than the 6 devices"),
        ({"liars": ["bob"]}, "faults.liars = bob: expected names of devices"),
        ({"attack": "gaslight"}, "faults.attack = gaslight: expected one of sign-flip"),
    ],
)
def test_impossible_liars_are_refused_before_anything_is_written(faults, message, tmp_path):
    values = {"data.name": "helpers:tiny_data", "data.labels_per_device": 2}
    overrides = {"network.spec": "barbell:size=3", "clusters.number": 2, "faults": faults}
    experiment = load_experiment(None, (), {**values, **overrides})
    with pytest.raises(InputError, match=message):
        run_experiment(experiment, tmp_path / "run")
    assert not (tmp_path / "run").exists()
