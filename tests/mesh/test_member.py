"""A device in a network that has changed."""

import torch

from ssdfl.graph import load_network
from ssdfl.learning import parse_optimizer
from ssdfl.mesh.folder import init_mesh
from ssdfl.mesh.member import Member
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
