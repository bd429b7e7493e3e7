"""The live page's server, without a browser."""

import json
import socket
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest

from ssdfl.cli import live as module
from ssdfl.cli.live import LiveRun, serving
from ssdfl.cli.progress import sparkline
from ssdfl.errors import InputError
from ssdfl.experiments import RunFolder, iterate_experiment, load_experiment

SETTINGS = (
    "cycles=2",
    "seeds=[0]",
    "data.name=helpers:tiny_data",
    "data.labels_per_device=2",
    "network.spec=barbell:size=3",
    "clusters.number=2",
    "methods=['ssdfl', 'pdfl']",
)


def get(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
        return answer.status, answer.read().decode()


@pytest.fixture
def run(tmp_path):
    experiment, folder = load_experiment(None, SETTINGS), RunFolder(tmp_path / "run")
    return SimpleNamespace(
        live=LiveRun(folder, experiment), folder=folder, advances=iterate_experiment(experiment, folder.path)
    )


def test_news_are_the_records_so_far(run, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    with serving(run.live) as address:
        assert address.startswith("http://127.0.0.1:")
        _, page = get(address)
        assert "connect-src 'self'" in page
        first = next(run.advances)
        run.live.cycle(first)
        _, text = get(f"{address}data.json?seen=-1")
        news = json.loads(text)
        assert (news["done"], news["total"], news["ended"]) == (1, 4, False)
        assert news["data"]["series"][0]["curves"]["loss"]["mean"] == pytest.approx([first.record.loss])
        assert "Unfinished: 1 of 4 cycles" in news["parts"]["headline"]
        assert get(f"{address}data.json?seen={news['version']}") == (204, "")
        for advance in run.advances:
            run.live.cycle(advance)
        run.live.end("done")
        news = json.loads(get(f"{address}data.json?seen=")[1])
        assert (news["done"], news["ended"], news["text"]) == (4, True, "done")
        rows = run.folder.read_rows(0, "pdfl")
        curve = news["data"]["series"][1]["curves"]["accuracy"]
        assert curve["mean"] == pytest.approx([row["accuracy"] for row in rows], rel=1e-6)
    with pytest.raises(OSError, match="refused"):
        get(address)


def test_what_an_earlier_run_had_done_is_shown(run):
    for _ in run.advances:
        pass
    for advance in iterate_experiment(run.folder.experiment(), run.folder.path, resume=True):
        run.live.cycle(advance)
    news = json.loads(run.live.news(-1)[1])
    assert [len(one["curves"]["loss"]["mean"]) for one in news["data"]["series"]] == [2, 2]
    assert "Unfinished" not in news["parts"]["headline"]


def test_strangers_get_nothing(run):
    with serving(run.live) as address:
        for url, headers, code in (
            (address, {"Host": "evil.example"}, 403),
            (f"{address}data.json", {"Host": "evil.example"}, 403),
            (f"{address}../experiment.toml", {}, 404),
        ):
            with pytest.raises(urllib.error.HTTPError) as found:
                get(url, **headers)
            found.value.close()
            assert found.value.code == code


def test_a_port_that_is_taken_or_impossible(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(InputError, match="a port that is free"),
            serving(run.live, taken.getsockname()[1]),
        ):
            pass
    with pytest.raises(InputError, match="--port = 70000"), serving(run.live, 70000):
        pass


@pytest.mark.parametrize(
    ("values", "shown"), [([], ""), ([0.5], "▁"), ([0, 1], "▁█"), ([3, 3, 3], "▁▁▁"), ([0, 7, 14], "▁▅█")]
)
def test_sparklines(values, shown):
    assert sparkline(values) == shown


def test_a_long_sparkline_is_thinned_and_keeps_its_end():
    line = sparkline([0.0] * 999 + [1.0])
    assert len(line) <= 17
    assert line[-1] == "█"
