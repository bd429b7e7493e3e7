"""Other kinds of tasks, run whole: text, regression, CSV, several inputs, unequal shards."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from pages import data_of
from ssdfl.errors import InputError, InputWarning
from ssdfl.experiments import run_experiment
from ssdfl.learning import Dataset, load_dataset
from ssdfl.records import load_experiment
from ssdfl.report import headline, summarise, write_report
from ssdfl.report.ranking import RunResults

COMMON = (
    "methods=['ssdfl', 'sdfl', 'pdfl']", "seeds=[0]", "cycles=1",
    "network.spec=ring:n=5", "training.batch_size=8", "clusters.number=2",
)  # fmt: skip
SMALL = "model.options={hidden=8}"
FORMED = "clusters.number=0"
"""Lets formation choose, which takes longer than such a run."""


def run_both(tmp_path, *settings, data=None):
    """The run's folder, the same by the local and the reference engine."""
    folders = []
    for engine in ("local", "reference"):
        experiment = load_experiment(None, [*COMMON, *settings, f"engine.name={engine}"])
        folders.append(run_experiment(experiment, tmp_path / engine, data=data))
    ours, reference = (folder.all_rows() for folder in folders)
    for row, expected in zip(ours, reference, strict=True):
        assert row.pop("method") == expected.pop("method")
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=1e-3, abs=1e-4, nan_ok=True), name
    return folders[0]


def page_of(folder):
    """The page's text without the experiment and the scripts' code, and its data."""
    page = write_report(folder).read_text(encoding="utf-8")
    return page.partition("<details><summary>experiment.toml")[0].partition("<main>")[2], data_of(
        page
    )


def write_cifar10(folder):
    """Six small files of CIFAR-10's binary form, with random images."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for name in [*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]:
        labels = np.arange(20, dtype=np.uint8)[:, None] % 10
        pixels = rng.integers(0, 200, (20, 3 * 32 * 32), dtype=np.uint8) + 5 * labels
        (folder / f"{name}.bin").write_bytes(np.concatenate([labels, pixels], axis=1).tobytes())


def test_a_batch_norm_resnet_on_cifar10(tmp_path):
    write_cifar10(tmp_path / "data" / "cifar10" / "cifar-10-batches-bin")
    settings = ("data.name=cifar10-half", "model.name=resnet8", "model.options={width=4}")
    folder = run_both(tmp_path, *settings, data=tmp_path / "data")
    assert "Best final accuracy" in page_of(folder)[0]
    state = folder.model("ssdfl", device=1).state_dict()
    assert any(name.endswith("running_var") for name in state)


def test_an_lstm_on_text(tmp_path):
    folder = run_both(
        tmp_path, "data.name=logbooks", "data.partition=column", "model.name=lstm",
        "model.options={hidden=8, embedding=4}", "training.learning_rate=0.5",
        "evaluate.samples=20",
    )  # fmt: skip
    goal = folder.goal()
    assert [score.name for score in goal.scores] == ["perplexity", "token_accuracy"]
    rows = folder.all_rows()
    assert rows[-1]["score"] == pytest.approx(np.exp(rows[-1]["loss"]), rel=0.05)
    assert rows[-1]["score_worst"] == max(rows[-1]["device_score"])
    text, data = page_of(folder)
    assert "Lowest final perplexity" in text
    assert "accuracy %" not in text
    assert data["metrics"]["score"]["better"] == "lower"
    assert data["metrics"]["score_2"]["label"] == "mean test accuracy of the next token"
    assert data["target"] is None
    assert "the target is" not in text
    assert "A dash" not in text
    assert json.loads((folder.seed_folder(0) / "devices.json").read_text())[0]["labels"] == []


def test_a_regression(tmp_path):
    folder = run_both(tmp_path, "data.name=diabetes", "evaluate.target=0.2", SMALL, FORMED)
    text, data = page_of(folder)
    for part in ("Best final R²", "mean 0 and deviation 1", "scores are in its own units"):
        assert part in text
    assert "%" not in text.partition("Results</h2>")[2].partition("</table>")[0]
    assert "accuracy" not in text
    assert (data["score"]["label"], data["target"]) == ("R²", 0.2)
    assert data["metrics"]["score_2"]["label"] == "test mean absolute error"
    said = headline([RunResults(folder.experiment(), folder.all_rows())], folder.goal())
    assert said.startswith("Best final R²: ")
    assert "R² 0.2" in said
    assert " % " not in said


def test_a_lower_score_reaches_its_target_from_above(tmp_path):
    settings = (
        "data.name=diabetes",
        "task.metrics=['mae']",
        "evaluate.target=62",
        "cycles=4",
        SMALL,
    )
    experiment = load_experiment(None, [*COMMON, *settings])
    folder = run_experiment(experiment, tmp_path / "run")
    for summary in summarise(folder):
        runs = [row for row in folder.all_rows() if row["method"] == summary.method]
        first = next(row["cycle"] for row in runs if row["score"] <= 62)
        assert first > 0
        assert summary.cycles_to_target == first
        assert summary.metric == "mae"
    assert "to 62</th>" in write_report(folder).read_text()


def test_a_table_from_csv(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.normal(50, 9, 400), "colour": rng.choice(["red", "blue"], 400)}
    )
    frame["kind"] = np.where(frame["size"] + 9 * (frame["colour"] == "red") > 52, "large", "small")
    frame.to_csv(tmp_path / "shop.csv", index=False)
    name = f"data.name={tmp_path / 'shop.csv'}"
    folder = run_both(tmp_path, name, "data.labels_per_device=1", "model.name=logreg")
    assert folder.goal().shown_target == "85 %"
    assert "encoded as one input for each value: colour (2)." in " ".join(folder.notes())
    assert "Best final accuracy" in page_of(folder)[0]
    devices = json.loads((folder.seed_folder(0) / "devices.json").read_text())
    assert all(sum(count > 0 for count in device["labels"]) == 1 for device in devices)


def test_devices_with_twenty_to_two_thousand_samples(tmp_path):
    settings = (
        "data.name=housing",
        "data.partition=size",
        "data.size_exponent=2.9",
        "data.weights=size",
    )
    folder = run_both(
        tmp_path, *settings, "training.learning_rate=0.01", "evaluate.samples=200", SMALL
    )
    sizes = [
        one["samples"] for one in json.loads((folder.seed_folder(0) / "devices.json").read_text())
    ]
    assert min(sizes) < 80
    assert max(sizes) > 2000


class TwoInputs(nn.Module):
    """Takes a table and tokens by name."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(7, 4), nn.Linear(3 + 4, 2)

    def forward(self, numbers, tokens):
        return self.head(torch.cat([numbers, self.words(tokens).mean(-2)], -1))


