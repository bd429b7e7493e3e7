import shutil
import sys
from types import SimpleNamespace

import pytest

from logs_help import EXPERIMENT, advances, end_early, log_cycles, make_resumable, record
from ssdfl.errors import InputError
from ssdfl.experiments import Advance
from ssdfl.experiments.logs import logging_to, opening
from ssdfl.records import RunFolder

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("logs"),  # which take seconds to import
]


def tensorboard_points(out, name):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulators.EventAccumulator(str(out / "tensorboard" / "own.method" / "seed-3"))
    events.Reload()
    assert "device_score" not in events.Tags()["tensors"]
    return [(e.step, float(e.tensor_proto.float_val[0])) for e in events.Tensors(name)]


def test_tensorboard_reads_what_was_written(tmp_path):
    pytest.importorskip("tensorboard")
    log_cycles("tensorboard", tmp_path, [1, 2])
    assert tensorboard_points(tmp_path, "loss") == [(1, 1.0), (2, 0.5)]
    assert tensorboard_points(tmp_path, "score") == [(1, 0.25)]


def test_a_resumed_tensorboard_gets_each_cycle_once(tmp_path):
    pytest.importorskip("tensorboard")
    log_cycles("tensorboard", tmp_path, [1])
    make_resumable(tmp_path, [1, 2, 3])
    log_cycles("tensorboard", tmp_path, [3, 4], earlier=[1, 2])
    assert [step for step, _ in tensorboard_points(tmp_path, "loss")] == [1, 2, 3, 4]
    log_cycles("tensorboard", tmp_path, [4], earlier=[1, 2, 3])
    assert [step for step, _ in tensorboard_points(tmp_path, "loss")] == [1, 2, 3, 4]


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory):
    """A file with MLflow's tables, which take seconds to make."""
    module = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    assert len(module.MlflowClient(f"sqlite:///{path}").search_experiments()) == 1
    return path


@pytest.fixture
def mlflow(empty_database, tmp_path, monkeypatch):
    """MLflow's client, with a place of its own."""
    module = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    shutil.copy(empty_database, tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    return module.MlflowClient()


def mlflow_runs(client):
    return client.search_runs([client.get_experiment_by_name("logged").experiment_id])


def mlflow_steps(client):
    return [
        [metric.step for metric in client.get_metric_history(run.info.run_id, "loss")]
        for run in mlflow_runs(client)
    ]


def test_mlflow_reads_what_was_written(tmp_path, mlflow):
    log_cycles("mlflow", tmp_path, [1, 2])
    (run,) = mlflow_runs(mlflow)
    history = mlflow.get_metric_history(run.info.run_id, "loss")
    assert [(metric.step, metric.value) for metric in history] == [(1, 1.0), (2, 0.5)]
    assert run.data.tags["method"] == "own:method"
    assert run.data.tags["folder"] == str(tmp_path.resolve())
    assert run.data.params["training.learning_rate"] == "0.05"
    assert run.info.status == "FINISHED"


def test_a_resumed_run_goes_on_in_mlflow(tmp_path, mlflow, monkeypatch):
    out = tmp_path / "it's a run"
    log_cycles("mlflow", out, [1])
    make_resumable(out, [1, 2, 3])
    monkeypatch.chdir(tmp_path)
    log_cycles("mlflow", out.relative_to(tmp_path), [3, 4], earlier=[1, 2])
    assert mlflow_steps(mlflow) == [[1, 2, 3, 4]]
    assert mlflow_runs(mlflow)[0].info.status == "FINISHED"


def test_a_new_run_in_the_place_of_another_is_another_in_mlflow(tmp_path, mlflow):
    log_cycles("mlflow", tmp_path / "run", [1, 2])
    log_cycles("mlflow", tmp_path / "run", [1])
    assert sorted(mlflow_steps(mlflow)) == [[1], [1, 2]]


@pytest.mark.parametrize(
    ("error", "status"),
    [(KeyboardInterrupt, "KILLED"), (SystemExit, "KILLED"), (ValueError, "FAILED")],
)
def test_mlflow_hears_how_a_run_ended(tmp_path, mlflow, error, status):
    with pytest.raises(error):
        end_early("mlflow", tmp_path, error)
    ends = {run.data.tags["method"]: run.info.status for run in mlflow_runs(mlflow)}
    assert ends == {"done": "FINISHED", "begun": status}


def test_a_run_goes_on_when_mlflow_fails_and_can_be_told_later(
    tmp_path, mlflow, monkeypatch, capsys
):
    def fail(*_, **__):
        raise OSError("gone")

    with monkeypatch.context() as patch:
        with logging_to(["mlflow"], EXPERIMENT, RunFolder(tmp_path)) as watch:
            for advance in advances([1, 2, 3]):
                watch(advance)
                for name in ("log_batch", "create_run", "set_terminated"):
                    patch.setattr(f"mlflow.MlflowClient.{name}", fail)
            watch(Advance(3, "another", 1, record(1)))
        said = capsys.readouterr().err
    assert said.count("ssdfl: MLflow gets no more records of this run") == said.count("gone") == 1
    assert mlflow_steps(mlflow) == [[1]]
    make_resumable(tmp_path, [1, 2, 3, 4])
    log_cycles("mlflow", tmp_path, [], earlier=[1, 2, 3, 4])
    assert mlflow_steps(mlflow) == [[1, 2, 3, 4]]


def test_an_mlflow_that_cannot_be_reached_is_named(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "magic://nowhere")
    with pytest.raises(InputError, match="MLflow tracking = magic://nowhere"):
        log_cycles("mlflow", tmp_path, [1])


def test_a_log_that_cannot_be_closed_hides_neither_the_others_nor_the_error(
    tmp_path, monkeypatch, capsys
):
    closed = []

    def make(name, error):
        def close(outcome):
            closed.append((name, outcome))
            if error:
                raise error

        return lambda *_: SimpleNamespace(last=lambda *_: 0, write=lambda *_: None, close=close)

    monkeypatch.setattr(
        opening, "LOGS", {"bad": make("bad", OSError("full")), "good": make("good", None)}
    )
    with (
        pytest.raises(ValueError, match="the run's own"),
        logging_to(["good", "bad"], EXPERIMENT, RunFolder(tmp_path)),
    ):
        raise ValueError("the run's own")
    assert closed == [("bad", "FAILED"), ("good", "FAILED")]
    assert capsys.readouterr().err == "ssdfl: A log could not be closed: full\n"


def test_an_unknown_log_and_a_missing_extra(tmp_path, monkeypatch):
    with pytest.raises(
        InputError, match="--log = comet: expected one of tensorboard, mlflow, wandb"
    ):
        log_cycles("comet", tmp_path, [1])
    for name, package in [
        ("tensorboard", "tensorboard.summary"),
        ("mlflow", "mlflow"),
        ("wandb", "wandb"),
    ]:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(InputError, match=rf"pip install 'ssdfl\[{name}\]'"):
            log_cycles(name, tmp_path, [1])
    assert list(tmp_path.iterdir()) == []
