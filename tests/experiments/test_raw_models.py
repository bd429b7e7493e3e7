"""Models of tables and text take raw samples, and their scores are in the targets' own units."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

import ssdfl
from ssdfl.errors import InputError
from ssdfl.experiments import export_model
from ssdfl.learning import load_dataset, num_outputs
from ssdfl.learning.encoding import Encoding
from ssdfl.learning.export import write_model
from ssdfl.learning.facts import ModelFacts
from ssdfl.learning.normalisation import Normalisation
from ssdfl.records import load_experiment

pytestmark = pytest.mark.xdist_group("exports")  # what writes ONNX takes seconds to import

COMMON = (
    "seeds=[0]",
    "training.batch_size=8",
    "cycles=2",
    "network.spec=ring:n=4",
    "methods=['pdfl']",
    "evaluate.every=1",
)


def houses():
    """Rows with prices far from unit size, categories and gaps; every fourth is for testing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.normal(90, 25, 240), "town": rng.choice(["York", "Bath"], 240)}
    )
    frame["price"] = 3000.0 * frame["size"] + 50_000 * (frame["town"] == "Bath") + 100_000
    frame.loc[::7, "size"] = np.nan
    frame["kind"] = np.where(frame["price"] > 400_000, "dear", "cheap")
    frame["split"] = np.where(np.arange(240) % 4, "train", "test")
    frame.loc[3, "town"] = "Rome"
    return frame


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("houses") / "houses.csv"
    houses().drop(columns="kind").to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def run(csv, tmp_path_factory):
    settings = (f"data.name={csv}", "data.target=price", "task.metrics=['mae', 'r2', 'rmse']")
    experiment = load_experiment(None, [*COMMON, *settings, "evaluate.target=90000"])
    return ssdfl.run_experiment(experiment, tmp_path_factory.mktemp("raw") / "run")


@pytest.fixture(scope="module")
def unseen():
    """The rows that models are tested on."""
    frame = houses()
    return frame[frame["split"] == "test"]


def check(predictions, unseen, row):
    """Predictions for raw rows have the errors that the averaged model had."""
    gap = np.asarray(predictions, dtype=float).reshape(-1) - unseen["price"].to_numpy()
    assert np.abs(gap).mean() == pytest.approx(row["average_model_score"], rel=1e-4)
    assert np.abs(gap).mean() > 10_000


def test_errors_and_targets_are_in_the_targets_own_units(run, unseen):
    row = run.all_rows()[-1]
    prices, rows = unseen["price"].to_numpy(), run.model(raw=True)
    predicted = [
        run.model(device=device, raw=True)(
            torch.from_numpy(ssdfl.load_encoding(run.path).rows(unseen))
        )
        for device in range(4)
    ]
    gaps = np.stack([one.detach().numpy()[:, 0] for one in predicted]) - prices
    spread = np.square(prices - prices.mean()).sum()
    assert row["device_score"] == pytest.approx(np.abs(gaps).mean(1), rel=1e-4)
    assert row["score_2"] == pytest.approx((1 - np.square(gaps).sum(1) / spread).mean(), abs=1e-4)
    assert row["score_3"] == pytest.approx(np.sqrt(np.square(gaps).mean(1)).mean(), rel=1e-4)
    assert not rows.training
    assert run.goal().shown_target == "90000"
    reached = [one["score"] <= 90_000 for one in run.all_rows()]
    assert [run.goal().reached(one["score"]) for one in run.all_rows()] == reached


