import pytest

from ssdfl.errors import InputError
from ssdfl.experiments import load_experiment
from ssdfl.experiments.logs import logging_to

ROWS = [
    {"cycle": 1, "accuracy": 0.25, "loss": 2.0, "time_s": 0.5, "device_accuracy": [0.2, 0.3]},
    {"cycle": 2, "accuracy": float("nan"), "loss": 1.0, "time_s": 1.0, "device_accuracy": []},
]


def write_rows(name, out):
    with logging_to([name], load_experiment(None, ["name=logged"]), out) as write:
        for row in ROWS:
            write(3, "own:method", row)


def test_tensorboard_reads_what_was_written(tmp_path):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    write_rows("tensorboard", tmp_path)
    events = accumulators.EventAccumulator(str(tmp_path / "tensorboard" / "own.method" / "seed-3"))
    events.Reload()

    def points(name):
        return [(e.step, float(e.tensor_proto.float_val[0])) for e in events.Tensors(name)]

    assert points("loss") == [(1, 2.0), (2, 1.0)]
    assert points("accuracy") == [(1, 0.25)]
    assert "device_accuracy" not in events.Tags()["tensors"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_mlflow_reads_what_was_written(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    write_rows("mlflow", tmp_path)
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("logged").experiment_id])
    assert [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "loss")] == [(1, 2), (2, 1)]
    assert run.data.tags["method"] == "own:method"
    assert run.data.params["training.learning_rate"] == "0.05"
    assert run.info.status == "FINISHED"


def test_an_mlflow_that_cannot_be_reached_is_named(tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "magic://nowhere")
    with pytest.raises(InputError, match="MLflow tracking = magic://nowhere"):
        write_rows("mlflow", tmp_path)


def test_an_unknown_log_and_a_missing_extra(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="--log = wandb: expected one of tensorboard, mlflow"):
        write_rows("wandb", tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "tensorboard.summary", None)
    with pytest.raises(InputError, match=r"pip install 'ssdfl\[tensorboard\]'"):
        write_rows("tensorboard", tmp_path)
    assert list(tmp_path.iterdir()) == []