def two_inputs(shapes, outputs):
    assert shapes == {"numbers": (3,), "tokens": (5,)}
    assert outputs == 2
    return TwoInputs()


def two_arrays():
    rng = np.random.default_rng(0)
    inputs = {
        "numbers": rng.standard_normal((80, 3)).astype(np.float32),
        "tokens": rng.integers(0, 7, (80, 5)),
    }
    targets = np.stack([inputs["numbers"][:, 0] > 0, inputs["tokens"][:, 0] > 3], axis=1).astype(
        np.float32
    )
    parts = [
        {name: part[rows] for name, part in inputs.items()} for rows in (slice(60), slice(60, None))
    ]
    return Dataset(parts[0], targets[:60], parts[1], targets[60:], loss="multilabel")


def test_several_inputs_by_name_and_several_labels(tmp_path):
    settings = (f"model.name={__name__}:two_inputs", f"data.name={__name__}:two_arrays")
    folder = run_both(tmp_path, *settings, "training.learning_rate=0.3")
    assert [score.name for score in folder.goal().scores] == ["f1", "label_accuracy"]


def pinball(outputs, targets):
    gap = targets - outputs.squeeze(-1)
    return torch.maximum(0.9 * gap, -0.1 * gap).mean()


pinball.better = "lower"


def test_a_loss_and_a_metric_of_ones_own(tmp_path):
    own = f"{__name__}:pinball"
    metrics = f"task.metrics=['{own}', 'rmse']"
    folder = run_both(tmp_path, "data.name=diabetes", f"task.loss={own}", metrics, SMALL)
    rows = folder.all_rows()
    unit = load_dataset("diabetes").encoding.target.deviation
    assert all(row["score"] == pytest.approx(unit * row["loss"], rel=1e-4) for row in rows)
    assert folder.goal().score.label == "pinball"
    assert "Lowest final pinball" in page_of(folder)[0]