def test_a_program_predicts_prices_of_raw_rows(run, unseen, tmp_path):
    export_model(run.path, tmp_path / "model.pt2")
    program = torch.export.load(tmp_path / "model.pt2").module()
    encoding = ssdfl.load_encoding(tmp_path / "model.pt2")
    assert [column.name for column in encoding.columns] == ["size", "town"]
    assert encoding.columns[1].values == ("Bath", "Rome", "York")
    codes = {"Bath": 0.0, "Rome": 1.0, "York": 2.0}  # by hand, as a program without ssdfl would
    rows = np.stack([unseen["size"], unseen["town"].map(codes)], axis=1).astype(np.float32)
    assert np.array_equal(rows, encoding.rows(unseen), equal_nan=True)
    check(program(torch.from_numpy(rows)).detach(), unseen, run.all_rows()[-1])
    assert program(torch.from_numpy(rows[:1])).shape == (1, 1)


def test_onnx_runtime_predicts_prices_of_raw_rows(run, unseen, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    export_model(run.path, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    rows = ssdfl.load_encoding(tmp_path / "model.onnx").rows(unseen)
    (prices,) = session.run(["output"], {"input": rows})
    check(prices, unseen, run.all_rows()[-1])


def test_safetensors_say_how_rows_become_inputs(run, unseen, tmp_path):
    path = tmp_path / "model.safetensors"
    export_model(run.path, path)
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["ssdfl"])
    (size, town), target = about["columns"], about["target"]
    numbers = (unseen["size"].fillna(size["mean"]) - size["mean"]) / size["deviation"]
    hot = [unseen["town"] == value for value in town["values"]]
    inputs = torch.from_numpy(np.stack([numbers, *hot], axis=1).astype(np.float32))
    hidden = load_file(path)["1.weight"].shape[0]
    plain = nn.Sequential(nn.Flatten(), nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 1))
    plain.load_state_dict(load_file(path))
    outputs = plain(inputs).detach().numpy()
    check(outputs * target["deviation"] + target["mean"], unseen, run.all_rows()[-1])
    encoding = ssdfl.load_encoding(path)
    assert np.allclose(encoding.inputs(unseen), inputs.numpy(), atol=1e-5)
    assert encoding.targets == ("price",)
    loaded = ssdfl.load_model(path, raw=True)
    check(loaded(torch.from_numpy(encoding.rows(unseen))).detach(), unseen, run.all_rows()[-1])


def test_a_value_that_training_never_saw_is_none_of_the_known(run):
    encoding = ssdfl.load_encoding(run.path)
    rows = encoding.rows({"size": [80.0, None], "town": ["Oslo", "Bath"], "other": [1, 2]})
    assert rows[0].tolist() == [80.0, -1.0]
    assert np.isnan(rows[1, 0])
    assert encoding.inputs({"size": [80.0], "town": ["Oslo"]})[0, 1:].tolist() == [0, 0, 0]
    with pytest.raises(InputError, match="expected a table with the column town"):
        encoding.rows({"size": [1.0]})
    with pytest.raises(InputError, match="column size = .*expected numbers"):
        encoding.rows({"size": ["large"], "town": ["Bath"]})


def test_classes_have_their_names(csv, tmp_path):
    frame = houses().drop(columns="price")
    experiment = load_experiment(None, [*COMMON, "data.target=kind", "cycles=1"])
    run = ssdfl.run_experiment(experiment, tmp_path / "run", data=frame)
    encoding, unseen = ssdfl.load_encoding(run.path), frame[frame["split"] == "test"]
    scores = run.model(raw=True)(torch.from_numpy(encoding.rows(unseen))).detach().numpy()
    named = np.array(encoding.classes)[scores.argmax(1)]
    right = float((named == unseen["kind"]).mean())
    assert right == pytest.approx(run.all_rows()[-1]["average_model_score"], abs=1e-6)


def test_text_has_its_vocabulary(tmp_path):
    settings = ("data.name=logbooks", "model.name=lstm", "model.options={hidden=4, embedding=3}")
    experiment = load_experiment(None, [*COMMON, *settings, "cycles=1", "evaluate.samples=4"])
    run = ssdfl.run_experiment(experiment, tmp_path / "run")
    export_model(run.path, tmp_path / "model.safetensors")
    encoding = ssdfl.load_encoding(tmp_path / "model.safetensors")
    tokens = encoding.tokens("the wind")
    assert "".join(encoding.vocabulary[token] for token in tokens) == "the wind"
    assert run.model(raw=True)(torch.from_numpy(tokens[None])).shape == (
        1,
        8,
        len(encoding.classes),
    )
    with pytest.raises(InputError, match="text = '€'"):
        encoding.tokens("a €")


