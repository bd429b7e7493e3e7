"""Certificates hold the truth; the checker accepts them, shares no code, refuses forgeries."""

import ast
import copy
import itertools
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import least_conductance
from ssdfl.errors import InputError
from ssdfl.graph import (
    certify,
    conductance,
    from_networkx,
    lazy,
    load_network,
    metropolis,
    scaled,
    slowest_mode,
)
from ssdfl.graph.certified import Refused, check_certificate
from ssdfl.graph.certified import triangles as tri
from ssdfl.graph.certified.bounding import NEXT_SMOOTHING, Bounded
from ssdfl.graph.certified.branching import Node, _by_pair
from ssdfl.graph.certified.cells import whole
from ssdfl.graph.certified.certificate import relaxation_certificate
from ssdfl.graph.certified.problem import Problem
from ssdfl.graph.certified.relaxation import limits_of, start
from ssdfl.graph.certified.timer import Timer

CHECKER = find_spec("ssdfl.graph.certified.check")


def W_of(spec):
    return metropolis(load_network(spec).adjacency)


def regular(degree, n, seed=0):
    return metropolis(from_networkx(nx.random_regular_graph(degree, n, seed=seed)).adjacency)


def irregular(n, seed):
    rng = np.random.default_rng(seed)
    network = load_network(f"er:n={n},p={rng.uniform(0.2, 0.7)},seed={seed}")
    weights = rng.uniform(0.2, 1.0, network.num_links)
    return scaled(metropolis(network.adjacency), network.link_matrix(weights))


def by_relaxation(W, seconds=60.0):
    """The proof by cells, from the worst cut there is: device 0 alone."""
    return relaxation_certificate(W, np.arange(W.shape[0]) == 0, Timer(seconds))


def as_file(certificate):
    return json.loads(json.dumps(certificate.as_json()))


@given(st.integers(2, 12), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_certificates_of_small_networks_are_exact_and_accepted(n, seed):
    W = irregular(n, seed)
    found = certify(W)
    check_certificate(W.toarray(), as_file(found))
    assert found.conductance.exact
    assert found.conductance.upper == pytest.approx(least_conductance(W), rel=1e-9)


@given(st.integers(4, 9), st.integers(0, 10**6), st.sampled_from([0.0, 60.0]))
@settings(max_examples=5, deadline=None)
def test_the_relaxation_holds_the_truth(n, seed, seconds):
    W = irregular(n, seed)
    found = by_relaxation(W, seconds)
    check_certificate(W.toarray(), as_file(found))
    truth = least_conductance(W)
    assert (
        (1 - slowest_mode(W)[0]) / 2 * (1 - 1e-6) <= found.conductance.lower <= truth * (1 + 1e-9)
    )
    assert truth <= found.conductance.upper * (1 + 1e-9)


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ("er:n=14,p=0.3,seed=1", metropolis),
        ("ba:n=13,m=2", metropolis),
        ("complete:n=9", lazy),
        ("torus:rows=3,cols=4", lazy),
    ],
)
def test_the_relaxation_is_exact(spec, rule):
    W = rule(load_network(spec).adjacency)
    found = by_relaxation(W)
    check_certificate(W.toarray(), as_file(found))
    assert found.conductance.exact
    assert found.conductance.upper == pytest.approx(least_conductance(W), rel=1e-9)


def test_a_regular_network_is_closed_by_parity():
    W = regular(4, 24)
    found = by_relaxation(W)
    check_certificate(W.toarray(), as_file(found))
    assert found.conductance.exact
    assert found.conductance.upper == pytest.approx(conductance(W).upper, rel=1e-9)


@pytest.mark.parametrize(
    ("spec", "Φ"), [("grid:rows=8,cols=8", 1.7 / 32), ("ring:n=101", 2 / 3 / 50)]
)
def test_known_answers(spec, Φ):
    W = W_of(spec)
    found = certify(W)
    check_certificate(W.toarray(), as_file(found))
    assert found.conductance.exact
    assert found.conductance.upper == pytest.approx(Φ)


def test_nothing_is_to_be_shown_of_one_device_or_of_parts():
    for graph in (nx.empty_graph(1), nx.disjoint_union(nx.path_graph(2), nx.path_graph(3))):
        W = metropolis(from_networkx(graph).adjacency)
        found = certify(W)
        check_certificate(W.toarray(), as_file(found))
        assert (found.conductance.lower, found.conductance.upper) == (0, 0)


