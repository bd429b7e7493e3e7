import csv
import json
from dataclasses import replace

import networkx as nx
import pytest

from ssdfl.clusters import Gain, Move, Plan, compare_plans, export_plan, form_clusters
from ssdfl.errors import InputError
from ssdfl.graph import load_network
from ssdfl.report import write_difference_page

NAMES = ("a", "b", "c", "d", "e")


def plan(*clusters, names=NAMES):
    place = {name: k for k, name in enumerate(names)}
    return Plan(
        tuple(tuple(place[name] for name in cluster) for cluster in clusters), "x", names=names
    )


def test_numbers_of_clusters_are_no_moves():
    found = compare_plans(plan("ab", "cde"), plan("cde", "ab"))
    assert (found.moves, found.continues) == ((), (1, 0))


def test_who_moves_comes_and_goes():
    names = ("a", "b", "c", "d", "f")
    found = compare_plans(plan("ab", "cde"), plan("abc", "df", names=names))
    assert found.moves == (Move("c", 1, 0),)
    assert (found.new, found.gone) == (("f",), ("e",))
    assert "c moves from cluster 1 to cluster 0" in list(found.lines())
    json.dumps(found.to_json())


def test_the_fewest_move():
    # abc could live on as abde with two of its devices; if de does, three stay and not two.
    found = compare_plans(plan("abc", "de"), plan("abde", "c"))
    assert {move.device for move in found.moves} == {"a", "b"}
    assert len(compare_plans(plan("abc", "de"), plan("de", "c", "ab")).moves) == 1


def test_what_it_gains_is_the_clocks_seconds():
    network = load_network("sites:sites=2,size=3")
    good = form_clusters(network)
    bad = replace(good, clusters=(tuple(range(6)),))
    found = compare_plans(bad, good, network)
    cycle, predicted = found.gains
    assert cycle.before > cycle.after
    assert cycle.after == pytest.approx(
        good.chosen.score
    )  # of devices all alike, time is the cycle's
    assert predicted.what.startswith("predicted time to an accuracy")
    other = replace(good, settings={**good.settings, "tau_a": 50})
    assert "different training" in compare_plans(good, other).notes[0]
    assert str(Gain("x", 1.0, 1.0)).endswith("the same")
    with pytest.raises(InputError, match="device.* new"):
        compare_plans(bad, good, load_network("ring:n=7"))


def test_a_page_of_the_difference(tmp_path):
    found = compare_plans(plan("ab", "cde"), plan("abc", "de"))
    write_difference_page(found, "<old>", "new", tmp_path / "d.html")
    text = (tmp_path / "d.html").read_text()
    assert "<td>c</td><td>1</td><td>0</td>" in text
    assert "<old>" not in text


def test_clusters_are_exported(tmp_path):
    network = load_network("sites:sites=2,size=3")
    formed = form_clusters(network)
    export_plan(network, formed, tmp_path / "plan.csv")
    with (tmp_path / "plan.csv").open() as lines:
        rows = {row["device"]: int(row["cluster"]) for row in csv.DictReader(lines)}
    assert rows == dict(zip(network.names, formed.labels.tolist(), strict=True))
    export_plan(network, formed, tmp_path / "plan.graphml")
    graph = nx.read_graphml(tmp_path / "plan.graphml")
    assert [data["cluster"] for _, data in graph.nodes(data=True)] == formed.labels.tolist()
    with pytest.raises(InputError, match="a name ending in .csv, .graphml"):
        export_plan(network, formed, tmp_path / "plan.xls")
