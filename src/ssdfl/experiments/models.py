"""Load trained models from run folders and devices' folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdfl.engine.saved_models import MEAN, about_model, read_model
from ssdfl.errors import InputError
from ssdfl.learning import Model, build_model
from ssdfl.learning.encoding import Encoding
from ssdfl.learning.export import on_raw_inputs, read_about, read_safetensors, write_model
from ssdfl.learning.facts import ModelFacts
from ssdfl.learning.parameters import fill_model
from ssdfl.records.config import Experiment, load_experiment
from ssdfl.records.folder import CHECKPOINT, RunFolder


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model, ready to use.

    Attributes:
        model: the module in evaluation mode, with its parameters loaded.
        facts: its inputs and outputs.
        about: where it comes from: its run, method, seed, device and cycle.
    """

    model: Model
    facts: ModelFacts
    about: dict[str, Any]


def load_model(
    path: Path | str,
    method: str = "",
    seed: int | None = None,
    device: int | str = MEAN,
    *,
    raw: bool = False,
) -> Model:
    """A trained model of a run's folder, or of a device's, in evaluation mode.

    Args:
        path: the folder, or a ``.safetensors`` file that `export_model` wrote.
        method: the method; may be left out if there is only one.
        seed: the seed; by default the run's first.
        device: the device's number or name, or ``mean`` for the mean of all parameters.
        raw: whether the model takes samples before they are encoded for training, and predicts in
            the targets' units, as exported programs do.

    Raises:
        InputError: no such method, seed or device; a missing or damaged checkpoint.
    """
    found = trained_model(path, method, seed, device)
    return on_raw_inputs(found.model, found.facts) if raw else found.model


def load_encoding(path: Path | str) -> Encoding:
    """The encoding of samples and targets for the model of a folder or exported file.

    Raises:
        InputError: a missing or damaged checkpoint or file.
    """
    if Path(path).is_dir():
        run = RunFolder(path)
        return trained_model(run.path, _experiment(run).methods[0]).facts.encoding
    return Encoding.from_json(read_about(Path(path)))


def trained_model(
    path: Path | str, method: str = "", seed: int | None = None, device: int | str = MEAN
) -> TrainedModel:
    """A trained model with the facts about it."""
    if Path(path).is_file():
        return _exported_model(Path(path))
    run = RunFolder(path)
    experiment = _experiment(run)
    method, seed = _method(experiment, method), _seed(experiment, seed)
    paths = _checkpoints(run, method, seed)
    saved = read_model(paths, device)
    if saved.facts is None:
        expected = "a file that describes the model's inputs"
        raise InputError("checkpoint", str(paths[0]), expected, "Run the experiment again.")
    facts = ModelFacts.from_json(saved.facts)
    about = about_model(experiment, method, seed, saved)
    return TrainedModel(_filled(about, facts, saved.state, paths[0]), facts, about)


def _exported_model(path: Path) -> TrainedModel:
    state, about = read_safetensors(path)
    facts = ModelFacts.from_json(about)
    return TrainedModel(_filled(about, facts, state, path), facts, about)


def _filled(about: dict[str, Any], facts: ModelFacts, state: dict[str, Any], path: Path) -> Model:
    """A model with parameters, in evaluation mode."""
    name, options = about["model"]["name"], about["model"]["options"]
    model = build_model(
        name, facts.input_shape, facts.outputs, about["seed"], options, example=facts.example()
    )
    fill_model(model, state, str(path))
    return model.eval()


def export_model(
    folder: Path | str,
    out: Path | str,
    method: str = "",
    seed: int | None = None,
    device: int | str = MEAN,
) -> TrainedModel:
    """Write a trained model as ``.safetensors``, ``.pt2`` or ``.onnx``.

    `load_model` documents the arguments, `ssdfl.learning.export.write_model` the files.
    """
    trained = trained_model(folder, method, seed, device)
    write_model(trained.model, trained.facts, Path(out), trained.about)
    return trained


def _experiment(run: RunFolder) -> Experiment:
    """The experiment of a run's folder or of a device's."""
    if not run.experiment_file.exists():
        expected = "a folder that ssdfl run, mesh collect or device made"
        raise InputError("run folder", str(run.path), expected, "Check the path.")
    return load_experiment(run.experiment_file)


def _method(experiment: Experiment, method: str) -> str:
    if not method and len(experiment.methods) == 1:
        return experiment.methods[0]
    if method not in experiment.methods:
        expected = f"one of {', '.join(experiment.methods)}"
        raise InputError("--method", method or "none", expected, "Choose one.")
    return method


def _seed(experiment: Experiment, seed: int | None) -> int:
    if seed is None:
        return experiment.seeds[0]
    if seed not in experiment.seeds:
        expected = f"one of {', '.join(map(str, experiment.seeds))}"
        raise InputError("--seed", seed, expected, "Choose one.")
    return seed


def _checkpoints(run: RunFolder, method: str, seed: int) -> list[Path]:
    """The files with the models of all devices, or of the one device whose folder it is."""
    whole = run.checkpoint(seed, method)
    for path in (run.path / CHECKPOINT, whole):
        if path.exists():
            return [path]
    of_devices = [folder / CHECKPOINT for folder in _device_folders(run, method, seed)] or [whole]
    for path in of_devices:
        if not path.exists():
            remedy = "Check that the run has begun. Cached runs keep no models."
            raise InputError("checkpoint", str(path), "a saved model", remedy)
    return of_devices


def _device_folders(run: RunFolder, method: str, seed: int) -> list[Path]:
    """The folders of devices that ran as processes, by name."""
    mesh = run.devices_folder(seed, method)
    return sorted(path for path in mesh.glob("*") if path.is_dir() and path.name != "ca")
