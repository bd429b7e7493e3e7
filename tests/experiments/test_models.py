"""Models taken out of runs are those that were tested."""

import json
import re

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import ssdfl
from helpers import tiny_data
from ssdfl.errors import InputError
from ssdfl.experiments import export_model
from ssdfl.experiments.models import trained_model
from ssdfl.learning.export import on_raw_inputs
from ssdfl.records import RunFolder, load_experiment, make_experiment

pytestmark = pytest.mark.xdist_group("exports")  # what writes ONNX takes seconds to import

TINY = (
    "data.name=helpers:tiny_data",
    "data.labels_per_device=2",
    "network.spec=barbell:size=3",
    "clusters.number=2",
    "cycles=2",
    "evaluate.every=1",
    "seeds=[3]",
    'methods=["ssdfl"]',
)


class RowByRow(nn.Module):
    """An LSTM that reads an image row by row."""

    def __init__(self, columns, num_classes):
        super().__init__()
        self.reader = nn.LSTM(columns, 6, batch_first=True)
        self.head = nn.Linear(6, num_classes)

    def forward(self, x):
        return self.head(self.reader(x[:, 0])[0][:, -1])


def lstm(image_shape, num_classes):
    return RowByRow(image_shape[-1], num_classes)


def conv(image_shape, num_classes):
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 2), nn.Flatten(), nn.Linear(4, num_classes)
    )


def batch_norm(image_shape, num_classes):
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, num_classes)
    )


class Tied(nn.Module):
    """Two names for one parameter, a frozen layer, and a buffer that no file needs."""

    def __init__(self, num_classes):
        super().__init__()
        self.frozen = nn.Linear(16, 8).requires_grad_(False)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.head = nn.Linear(8, num_classes)
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)

    def forward(self, x):
        inner = self.first(self.frozen(x.flatten(1))).relu()
        return self.head(self.second(inner).relu()) * self.scale


def tied(image_shape, num_classes):
    return Tied(num_classes)


def experiment(*settings):
    return load_experiment(None, [*TINY, *settings])


def own(name):
    return f"model.name={__name__}:{name}"


def accuracy(model, inputs=None):
    data = tiny_data()
    images = data.test_inputs if inputs is None else inputs
    with torch.no_grad():
        scores = torch.as_tensor(model(torch.from_numpy(images)))
    return float((scores.argmax(1).numpy() == data.test_targets).mean())


@pytest.mark.parametrize("engine", ["local", "reference"])
@pytest.mark.parametrize(
    "model",
    [
        ("model.name=mlp",),
        (own("conv"),),
        (own("lstm"),),
        (own("batch_norm"),),
        (own("batch_norm"), "model.buffers=local"),
        (own("tied"),),
    ],
    ids=" ".join,
)
def test_a_loaded_model_is_as_good_as_was_recorded(model, engine, tmp_path):
    folder = ssdfl.run_experiment(experiment(f"engine.name={engine}", *model), tmp_path / "run")
    row = folder.read_rows(3, "ssdfl")[-1]
    for device, recorded in enumerate(row["device_score"]):
        model = folder.model("ssdfl", 3, device)
        assert not any(module.training for module in model.modules())
        assert accuracy(model) == pytest.approx(recorded, abs=1e-6)
    assert accuracy(folder.model("ssdfl", 3, "mean")) == pytest.approx(
        row["average_model_score"], abs=1e-6
    )
    assert len(set(row["device_score"])) > 1  # so that one device's model is not another's


@pytest.fixture(scope="module")
def run_of_conv(tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "run"
    return ssdfl.run_experiment(experiment(own("conv")), out)


def raw_test_images():
    """The test images as they were before normalisation."""
    data = tiny_data()
    normal = data.encoding.normalisation
    return (data.test_inputs * normal.deviation + normal.mean).astype(np.float32)


def test_names_numbers_and_defaults(run_of_conv):
    states = [run_of_conv.model("ssdfl", 3, device).state_dict() for device in (2, "2")]
    assert all(
        torch.equal(*pair) for pair in zip(*(state.values() for state in states), strict=True)
    )
    assert accuracy(ssdfl.load_model(run_of_conv.path)) == accuracy(
        run_of_conv.model("ssdfl", 3, "mean")
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sdfl",), "--method = sdfl: expected one of ssdfl"),
        (("ssdfl", 4), "--seed = 4: expected one of 3"),
        (("ssdfl", 3, 6), "device = 6: expected a number from 0 to 5, a device's name, or mean"),
        (("ssdfl", 3, "kitchen"), "device = kitchen"),
        (("ssdfl", 3, -1), "device = -1"),
    ],
)
def test_what_is_not_there(arguments, message, run_of_conv):
    with pytest.raises(InputError, match=re.escape(message)):
        run_of_conv.model(*arguments)


