"""Weights & Biases: offline, with a server, and when the server is lost."""

import json
import subprocess
import sys

import pytest

from logs_help import EXPERIMENT, advances, end_early, log_cycles, make_resumable, record
from ssdfl.errors import InputError
from ssdfl.experiments import Advance
from ssdfl.experiments.logs import logging_to
from ssdfl.records import RunFolder
from wandb_server import serving

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("wandb"),  # which takes seconds to import
]


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """W&B with no settings but ours: it reads them once for every session."""
    wandb = pytest.importorskip("wandb")
    wandb.teardown()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("WANDB_X_DISABLE_STATS", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    yield
    wandb.teardown()


@pytest.fixture
def server(monkeypatch):
    with serving() as made:
        monkeypatch.setenv("WANDB_BASE_URL", made.url)
        yield made


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")


def ids(out):
    runs = json.loads((out / "wandb" / "ssdfl.json").read_text())["runs"]
    return {name: run["id"] for name, run in runs.items()}


def sync(out):
    """What a user does after an offline run."""
    folders = sorted(map(str, (out / "wandb").glob("*run-*")))
    command = [sys.executable, "-m", "wandb", "sync", "--no-skip-online", *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_offline_run_is_resumed_without_a_server_and_uploaded_later(
    tmp_path, offline, server, capfd
):
    log_cycles("wandb", tmp_path, [1, 2])
    before = ids(tmp_path)
    make_resumable(tmp_path, [1, 2, 3])
    log_cycles("wandb", tmp_path, [4], earlier=[1, 2, 3])
    assert server.opened == {}
    assert capfd.readouterr() == ("", "")
    assert list(before) == ["own:method seed 3"]
    assert ids(tmp_path) == before
    sync(tmp_path)
    rows = [
        (row["_step"], row["loss"], row.get("score")) for row in server.history[before.popitem()[1]]
    ]
    assert rows == [(1, 1, 0.25), (2, 0.5, None), (3, pytest.approx(1 / 3), None), (4, 0.25, None)]


def test_a_server_learns_what_a_run_is_and_how_it_ended(tmp_path, server, capsys):
    with pytest.raises(KeyboardInterrupt):
        end_early("wandb", tmp_path, KeyboardInterrupt)
    done, begun = ids(tmp_path)["done seed 3"], ids(tmp_path)["begun seed 3"]
    assert server.exit_codes == {done: 0, begun: 255}
    assert server.steps(done) == [1, 2, 3, 4]
    opened = server.opened[done]
    assert (opened["project"], opened["groupName"], opened["displayName"]) == (
        "logged",
        "done",
        "done seed 3",
    )
    config = json.loads(opened["config"])
    assert config["training.learning_rate"]["value"] == 0.05
    assert (config["method"]["value"], config["seed"]["value"]) == ("done", 3)
    assert capsys.readouterr().err == f"ssdfl: W&B shows this run at {server.url}/we/logged\n"


def test_a_resumed_run_adds_what_the_server_lacks(tmp_path, server):
    log_cycles("wandb", tmp_path, [1, 2, 3])
    (run,) = ids(tmp_path).values()
    del server.history[run][1:]
    make_resumable(tmp_path, [1, 2, 3])
    log_cycles("wandb", tmp_path, [4], earlier=[1, 2, 3])
    assert server.steps(run) == [1, 2, 3, 4]
    assert list(server.opened) == [run]


def test_a_new_run_in_the_place_of_another_is_another(tmp_path, offline):
    log_cycles("wandb", tmp_path, [1])
    before = ids(tmp_path)
    log_cycles("wandb", tmp_path, [1])
    assert ids(tmp_path) != before


def test_a_run_survives_the_loss_of_its_server(tmp_path, server, monkeypatch, capsys):
    monkeypatch.setenv("WANDB_INIT_TIMEOUT", "1")
    monkeypatch.setattr("ssdfl.experiments.logs.wandb.UPLOAD_LIMIT_S", 1)
    with logging_to(["wandb"], EXPERIMENT, RunFolder(tmp_path)) as watch:
        watch(Advance(3, "done", 1, record(1)))
        server.shutdown()
        server.server_close()
        for cycle in (2, 3, 4):
            watch(Advance(3, "done", cycle, record(cycle)))
        watch(Advance(3, "another", 1, record(1)))
    said = capsys.readouterr().err
    assert said.count("W&B does not respond: its records stay in the folder; wandb sync") == 1
    kept = {folder.name.rsplit("-", 1)[0][:3] for folder in (tmp_path / "wandb").glob("*run-*")}
    assert kept == {"run", "off"}
    with serving() as later:
        monkeypatch.setenv("WANDB_BASE_URL", later.url)
        sync(tmp_path)
        assert later.steps(ids(tmp_path)["done seed 3"]) == [1, 2, 3, 4]
        assert later.steps(ids(tmp_path)["another seed 3"]) == [1]


def test_a_run_goes_on_when_wandb_itself_fails(tmp_path, offline, monkeypatch, capsys):
    def fail(*_, **__):
        raise RuntimeError("gone")

    with logging_to(["wandb"], EXPERIMENT, RunFolder(tmp_path)) as watch:
        for advance in advances([1, 2, 3]):
            watch(advance)
            monkeypatch.setattr("wandb.sdk.wandb_run.Run.log", fail)
    said = capsys.readouterr().err
    assert said.count("W&B gets no more records of this run") == said.count("gone") == 1


@pytest.mark.parametrize("missing", ["key", "server"])
def test_a_server_that_lets_nobody_in_is_named_before_anything_runs(tmp_path, missing, monkeypatch):
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    if missing == "key":
        monkeypatch.delenv("WANDB_API_KEY")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    else:
        monkeypatch.setattr("wandb.login", lambda: (_ for _ in ()).throw(OSError("no route")))
    with (
        pytest.raises(InputError, match="W&B server = http://127.0.0.1:9: .*WANDB_MODE=offline"),
        logging_to(["wandb"], EXPERIMENT, RunFolder(tmp_path)),
    ):
        pass


def test_a_damaged_list_of_runs_is_refused(tmp_path, offline):
    log_cycles("wandb", tmp_path, [1])
    make_resumable(tmp_path, [1])
    (tmp_path / "wandb" / "ssdfl.json").write_text('{"runs": 3}')
    with pytest.raises(InputError, match=r"W&B runs of this folder = .*ssdfl\.json"):
        log_cycles("wandb", tmp_path, [2], earlier=[1])