def test_too_many_devices_are_refused():
    with pytest.raises(InputError, match="1,000 devices"):
        certify(W_of("ring:n=1001"))


def test_the_checker_imports_nothing_of_the_package():
    tree = ast.parse(Path(CHECKER.origin).read_text(encoding="utf-8"))
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
    assert foreign == {"numpy"}


def leaf_of(node):
    """The bound with the most triangles."""
    if "bound" in node:
        return node["bound"]
    return max(map(leaf_of, node["parts"]), key=lambda bound: len(bound["weights"]))


FORGERIES = {
    "a higher end": lambda c: c.update(lower=c["upper"], upper=c["upper"] * 1.01),
    "both ends higher": lambda c: c.update(lower=c["lower"] * 1.001, upper=c["upper"] * 1.001),
    "both ends lower": lambda c: c.update(lower=c["lower"] * 0.9, upper=c["upper"] * 0.9),
    "another cut": lambda c: c.update(cut=c["cut"][1:]),
    "a cut of strangers": lambda c: c.update(cut=[99]),
    "nothing shown": lambda c: c.update(proof={"kind": "none"}),
    "an unknown proof": lambda c: c.update(proof={"kind": "belief"}),
    "no proof": lambda c: c.pop("proof"),
    "another version": lambda c: c.update(version=2),
    "nan": lambda c: c.update(lower=float("nan")),
}
FORGED_TREES = {
    "sizes left out": lambda c: [c["proof"]["tree"][key].pop() for key in ("sizes", "parts")],
    "a negative weight": lambda c: leaf_of(c["proof"]["tree"])["weights"].__setitem__(0, -1.0),
    "a negative limit": lambda c: leaf_of(c["proof"]["tree"])["limits"].__setitem__(-1, -1.0),
    "a larger diagonal": lambda c: leaf_of(c["proof"]["tree"])["diagonal"].__setitem__(0, 9.0),
    "a short diagonal": lambda c: leaf_of(c["proof"]["tree"])["diagonal"].pop(),
    "a nan": lambda c: leaf_of(c["proof"]["tree"])["diagonal"].__setitem__(0, float("nan")),
    "no triangles": lambda c: leaf_of(c["proof"]["tree"]).update(triangles=[], weights=[]),
    "false triangles": lambda c: leaf_of(c["proof"]["tree"])["triangles"].__setitem__(
        0, [1, 1, 2, 0]
    ),
    "coarse units": lambda c: c["proof"].update(units=1),
}


@pytest.fixture(scope="module")
def proved():
    """A network, and its two proofs."""
    W = regular(4, 18)
    return W, as_file(certify(W)), as_file(by_relaxation(W))


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(proved, name):
    W, *certificates = proved
    for certificate in certificates:
        check_certificate(W.toarray(), certificate)
        forged = copy.deepcopy(certificate)
        FORGERIES[name](forged)
        with pytest.raises(Refused):
            check_certificate(W.toarray(), forged)


@pytest.mark.parametrize("name", FORGED_TREES)
def test_forged_trees_are_refused(proved, name):
    W, _, certificate = proved
    forged = copy.deepcopy(certificate)
    FORGED_TREES[name](forged)
    with pytest.raises(Refused):
        check_certificate(W.toarray(), forged)


def test_an_order_must_be_complete_and_the_network_the_same(proved):
    W, certificate, by_cells = proved
    forged = copy.deepcopy(certificate)
    forged["proof"]["order"].pop()
    with pytest.raises(Refused, match="every device once"):
        check_certificate(W.toarray(), forged)
    other = regular(4, 18, seed=5).toarray()
    for one in (certificate, by_cells):
        with pytest.raises(Refused):
            check_certificate(other, one)
        with pytest.raises(Refused, match="sum to 1"):
            check_certificate(2 * W.toarray(), one)
        with pytest.raises(Refused, match="not symmetric"):
            check_certificate(np.roll(W.toarray(), 1, axis=1), one)