def test_folders_without_models(tmp_path):
    with pytest.raises(InputError, match="run folder"):
        ssdfl.load_model(tmp_path)
    folder = ssdfl.run_experiment(experiment("cycles=1"), tmp_path / "run")
    folder.checkpoint(3, "ssdfl").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="expected a whole file"):
        folder.model()
    save_file({"X": torch.zeros(1)}, folder.checkpoint(3, "ssdfl"), metadata={"ssdfl": "{}"})
    with pytest.raises(InputError, match="format 1: expected format 3"):
        folder.model()
    folder.checkpoint(3, "ssdfl").unlink()
    with pytest.raises(InputError, match="expected a saved model"):
        folder.model()


def test_safetensors_load_into_plain_torch(run_of_conv, tmp_path):
    path = tmp_path / "model.safetensors"
    export_model(run_of_conv.path, path, "ssdfl", 3, 1)
    plain = conv((1, 4, 4), 4)
    plain.load_state_dict(load_file(path))
    assert accuracy(plain) == accuracy(run_of_conv.model("ssdfl", 3, 1))
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["ssdfl"])
    assert (about["method"], about["seed"], about["device"], about["cycle"]) == ("ssdfl", 3, 1, 2)
    assert about["inputs"] == {"tensor": {"shape": [1, 4, 4], "dtype": "float32"}}
    normal = {name: np.array(about["normalisation"][name]) for name in ("mean", "deviation")}
    images = ((raw_test_images() - normal["mean"]) / normal["deviation"]).astype(np.float32)
    assert accuracy(plain, images) == accuracy(plain)


@pytest.mark.parametrize("samples", [1, 7])
def test_pt2_takes_raw_inputs(samples, run_of_conv, tmp_path):
    export_model(run_of_conv.path, tmp_path / "model.pt2", device=4)
    program = torch.export.load(tmp_path / "model.pt2").module()
    images, raw = tiny_data().test_inputs[:samples], raw_test_images()[:samples]
    expected = run_of_conv.model(device=4)(torch.from_numpy(images))
    assert torch.allclose(program(torch.from_numpy(raw)), expected, atol=1e-5)


