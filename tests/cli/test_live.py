"""The live page's server, without a browser."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest

from ssdfl.cli import live as module
from ssdfl.cli.live import LiveRun, own_names, serving
from ssdfl.cli.progress import sparkline
from ssdfl.errors import InputError
from ssdfl.experiments import Advance, iterate_experiment
from ssdfl.experiments.on_mesh import run_on_mesh
from ssdfl.records import Record, RunFolder, load_experiment

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
        live=LiveRun(folder, experiment),
        folder=folder,
        advances=iterate_experiment(experiment, folder.path),
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
        assert news["data"]["series"][0]["curves"]["loss"]["mean"] == pytest.approx(
            [first.record.loss]
        )
        assert "Unfinished: 1 of 4 cycles" in news["parts"]["headline"]
        assert get(f"{address}data.json?seen={news['version']}") == (204, "")
        for advance in run.advances:
            run.live.cycle(advance)
        run.live.end("done")
        news = json.loads(get(f"{address}data.json?seen=")[1])
        assert (news["done"], news["ended"], news["text"]) == (4, True, "done")
        rows = run.folder.read_rows(0, "pdfl")
        curve = news["data"]["series"][1]["curves"]["score"]
        assert curve["mean"] == pytest.approx([row["score"] for row in rows], rel=1e-6)
    with pytest.raises(OSError, match="refused"):
        get(address)


@pytest.mark.parametrize(
    ("computed", "passed_s", "said"),
    [
        (1, 10.0, ""),
        (2, 10.0, "; about 20 s to go"),
        (2, 90.0, "; about 3 min to go"),
        (3, 20.0, "; about 20 s to go"),
    ],
)
def test_the_time_to_go_is_told_from_the_second_cycle_on(
    run, computed, passed_s, said, monkeypatch
):
    monkeypatch.setattr(module.time, "monotonic", lambda: 100.0 + passed_s)
    live = run.live
    live.computed, live.done, live._start_s = computed, live.total - 2, 100.0
    assert live._remaining() == said


def test_what_an_earlier_run_had_done_is_shown(run):
    for _ in run.advances:
        pass
    shown = []
    for advance in iterate_experiment(run.folder.experiment(), run.folder.path, resume=True):
        run.live.cycle(advance)
        news = json.loads(run.live.news(-1)[1])
        shown.append([len(one["curves"]["loss"]["mean"]) for one in news["data"]["series"]])
    assert shown == [[1], [2], [2, 1], [2, 2]]
    assert "Unfinished" not in news["parts"]["headline"]


def test_cycles_that_are_done_again_are_shown_once(run):
    for _ in run.advances:
        pass
    first = run.folder.read_rows(0, "ssdfl")[0]
    run.live.cycle(
        Advance(0, "ssdfl", 1, None)
    )  # the folder has records of two cycles, its checkpoint of one
    run.live.cycle(Advance(0, "ssdfl", 2, Record(**{**first, "cycle": 2})))
    news = json.loads(run.live.news(-1)[1])
    assert "Unfinished: 2 of 4 cycles" in news["parts"]["headline"]


def test_a_poll_while_a_seed_is_described_hides_nothing(run, monkeypatch):
    write = RunFolder.write_fact

    def write_and_poll(folder, seed, name, text):
        write(folder, seed, name, text)
        run.live.news(-1)

    monkeypatch.setattr(RunFolder, "write_fact", write_and_poll)
    run.live.cycle(next(run.advances))
    (instance,) = json.loads(run.live.news(-1)[1])["data"]["seeds"]
    assert len(instance["devices"]) == 6


def test_a_mesh_shows_every_method_when_it_is_done(run, monkeypatch):
    for _ in run.advances:
        pass
    rows = {method: run.folder.read_rows(0, method) for method in ("ssdfl", "pdfl")}
    for method in rows:
        (run.folder.method_folder(0, method) / "metrics.parquet").unlink()
    left = iter(rows.values())
    for name, fake in {
        "MeshProcesses": lambda *_: SimpleNamespace(start=lambda: None, stop=lambda: None),
        "watch_statuses": lambda _: ([{"step": step}] for step in range(100)),
        "collected_rows": lambda _: next(left),
    }.items():
        monkeypatch.setattr(f"ssdfl.experiments.on_mesh.{name}", fake)
    monkeypatch.setattr("ssdfl.experiments.on_mesh.init_mesh", lambda *_, **__: None)
    monkeypatch.setattr("ssdfl.experiments.on_mesh.device_folders", lambda _: [])
    shown = []
    for method in rows:
        job = SimpleNamespace(seed=0, cycles=2, steps_per_cycle=6)
        for advance in run_on_mesh(run.folder.experiment(), run.folder, job, method, None):
            run.live.cycle(advance)
            news = json.loads(run.live.news(-1)[1])
            shown.append([len(one["curves"]["loss"]["mean"]) for one in news["data"]["series"]])
    assert shown == [[], [2], [2], [2, 2]]


def wait_until(condition, most_s=10.0):
    end = time.monotonic() + most_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_run_waits_for_the_page_that_said_when_it_asks(run, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    for _ in run.advances:
        pass

    def seconds_to_end(answer_after_s=None):
        begun = time.monotonic()
        if answer_after_s is not None:
            threading.Timer(answer_after_s, lambda: run.live.heard(run.live.version, 1.0)).start()
        run.live.end("done")
        return time.monotonic() - begun

    assert seconds_to_end() < 1.0  # nobody asked
    run.live.heard(0, 1.0)
    assert seconds_to_end() > 1.0  # the page was closed
    run.live.heard(0, 99.0)
    assert 0.5 < seconds_to_end(0.5) < module.LONGEST_PAUSE_S
    with serving(run.live) as address:
        get(f"{address}data.json?seen=-1&pause=7000")
        wait_until(lambda: run.live.due_s - time.monotonic() > 3)  # noted after the answer is sent
        assert run.live.due_s - time.monotonic() < 7.2 + module.PATIENCE_S


def test_what_goes_wrong_is_shown_and_said_once(run, monkeypatch, capsys):
    monkeypatch.setattr(run.live, "news", lambda _: {}["lost"])
    with serving(run.live) as address:
        for _ in range(2):
            with pytest.raises(urllib.error.HTTPError) as found:
                get(f"{address}data.json?seen=-1")
            with found.value as answer:
                assert (answer.code, answer.read()) == (
                    500,
                    b"Cannot build the page: KeyError: 'lost'",
                )
    assert capsys.readouterr().err == "ssdfl: Cannot build the page: KeyError: 'lost'\n"


def test_a_reader_that_goes_away_is_no_news_but_other_errors_are(run, capsys):
    server = module._Server(run.live, 0)
    for error in (BrokenPipeError(), ZeroDivisionError()):
        try:
            raise error
        except type(error):
            server.handle_error(None, ("127.0.0.1", 1))
    server.server_close()
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert "BrokenPipe" not in said


def test_a_live_page_says_when_bounds_are_compared(tmp_path):
    experiment = load_experiment(None, [*SETTINGS, "evaluate.gaps=true", "training.local_steps=1"])
    live = LiveRun(RunFolder(tmp_path), experiment)
    assert "The bounds are computed when the run ends." in live.page()
    assert (
        "The bounds are computed when the run ends."
        in json.loads(live.news(-1)[1])["parts"]["bounds"]
    )


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


def test_browsers_name_no_port_80():
    assert own_names(80) == {"127.0.0.1", "localhost", "127.0.0.1:80", "localhost:80"}
    assert own_names(8080) == {"127.0.0.1:8080", "localhost:8080"}


def test_a_port_that_is_taken_or_impossible(run):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(InputError, match="a free port"),
            serving(run.live, taken.getsockname()[1]),
        ):
            pass
    with pytest.raises(InputError, match="--port = 70000"), serving(run.live, 70000):
        pass


@pytest.mark.parametrize(
    ("values", "shown"),
    [([], ""), ([0.5], "▁"), ([0, 1], "▁█"), ([3, 3, 3], "▁▁▁"), ([0, 7, 14], "▁▅█")],
)
def test_sparklines(values, shown):
    assert sparkline(values) == shown


def test_a_long_sparkline_is_thinned_and_keeps_its_end():
    line = sparkline([0.0] * 999 + [1.0])
    assert len(line) <= 17
    assert line[-1] == "█"
