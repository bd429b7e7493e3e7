import networkx as nx
import numpy as np
import pytest

from helpers import TOPOLOGY_SPECS
from ssdfl.errors import InputError
from ssdfl.graph import TOPOLOGIES, load_network


def test_specs_cover_every_topology():
    assert {spec.partition(":")[0] for spec in TOPOLOGY_SPECS} == set(TOPOLOGIES)


@pytest.mark.parametrize("spec", TOPOLOGY_SPECS)
def test_every_topology_is_connected_simple_and_repeatable(spec):
    network = load_network(spec)
    assert network.components().max() == 0
    i, j = network.links.T
    assert (i < j).all()
    assert len(np.unique(network.links, axis=0)) == network.num_links
    assert np.array_equal(network.links, load_network(spec).links)
    assert {tuple(link) for link in network.added_links} <= {
        tuple(link) for link in network.links.tolist()
    }


@pytest.mark.parametrize(
    ("spec", "devices", "links"),
    [
        ("complete:n=6", 6, 15),
        ("ring:n=7", 7, 7),
        ("path:n=5", 5, 4),
        ("star:n=6", 6, 5),
        ("grid:rows=2,cols=4", 8, 10),
        ("torus:rows=3,cols=3", 9, 18),
        ("barbell:size=5", 10, 21),
        ("barbell:size=5,bridge=2", 12, 23),
        ("cliques:cliques=5,size=6", 30, 80),
        ("ba:n=30,m=1", 30, 29),
        ("sites:sites=4,size=5,seed=0", 20, 44),
        ("ws:n=30,k=3,p=0.0", 30, 30),
    ],
)
def test_known_sizes(spec, devices, links):
    network = load_network(spec)
    assert (network.num_devices, network.num_links) == (devices, links)


def test_links_between_sites_are_slow_and_few():
    network = load_network("sites:sites=4,size=5,links=2,slowdown=10,seed=3")
    site = np.arange(20) // 5
    between = site[network.links[:, 0]] != site[network.links[:, 1]]
    assert between.sum() == 4 * 2
    assert network.latency_s[between] == pytest.approx(10 * network.latency_s[~between].max())
    assert network.bandwidth_Bps[between] == pytest.approx(
        network.bandwidth_Bps[~between].min() / 10
    )


def test_devices_of_a_site_stand_evenly_on_a_circle_around_it():
    sites = load_network("sites:sites=4,size=5").positions.reshape(4, 5, 2)
    centres = sites.mean(axis=1)
    assert centres == pytest.approx(np.array([(1, 0), (0, 1), (-1, 0), (0, -1)]), abs=1e-12)
    radius = np.linalg.norm(sites - centres[:, None], axis=2)
    assert radius == pytest.approx(np.full((4, 5), radius.max()))
    assert radius.max() < np.sqrt(2) / 2  # half of what is between the centres


def test_links_that_join_a_site_are_reported():
    network = load_network("sites:sites=3,size=4,density=0,seed=1")
    assert len(network.added_links) == 3 * 3


def test_two_sites_are_joined_once():
    assert load_network("sites:sites=2,size=3").num_links == 3 + 3 + 1


def test_sparse_draws_are_joined_and_reported():
    network = load_network("er:n=30,p=0.0,seed=4")
    assert network.num_links == len(network.added_links) == 29


def test_geometric_components_are_joined_by_their_closest_pair():
    network = load_network("rgeo:n=12,radius=0.15,seed=2")
    assert network.added_links
    length = np.linalg.norm(
        network.positions[network.links[:, 0]] - network.positions[network.links[:, 1]], axis=1
    )
    added = {tuple(link) for link in network.added_links}
    is_added = np.array([tuple(link) in added for link in network.links.tolist()])
    assert (length[is_added] > 0.15).all()
    assert (length[~is_added] <= 0.15).all()
    for k in np.flatnonzero(is_added):
        rest = nx.Graph([tuple(link) for m, link in enumerate(network.links.tolist()) if m != k])
        rest.add_nodes_from(range(12))
        side = np.array(
            [node in nx.node_connected_component(rest, network.links[k][0]) for node in range(12)]
        )
        gaps = np.linalg.norm(
            network.positions[side][:, None] - network.positions[~side][None], axis=2
        )
        assert length[k] == pytest.approx(gaps.min())