@pytest.mark.parametrize("model", ["lstm", "batch_norm"])
def test_onnx_takes_raw_inputs(model, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    folder = ssdfl.run_experiment(experiment(own(model), "cycles=1"), tmp_path / "run")
    path = tmp_path / "model.onnx"
    export_model(folder.path, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (scores,) = session.run(["output"], {"input": raw_test_images()})
    with torch.no_grad():
        expected = folder.model()(torch.from_numpy(tiny_data().test_inputs))
    assert scores == pytest.approx(expected.numpy(), abs=1e-4)
    assert json.loads(session.get_modelmeta().custom_metadata_map["ssdfl"])["device"] == "mean"


def test_onnx_without_its_extra(run_of_conv, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxscript", None)
    with pytest.raises(InputError, match=re.escape("pip install 'ssdfl[onnx]'")):
        export_model(run_of_conv.path, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_other_endings_are_refused(run_of_conv, tmp_path):
    with pytest.raises(InputError, match=r"expected a file that ends in .safetensors, .pt2, .onnx"):
        export_model(run_of_conv.path, tmp_path / "model.pth")


def test_a_model_that_cannot_be_a_program(tmp_path):
    folder = ssdfl.run_experiment(experiment(own("by_value"), "cycles=1"), tmp_path / "run")
    with pytest.raises(InputError, match="expected one that torch can write as pt2"):
        export_model(folder.path, tmp_path / "model.pt2")


class ByValue(nn.Linear):
    def forward(self, x):
        flat = x.flatten(1)
        return super().forward(flat if float(flat.sum()) > 0 else 2 * flat)


def by_value(image_shape, num_classes):
    return ByValue(16, num_classes)


def test_a_model_without_normalisation_is_exported_as_it_is(run_of_conv):
    trained = trained_model(run_of_conv.path)
    assert on_raw_inputs(trained.model, trained.facts) is not trained.model
    facts = type(trained.facts)(trained.facts.inputs, 4)
    assert on_raw_inputs(trained.model, facts) is trained.model


def test_training_goes_on_from_an_exported_model(run_of_conv, tmp_path):
    path = tmp_path / "model.safetensors"
    export_model(run_of_conv.path, path)
    changes = (own("conv"), f"model.initial={path}", "training.learning_rate=1e-9", "cycles=1")
    folder = ssdfl.run_experiment(experiment(*changes), tmp_path / "more")
    for name, tensor in folder.model().state_dict().items():
        assert torch.allclose(tensor, load_file(path)[name], atol=1e-6)
    path.unlink()  # what it started from is not needed to use what came of it
    assert folder.model(device=0) is not None


def test_what_the_initial_file_lacks_comes_from_the_seed(tmp_path):
    path = tmp_path / "part.safetensors"
    save_file({"0.weight": torch.full((3, 1, 3, 3), 0.25)}, path)
    changes = (own("conv"), "training.learning_rate=1e-9", "cycles=1")
    with_part = ssdfl.run_experiment(
        experiment(*changes, f"model.initial={path}"), tmp_path / "a"
    ).model()
    without = ssdfl.run_experiment(experiment(*changes), tmp_path / "b").model()
    assert with_part.get_parameter("0.weight").mean().item() == pytest.approx(0.25)
    assert torch.allclose(
        with_part.get_parameter("2.weight"), without.get_parameter("2.weight"), atol=1e-6
    )


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (
            {"0.weight": torch.zeros(2, 1, 3, 3)},
            "shape of 0.weight in .* = (2, 1, 3, 3): expected (3, 1, 3, 3)",
        ),
        (
            {"trunk.weight": torch.zeros(1)},
            "trunk.weight in .* = unknown: expected one of 0.weight, 0.bias",
        ),
        ({"0.bias": torch.zeros(3, dtype=torch.int64)}, "type of 0.bias in .* = torch.int64"),
        ({"0.bias": torch.full((3,), torch.nan)}, "0.bias in .* = not finite"),
        ({}, "expected at least one parameter"),
    ],
)
def test_initial_parameters_that_do_not_fit(tensors, message, tmp_path):
    path = tmp_path / "bad.safetensors"
    save_file(tensors, path)
    pattern = re.escape(message).replace(r"\.\*", ".*").replace(r"\ ", " ")
    with pytest.raises(InputError, match=pattern):
        ssdfl.run_experiment(experiment(own("conv"), f"model.initial={path}"), tmp_path / "run")
    with pytest.raises(InputError, match="model.initial = .*expected a safetensors file"):
        ssdfl.run_experiment(experiment(own("conv"), "model.initial=nowhere"), tmp_path / "run")


@pytest.mark.parametrize("engine", ["local", "reference"])
def test_training_longer_is_the_same_as_an_unbroken_run(engine, tmp_path):
    settings = (f"engine.name={engine}", own("batch_norm"), "optimizers.reset=never")
    ssdfl.run_experiment(experiment(*settings), tmp_path / "resumed")
    longer = experiment(*settings, "cycles=4")
    resumed = ssdfl.run_experiment(longer, tmp_path / "resumed", resume=True)
    unbroken = ssdfl.run_experiment(longer, tmp_path / "unbroken")
    assert str(resumed.read_rows(3, "ssdfl")) == str(unbroken.read_rows(3, "ssdfl"))
    files = [folder.checkpoint(3, "ssdfl").read_bytes() for folder in (resumed, unbroken)]
    assert files[0] == files[1]
    assert resumed.experiment().cycles == 4


def test_what_may_not_change_when_a_run_is_resumed(tmp_path):
    cosine = "training.rate=cosine"
    ssdfl.run_experiment(experiment(cosine), tmp_path / "run")
    for change, message in (
        ("cycles=1", "cycles = 1: expected at least 2"),
        ("cycles=3", "cycles = 3: expected 2: with training.rate = cosine η depends on it"),
        ("model.buffers=local", "model.buffers = local"),
    ):
        with pytest.raises(InputError, match=message):
            ssdfl.run_experiment(experiment(cosine, change), tmp_path / "run", resume=True)


def test_facts_that_are_none():
    facts_of = make_experiment({}).model  # a section, no facts
    with pytest.raises(InputError, match="facts of a model"):
        ssdfl.learning.facts.ModelFacts.from_json({"inputs": facts_of.name})


def test_run_folders_read_only_what_they_need(run_of_conv):
    assert isinstance(RunFolder(run_of_conv.path).model(), nn.Module)
