"""A mesh after a change of its membership."""

from itertools import pairwise

from ssdfl.clusters import form_clusters
from ssdfl.graph import make_network, to_json
from ssdfl.mesh.change import Change, SignedChange
from ssdfl.mesh.editions import first_edition, next_edition
from ssdfl.mesh.folder import init_mesh
from ssdfl.mesh.member import Member
from ssdfl.records import load_experiment

SETTINGS = ["network.spec=ring:n=6", "model.name=logreg", "data.labels_per_device=5"]


def test_a_plan_is_repaired_once_and_read_after_a_restart(tmp_path, monkeypatch):
    experiment = load_experiment(None, SETTINGS)
    folder = init_mesh(experiment, tmp_path / "mesh", method="ssdfl", seed=3, certificates=False)[0]
    member = Member.of_folder(folder)
    first = first_edition(member, form_clusters(member.network), folder)
    stay = member.network.names[:-1]
    network = make_network(5, list(pairwise(range(5))), names=stay)
    change = Change(1, "", 2, to_json(network), dict.fromkeys(stay, ""))
    found = SignedChange(change, change.to_text())
    after = next_edition(first, found, member, folder)
    assert (after.version, after.cycle, after.network.names) == (1, 2, stay)
    assert after.plan.names == stay
    assert sorted(device for cluster in after.plan.clusters for device in cluster) == [*range(5)]
    monkeypatch.setattr("ssdfl.mesh.editions.repair", None)
    again = next_edition(first, found, member, folder)
    assert (again.plan.clusters, again.digest) == (after.plan.clusters, after.digest)
