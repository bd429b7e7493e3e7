"""What a device knows of itself, also in a network that has changed."""

import numpy as np
import pytest
import torch

from own_data_help import NAMES, ROWS, own_settings, write_files
from ssdfl.graph import load_network
from ssdfl.learning import parse_optimizer
from ssdfl.mesh.folder import init_mesh
from ssdfl.mesh.member import Member
from ssdfl.mesh.own_data import ENCODING
from ssdfl.records import load_experiment

SETTINGS = "network.spec=ring:n=4 clusters.number=1 model.name=logreg data.labels_per_device=5"


def test_a_member_that_moves_keeps_its_model_and_gets_the_data_of_its_new_place(tmp_path):
    experiment = load_experiment(None, SETTINGS.split())
    folder = init_mesh(experiment, tmp_path / "mesh", method="ssdfl", seed=3, certificates=False)[1]
    network = load_network("ring:n=6")
    optimizers = [parse_optimizer("sgd")] * 6
    fresh = Member.of_folder(folder).moved(network, optimizers)
    before = Member.of_folder(folder)
    before.draw()
    moved = before.moved(network, optimizers)
    assert moved.task.model is before.task.model
    assert torch.equal(moved.task.initial_parameters, fresh.task.initial_parameters)
    assert [shard.tolist() for shard in moved.task.shards] == [
        shard.tolist() for shard in fresh.task.shards
    ]
    assert len(before.task.shards) == 4


def test_a_member_describes_its_own_samples(tmp_path):
    experiment = load_experiment(None, SETTINGS.split())
    folder = init_mesh(experiment, tmp_path / "mesh", method="ssdfl", seed=3, certificates=False)[2]
    member = Member.of_folder(folder)
    member.draw()
    own = member.task.targets[member.task.shards[member.config.index]]
    labels = member.described().labels
    assert labels / labels.sum() == pytest.approx(np.bincount(own, minlength=10) / len(own))


@pytest.mark.parametrize("weights", ["equal", "size"])
@pytest.mark.parametrize("encoded", [True, False])
def test_a_member_tells_of_its_data_only_what_others_need(weights, encoded, tmp_path):
    files = write_files(tmp_path / "files")
    experiment = own_settings(tmp_path, f"data.name={files}", f"data.weights={weights}")
    folder = init_mesh(experiment, tmp_path / "mesh", method="ssdfl", seed=0, certificates=False)[0]
    if not encoded:
        settings = folder / "experiment.toml"
        settings.write_text(settings.read_text().replace(ENCODING, ""))
        (folder / ENCODING).unlink()
    member = Member.of_folder(folder)
    told = member.holding()
    if weights == "equal" and encoded:
        assert told is None
        return
    trained = ROWS[NAMES.index(told.device)] - len(member.data.test_targets)
    assert told.samples == (trained if weights == "size" else 0)
    assert told.summary == ("" if encoded else member.data.summary.to_json())