def test_labels_that_look_like_numbers_are_not_standardised(csv, tmp_path):
    frame = houses().drop(columns=["price"])
    frame["kind"] = (frame["kind"] == "dear").astype(float)
    settings = ("data.target=kind", "task.loss=binary", "cycles=1", "training.learning_rate=1e-9")
    experiment = load_experiment(None, [*COMMON, *settings])
    run = ssdfl.run_experiment(experiment, tmp_path / "run", data=frame)
    assert ssdfl.load_encoding(run.path).target is None
    encoding, unseen = ssdfl.load_encoding(run.path), frame[frame["split"] == "test"]
    odds = run.model(raw=True)(torch.from_numpy(encoding.rows(unseen))).detach().numpy()[:, 0]
    right = ((odds > 0) == (unseen["kind"] > 0.5)).mean()
    assert right == pytest.approx(run.all_rows()[-1]["average_model_score"], abs=1e-6)


def test_files_that_are_no_exports(tmp_path):
    for name in ("model.pt2", "model.safetensors", "model.onnx"):
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(InputError, match="ssdfl export wrote"):
            ssdfl.load_encoding(tmp_path / name)
    with pytest.raises(InputError, match="one that ends in"):
        ssdfl.load_encoding(tmp_path / "model.txt")
    with pytest.raises(InputError, match="torch.export.load or ONNX Runtime"):
        ssdfl.load_model(tmp_path / "model.pt2")


def test_arrays_of_numbers_are_scored_in_their_own_units(tmp_path):
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((60, 3)).astype(np.float32)
    np.savez(
        tmp_path / "arrays.npz",
        x=inputs,
        y=inputs @ np.array([[1.0, 300], [2, 0], [3, 900]]) + 5000,
    )
    data = load_dataset(str(tmp_path / "arrays.npz"))
    assert np.abs(data.train_targets.mean(0)).max() < 1e-6
    assert num_outputs(data) == 2
    settings = (f"data.name={tmp_path / 'arrays.npz'}", "task.metrics=['mae']", "cycles=1")
    run = ssdfl.run_experiment(load_experiment(None, [*COMMON, *settings]), tmp_path / "run")
    scale, normal = data.encoding.target, data.encoding.normalisation
    raw = torch.from_numpy((data.test_inputs * normal.deviation + normal.mean).astype(np.float32))
    gaps = run.model(raw=True)(raw).detach().numpy() - scale.undone(data.test_targets)
    assert run.all_rows()[-1]["average_model_score"] == pytest.approx(np.abs(gaps).mean(), rel=1e-4)


class TwoTables(nn.Module):
    """Takes two arrays, by place or by name."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(5, 1)

    def forward(self, left, right):
        return self.head(torch.cat([left, right], -1))


@pytest.mark.parametrize("named", [False, True])
def test_programs_of_several_inputs_predict_in_own_units(named, tmp_path):
    sizes = {"left": torch.empty(3, device="meta"), "right": torch.empty(2, device="meta")}
    encoding = Encoding(target=Normalisation(np.array(100.0), np.array(10.0)))
    model, facts = TwoTables(), ModelFacts(sizes if named else tuple(sizes.values()), 1, encoding)
    write_model(model, facts, tmp_path / "model.pt2", {})
    program = torch.export.load(tmp_path / "model.pt2").module()
    left, right = torch.randn(7, 3), torch.randn(7, 2)
    found = program(left=left, right=right) if named else program(left, right)
    assert torch.allclose(found, model(left, right) * 10 + 100)