def test_what_is_said_of_small_shards_and_missing_classes(tmp_path):
    settings = ("data.labels_per_device=1", "methods=['pdfl']", SMALL)
    experiment = load_experiment(None, [*COMMON, *settings])
    with pytest.warns(InputWarning, match="No device holds 5 of the 10 classes"):
        run_experiment(experiment, tmp_path / "a")
    larger = load_experiment(
        None, [*COMMON, *settings, "training.batch_size=64", "data.samples_per_device=20"]
    )
    with pytest.warns(InputWarning) as said:
        run_experiment(larger, tmp_path / "b")
    assert "5 of 5 devices hold fewer samples (the fewest: 20)" in str(said[0].message)


def test_runs_tested_for_different_things_are_not_compared(tmp_path):
    from ssdfl.report import write_comparison

    folders = [
        run_experiment(
            load_experiment(None, [*COMMON, f"data.name={name}", "methods=['pdfl']", SMALL]),
            tmp_path / name,
        )
        for name in ("diabetes", "digits")
    ]
    with pytest.raises(InputError, match=r"accuracy: expected R²"):
        write_comparison(folders, tmp_path / "both.html")


def test_frames_and_torch_data_sets_run_from_python(tmp_path):
    frame = pd.DataFrame(
        {"x": np.arange(90.0), "noise": np.cos(np.arange(90)), "y": np.arange(90) * 2.0 + 1}
    )
    experiment = load_experiment(
        None, [*COMMON, "cycles=6", "model.name=logreg", "methods=['pdfl']"]
    )
    rows = run_experiment(experiment, tmp_path / "frame", data=frame).all_rows()
    assert rows[-1]["score"] > 0.9
    pairs = torch.utils.data.TensorDataset(torch.randn(90, 3), torch.arange(90) % 3)
    folder = run_experiment(experiment, tmp_path / "pairs", data=pairs)
    assert folder.goal().score.name == "accuracy"


def test_one_file_per_device_goes_to_the_device_of_its_name(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "devices").mkdir()
    for k, name in enumerate(["3", "0", "1", "2", "4"]):
        rows = 20 + 10 * int(name)
        frame = pd.DataFrame(
            {"x": rng.standard_normal(rows), "z": float(k), "y": rng.standard_normal(rows)}
        )
        frame.to_parquet(tmp_path / "devices" / f"{name}.parquet")
    settings = (
        f"data.name={tmp_path / 'devices'}",
        "data.partition=files",
        "methods=['pdfl']",
        SMALL,
    )
    experiment = load_experiment(None, [*COMMON, *settings])
    folder = run_experiment(experiment, tmp_path / "run")
    devices = json.loads((folder.seed_folder(0) / "devices.json").read_text())
    assert [device["samples"] for device in devices] == [16, 24, 32, 40, 48]


def test_old_runs_still_read(tmp_path):
    import pyarrow.parquet as parquet

    folder = run_experiment(
        load_experiment(None, [*COMMON, "methods=['pdfl']", SMALL]), tmp_path / "run"
    )
    expected = folder.all_rows()
    path = folder.method_folder(0, "pdfl") / "metrics.parquet"
    table = parquet.read_table(path).drop_columns(["score_2", "score_3", "score_4", "liar_score"])
    old = [name.replace("score", "accuracy") for name in table.column_names]
    parquet.write_table(table.rename_columns(old), path)
    folder.task_file.unlink()
    text = folder.experiment_file.read_text().replace('target = "auto"', "target_accuracy = 0.5")
    folder.experiment_file.write_text(text)
    assert [replace_nan(row) for row in folder.all_rows()] == [replace_nan(row) for row in expected]
    assert folder.goal().shown_target == "50 %"
    assert "Best final accuracy" in page_of(folder)[0]


def replace_nan(row):
    return {name: None if value != value else value for name, value in row.items()}


def test_loaded_data_is_what_is_named():
    assert replace(load_dataset("diabetes"), loss="huber").default_loss == "huber"