def test_seeds_differ_and_default_seed_is_used():
    links = [load_network("er:n=20,p=0.2", default_seed=s).links.tolist() for s in (0, 1)]
    assert links[0] != links[1]
    assert links[1] == load_network("er:n=20,p=0.2,seed=1").links.tolist()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("er:n=30,p=1.5", r"p = 1\.5: expected a number in \[0, 1\]"),
        ("er:n=0,p=0.1", r"n = 0: expected a number of at least 1"),
        ("ring:n=-3", "n = -3"),
        ("er:n=ten,p=0.1", "n = ten: expected a whole number"),
        ("er:n=3.5,p=0.1", r"n = 3\.5: expected a whole number"),
        ("er:n=30", "the key p"),
        ("er:n=30,q=0.1", "er:q = 0.1: expected one of the keys n, p, seed"),
        ("er:n", "key=value"),
        ("eer:n=30,p=0.1", "expected a kind"),
        ("ba:n=5,m=7", "m = 7"),
        ("ws:n=5,k=9", "k = 9"),
        ("ws:n=5,k=2,p=1.5", r"p = 1\.5: expected a number in \[0, 1\]"),
        ("barbell:size=1", "size = 1"),
        ("rgeo:n=5,radius=nan", "radius = nan"),
        ("sites:sites=2,size=2,links=9", "links = 9"),
        ("er:n=5,p=0.5,seed=-1", "seed = -1"),
        ("ring:n=5,n=6", "each key once"),
        ("ring:n=4,latency_s=-1", r"latency_s\[0\] = -1.0: expected seconds"),
        ("ring:n=4,bandwidth_Bps=0", "bandwidth_Bps"),
        ("ring:n=4,uplink_Bps=0", r"uplink_Bps\[0\] = 0.0: expected bytes per second above 0"),
        ("ring:n=4,downlink_Bps=nan", r"downlink_Bps\[0\] = nan"),
    ],
)
def test_bad_specs_are_refused(spec, message):
    with pytest.raises(InputError, match=message):
        load_network(spec)


def test_uniform_costs_in_a_spec():
    network = load_network("ring:n=4,latency_s=0.5,bandwidth_Bps=100,compute_s=2")
    assert set(network.message_time_s(50)) == {1.0}
    assert set(network.compute_s) == {2.0}
    assert set(load_network("ring:n=4,latency_s=0.5,uplink_Bps=50").message_time_s(50)) == {1.5}


@pytest.mark.parametrize(
    "spec",
    [
        "ring:n=300000000", "path:n=300000000", "star:n=300000000", "complete:n=3000000",
        "er:n=3000000,p=0.5", "ba:n=300000000", "rgeo:n=3000000,radius=1", "ws:n=300000000",
        "grid:rows=30000,cols=30000",
        "sbm:blocks=3,size=3000000", "barbell:size=3000000", "cliques:cliques=3,size=3000000",
        "sites:sites=3,size=3000000",
    ],
)  # fmt: skip
def test_networks_larger_than_any_are_not_tried(spec):
    with pytest.raises(InputError, match="at most 1,000,000 devices and 20,000,000 links"):
        load_network(spec)


@pytest.mark.parametrize(
    ("spec", "links"),
    [
        ("ba:n=60,m=2", 120),
        ("complete:n=60", 1770),
        ("er:n=60,p=0.1", 180),
        ("rgeo:n=60,radius=1", 1800),
        ("ws:n=60,k=4", 120),
    ],
)
def test_networks_with_too_many_links_are_not_tried(spec, links, monkeypatch):
    monkeypatch.setattr("ssdfl.graph.memory.MOST_LINKS", 100)
    with pytest.raises(InputError, match=f"60 devices and {links:,} links: expected at most"):
        load_network(spec)


def test_networks_that_cannot_fit_in_memory_are_not_tried(monkeypatch):
    monkeypatch.setattr("ssdfl.claims.memory_bytes", lambda: 10**9)
    with pytest.raises(InputError, match="at most 1 GB of memory"):
        load_network("ring:n=900000")


@pytest.mark.parametrize("n", ["1" * 30, "1" * 400, "1" * 5000])
def test_numbers_that_no_machine_word_holds_are_refused(n):
    with pytest.raises(InputError):
        load_network(f"er:n={n},p=0.5")


def test_gaia_has_cities_with_coordinates_and_latencies_by_distance():
    network = load_network("gaia")
    assert (network.num_devices, network.num_links, network.geographic) == (11, 55, True)
    latency_ms = network.link_matrix(network.latency_s).toarray() * 1e3
    place = {name: k for k, name in enumerate(network.names)}
    # Tokyo and Seoul are 1,160 km apart, São Paulo and Tokyo 18,500 km: 4 ms + 0.0085 ms/km.
    assert latency_ms[place["Tokyo"], place["Seoul"]] == pytest.approx(4 + 0.0085 * 1160, rel=0.02)
    assert latency_ms[place["São Paulo"], place["Tokyo"]] == pytest.approx(
        4 + 0.0085 * 18_500, rel=0.02
    )
    assert set(network.bandwidth_Bps) == {125e6}
