"""Test every model on every device's test data, if the devices' files are available."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssdfl.experiments.models import trained_model
from ssdfl.graph import load_network
from ssdfl.learning import Dataset, TaskMetric, find_metrics, load_own_data
from ssdfl.learning.task import suited, task_loss, tested
from ssdfl.mesh.folder import device_folders
from ssdfl.mesh.holdings import known_summary
from ssdfl.records.config import Experiment, load_experiment
from ssdfl.records.folder import CHECKPOINT, RunFolder
from ssdfl.records.scores import CrossTests

MOST_DEVICES = 50
"""Above this number of devices, N² tests take long, and a table of them is not readable."""


def write_cross_tests(mesh: Path, run: RunFolder) -> None:
    """Test every model on every device's held-out data, if a mesh's folder has both."""
    folders = device_folders(mesh)
    if _can_be_tested(folders):
        run.write_cross_tests(_cross_tests(folders))


def _can_be_tested(folders: Sequence[Path]) -> bool:
    few = 1 < len(folders) <= MOST_DEVICES
    return few and all(map(_is_whole, folders))


def _cross_tests(folders: Sequence[Path]) -> CrossTests:
    data = list(map(_own_data, folders))
    metric = _metric(_experiment(folders[0]), data[0])
    names, samples, scores = [], [], []
    for folder, own in zip(folders, data, strict=True):
        model = trained_model(folder).model
        names.append(folder.name)
        samples.append(len(own.test_targets))
        scores.append(tuple(tested(model, one, metric) for one in data))
    return CrossTests(tuple(names), tuple(samples), tuple(scores))


def _metric(experiment: Experiment, data: Dataset) -> TaskMetric:
    """The metric that ranks."""
    usual = task_loss(data, experiment.task.loss).metrics
    return find_metrics(experiment.task.metrics or usual)[0]


def _experiment(folder: Path) -> Experiment:
    return load_experiment(folder / "experiment.toml")


def _is_whole(folder: Path) -> bool:
    """Whether a device's folder has its own data (unless from a function) and a model."""
    train = _experiment(folder).data.train
    has_data = ":" in train or (folder / train).is_file()
    return has_data and (folder / CHECKPOINT).exists()


def _own_data(folder: Path) -> Dataset:
    section, network = _experiment(folder).data, load_network(str(folder / "network.json"))
    found = load_own_data(section, folder, known_summary(folder, section, network.names))
    return suited(found, _experiment(folder).task.loss)
