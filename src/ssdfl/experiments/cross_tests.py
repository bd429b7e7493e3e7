"""Everyone's model on everyone's test data, where the devices' files are at hand."""

from __future__ import annotations

from pathlib import Path

from ssdfl.experiments.models import trained_model
from ssdfl.learning import Dataset, find_metrics, load_own_data
from ssdfl.learning.task import task_loss, tested
from ssdfl.mesh.folder import device_folders, read_device
from ssdfl.mesh.holdings import known_summary
from ssdfl.records.config import Experiment, load_experiment
from ssdfl.records.folder import CHECKPOINT, RunFolder
from ssdfl.records.scores import CrossTests

MOST_DEVICES = 50
"""Beyond so many, N² tests take long and a table of them shows nothing."""


def write_cross_tests(mesh: Path, run: RunFolder) -> None:
    """Test everyone on everyone's held-out data, if all devices' data and models are in a mesh's folder."""
    folders = device_folders(mesh)
    experiment = load_experiment(folders[0] / "experiment.toml")
    own = experiment.data.train and all(_is_whole(folder, experiment) for folder in folders)
    if not own or not 1 < len(folders) <= MOST_DEVICES:
        return
    data = [_own_data(folder, experiment) for folder in folders]
    models = [trained_model(folder).model for folder in folders]
    metric = find_metrics(experiment.task.metrics or task_loss(data[0], experiment.task.loss).metrics)[0]
    scores = [[tested(model, one, metric) for one in data] for model in models]
    names = tuple(folder.name for folder in folders)
    samples = tuple(len(one.test_targets) for one in data)
    run.write_cross_tests(CrossTests(names, samples, tuple(map(tuple, scores))))


def _is_whole(folder: Path, experiment: Experiment) -> bool:
    """Whether a device's data, unless they come from a function, and model are there."""
    has_data = ":" in experiment.data.train or (folder / experiment.data.train).exists()
    return has_data and (folder / CHECKPOINT).exists()


def _own_data(folder: Path, experiment: Experiment) -> Dataset:
    known = known_summary(folder, experiment.data, read_device(folder).names)
    return load_own_data(experiment.data, folder, known)