def test_the_frontier_check_finds_the_set_that_is_below():
    W = W_of("grid:rows=4,cols=5")
    certificate = as_file(certify(W))
    worse = W_of("grid:rows=4,cols=5").toarray()
    certificate["cut"] = [0]
    certificate["lower"] = certificate["upper"] = float(worse[0, 1:].sum())
    with pytest.raises(Refused, match="conducts less"):
        check_certificate(worse, certificate)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_triangles_keep_their_meaning_when_entries_merge(seed):
    rng = np.random.default_rng(seed)
    z = rng.choice([-1.0, 1.0], 7)
    kept, gone = sorted(rng.choice(8, 2, replace=False).tolist())
    sign = int(rng.choice([-1, 1]))
    y = np.insert(z, gone, sign * z[kept])
    ends = np.sort([rng.choice(8, 3, replace=False) for _ in range(20)], axis=1)
    triangles = np.column_stack([ends, rng.integers(0, 4, 20)])
    merged, which = tri.after_merge(triangles, kept, gone, sign)
    before = tri.slack(np.outer(y, y), triangles)
    assert (before >= 0).all()
    assert (tri.slack(np.outer(z, z), merged) == before[which]).all()
    assert (merged[:, 0] < merged[:, 1]).all()
    assert (merged[:, 1] < merged[:, 2]).all()


def test_signs_of_triangles_are_the_products_of_three_entries():
    """Of three entries ±1, the products of pairs sum to at least −1 with any of these signs."""
    products = {(a * b, a * c, b * c) for a, b, c in itertools.product([1, -1], repeat=3)}
    assert set(map(tuple, tri.SIGNS.tolist())) == products
    assert (tri.SIGNS @ np.array(sorted(products)).T).min() == -1


def test_violated_triangles_are_those_below_the_tolerance():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(9, 3))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    Y = vectors @ vectors.T
    every = np.array(
        [(i, j, k, t) for i in range(9) for j in range(i) for k in range(j) for t in range(4)]
    )
    every[:, :3] = every[:, 2::-1]
    expected = {tuple(row) for row in every[tri.slack(Y, every) < -0.01].tolist()}
    assert {tuple(row) for row in tri.violated(Y, 10**6, 0.01).tolist()} == expected
    assert expected


def test_units_and_parity():
    inside = np.arange(24) < 12
    four = Problem(regular(4, 24), inside, 0.2)
    assert (four.units, four.parity) == (5, 0)
    assert four.possible(7, 0.9) == pytest.approx(1.2)
    three = Problem(regular(3, 24), inside, 0.2)
    assert (three.units, three.parity) == (4, 1)
    assert three.possible(7, 1.1) == pytest.approx(1.25)
    assert three.possible(8, 1.1) == pytest.approx(1.5)
    any_weights = Problem(irregular(12, 0), inside[:12], 0.2)
    assert any_weights.units == 0
    # Seven devices need a cut of 1.4 at least; if cuts are even units, more than 1.2 will do.
    assert [one.enough(7) for one in (four, any_weights)] == pytest.approx([1.2, 1.4])
    assert four.possible(7, four.enough(7)) == pytest.approx(1.6)


@pytest.mark.parametrize("sizes", [(1, 3), (2, 3), (2, 2)])
def test_limits_are_those_of_the_sets_of_a_cell_but_the_best_known(sizes):
    best = np.arange(7) < 2
    limits = limits_of(Problem(W_of("ring:n=7"), best, 1 / 3), whole(7).sized(*sizes))
    for inside in itertools.product([False, True], repeat=7):
        y = np.append(np.where(inside, 1.0, -1.0), 1.0)
        within = all(y @ form @ y <= most for form, most in limits)
        if sum(inside) <= 3:
            is_another = not np.array_equal(inside, best)
            assert within == (sizes[0] <= sum(inside) <= sizes[1] and is_another)


def test_a_cell_is_divided_into_sets_whose_pair_agrees_and_those_whose_pair_differs():
    problem = Problem(W_of("ring:n=5"), np.arange(5) < 2, 1 / 3)
    dual = start(problem, whole(5))
    Y = np.cov(np.random.default_rng(0).choice([-1, 1], size=(6, 9)))
    node = Node(whole(5), dual, NEXT_SMOOTHING, Bounded(dual, 0.0, 1.0, Y))
    cells = [part.cell for part in _by_pair(node)]
    kept, gone = node.pair
    assert [cell.num_groups for cell in cells] == [5, 5]
    assert [cell.group[gone] for cell in cells] == [kept, kept]
    assert [cell.sign[kept] * cell.sign[gone] for cell in cells] == [1, -1]
