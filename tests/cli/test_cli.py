"""The command as a user types it, in a process of its own."""

import gzip
import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import ssdfl
from commands import quick_command

TESTS = Path(__file__).parents[1]
TINY = [
    *("--set", "data.name=helpers:tiny_data"),
    *("--set", "data.labels_per_device=2"),
    *("--set", "network.spec=barbell:size=3"),
    *("--set", "clusters.number=2"),
    *("--set", "cycles=2"),
]


def command(*words, cwd, **environment):
    return quick_command(*words, cwd=cwd, COLUMNS="120", **environment)


def test_it_is_a_module_and_a_command(tmp_path):
    for words in ([sys.executable, "-m", "ssdfl"], [Path(sys.executable).with_name("ssdfl")]):
        done = subprocess.run(
            [*words, "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"ssdfl {ssdfl.__version__}\n"


def test_version_and_help(tmp_path):
    assert command("--version", cwd=tmp_path).stdout.strip() == f"ssdfl {ssdfl.__version__}"
    for words, expected in (
        (["--help"], "Compare methods"),
        (["run", "--help"], "--resume"),
        (["graph", "--help"], "sites:sites=,size="),
        (["data", "--help"], "fetch"),
    ):
        done = command(*words, cwd=tmp_path)
        assert done.returncode == 0
        assert expected in done.stdout


def test_run_prints_a_table_and_says_where_files_are(tmp_path):
    methods = "ssdfl,sdfl,ssdfl+extra:compressor=int8"
    done = command("run", *TINY, "--seeds", 1, "--methods", methods, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in ("ssdfl", "sdfl", "accuracy", "Best final accuracy", "runs/demo/report.html"):
        assert text in done.stdout
    assert (
        done.stdout.count("sim. s") == 2
    )  # a long name of a method does not cut the last column off
    assert (tmp_path / "runs" / "demo" / "report.html").exists()


def test_run_json_is_json_and_repeats(tmp_path):
    results = []
    for _ in range(2):
        done = command("run", *TINY, "--seeds", 2, "--methods", "cstc", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout))
    assert results[0]["methods"] == results[1]["methods"]
    assert [Path(result["folder"]).name for result in results] == ["demo", "demo-2"]
    assert results[0]["experiment"]["seeds"] == [0, 1]


def test_run_file_engine_out_and_resume(tmp_path):
    (tmp_path / "mine.toml").write_text('name = "mine"\nmethods = ["pdfl"]\nseeds = [4]\n')
    words = ["run", "mine.toml", *TINY, "--engine", "reference", "--out", "there", "--json"]
    first = command(*words, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    refused = command(*words, cwd=tmp_path)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    again = command(*words, "--resume", cwd=tmp_path)
    assert json.loads(again.stdout)["methods"] == json.loads(first.stdout)["methods"]
    assert json.loads(first.stdout)["experiment"]["engine"]["name"] == "reference"


def test_show_prints_an_experiment_that_can_be_run(tmp_path):
    shown = command("run", *TINY, "--seeds", 1, "--methods", "pdfl", "--show", cwd=tmp_path)
    assert not (tmp_path / "runs").exists()
    (tmp_path / "shown.toml").write_text(shown.stdout)
    again = command("run", "shown.toml", "--show", cwd=tmp_path)
    assert again.stdout == shown.stdout
    assert 'methods = [\n    "pdfl",\n]' in shown.stdout


def test_own_method_and_model_from_the_working_folder(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from torch import nn\n"
        "def never_mix(setting):\n"
        "    from ssdfl.methods import METHODS\n"
        "    return METHODS['pdfl'].schedule(setting)\n"
        "def model(shape, classes):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(16, classes))\n"
    )
    words = [
        *TINY,
        "--methods",
        "mine:never_mix",
        "--set",
        "model.name=mine:model",
        "--seeds",
        1,
        "--json",
    ]
    done = command("run", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["methods"][0]["method"] == "mine:never_mix"


OWN_PARTS = """
from ssdfl.methods.rules.plain import AdaptThenCombine

class Late(AdaptThenCombine):
    def __init__(self, first: int, second: str) -> None:
        assert (first, second) == (1, "two")

def descent(gradient, theta, memory, *, scale=1.0):
    return scale * gradient, memory

def share(cycle: int, cycles: int, part: float = 1.0) -> float:
    return part
"""


def results(*words, cwd):
    """Each method's results, by its name."""
    done = command("run", *words, *TINY, "--seeds", 1, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return {one.pop("method"): one for one in json.loads(done.stdout)["methods"]}


def test_own_rule_optimizer_and_rate_by_words_and_in_a_file(tmp_path):
    """Made to equal `atc` with SGD: half the rate, and twice the gradient."""
    (tmp_path / "parts.py").write_text(OWN_PARTS)
    own = "ssdfl+parts:Late:first=1,second=two"
    optimizer, rate = "parts:descent:scale=2", "parts:share:part=0.5"
    (tmp_path / "own.toml").write_text(
        f'methods = ["{own}"]\n[optimizers]\nkind = "{optimizer}"\n[training]\nrate = "{rate}"\n'
    )
    sets = ["--set", f"optimizers.kind={optimizer}", "--set", f"training.rate={rate}"]
    by_words = results("--methods", f"sdfl,{own},pdfl", *sets, cwd=tmp_path)
    assert list(by_words) == ["sdfl", own, "pdfl"]
    plain = results("--methods", "ssdfl+atc,ssdfl", "--set", "optimizers.kind=sgd", cwd=tmp_path)
    assert by_words[own] == plain["ssdfl+atc"] != plain["ssdfl"]
    assert results("own.toml", cwd=tmp_path) == {own: plain["ssdfl+atc"]}


def test_graph_prints_facts_draws_and_converts(tmp_path):
    done = command(
        "graph", "er:n=12,p=0.0,seed=0", "--clusters", 3, "--save", "net.graphml", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "11 to make it connected" in done.stdout
    assert (tmp_path / "er-n12-p0.0-seed0.png").read_bytes().startswith(b"\x89PNG")
    again = command("graph", "net.graphml", "--json", cwd=tmp_path)
    facts = json.loads(again.stdout)
    assert (facts["devices"], facts["links"], len(facts["added_links"])) == (12, 11, 11)
    assert not (tmp_path / "net.png").exists()


def test_graph_certifies_conductance_and_checks_the_certificate(tmp_path):
    words = ["graph", "barbell:size=4", "--json"]
    certified = command(*words, "--certify", "proof.json", cwd=tmp_path)
    assert certified.returncode == 0, certified.stderr
    checked = command(*words, "--check", "proof.json", cwd=tmp_path)
    facts = json.loads(checked.stdout)
    assert facts == json.loads(certified.stdout)
    assert facts["conductance_exact"]
    assert facts["conductance"] == pytest.approx([1 / 20, 1 / 20])
    other = command("graph", "complete:n=8", "--json", "--check", "proof.json", cwd=tmp_path)
    assert other.returncode == 2
    assert "a proof for this network" in other.stderr
    assert "Traceback" not in other.stderr


def test_plan_is_shown_written_and_used(tmp_path):
    (tmp_path / "devices.csv").write_text(
        "device,label_0,label_1\n" + "".join(f"{i},1,{i}\n" for i in range(6))
    )
    words = ["plan", "barbell:size=3", "--devices", "devices.csv", "--out", "plan.json"]
    shown = command(*words, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "cluster 0: 0, 1" in shown.stdout
    formed = json.loads(command(*words, "--json", cwd=tmp_path).stdout)
    assert formed.pop("explanation")["one_cluster_s"] > 0
    assert formed == json.loads((tmp_path / "plan.json").read_text())
    done = command(
        "run",
        *TINY,
        "--plan",
        "plan.json",
        "--methods",
        "ssdfl",
        "--seeds",
        1,
        "--out",
        "r",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    used = json.loads((tmp_path / "r" / "seed-0" / "plan.json").read_text())
    assert used["clusters"] == formed["clusters"]


def test_a_plan_page_is_written(tmp_path):
    done = command("plan", "sites:sites=3,size=4,seed=0", "--html", "plan.html", cwd=tmp_path)
    assert done.returncode == 0
    assert "cluster 2: 8, 9, 10, 11" in done.stdout
    assert "Lemma 1" in done.stdout
    assert "mode literal: 0 numbers of clusters were not weighed, 0 cuts not tried" in done.stdout
    assert "12 devices in 3 clusters" in (tmp_path / "plan.html").read_text()


def test_the_papers_formation_by_name(tmp_path):
    words = ["plan", "complete:n=10", "--partition", "paper", "--score", "stationarity", "--json"]
    formed = json.loads(command(*words, cwd=tmp_path).stdout)
    assert (formed["num_clusters"], formed["partition"], formed["score_name"]) == (
        4,
        "paper",
        "stationarity",
    )
    assert formed["candidates"][1]["rule"] == "threshold"


def test_a_score_of_ones_own_in_the_working_folder(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def few(inputs, clusters):\n    return abs(len(clusters) - 2)\n"
    )
    done = command("plan", "complete:n=6", "--score", "mine:few", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["num_clusters"] == 2


def test_a_threshold_that_is_overruled_is_told(tmp_path):
    lines = ["device,label_0,label_1", *(f"{k},{k // 5},{1 - k // 5}" for k in range(10))]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    words = ["plan", "path:n=10", "--devices", "d.csv"]
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 0
    assert "the conductance threshold is overruled" in done.stderr
    strict = command(*words, "--strict", "--json", cwd=tmp_path)
    assert json.loads(strict.stdout)["choice"] == "feasible"


def test_bounds_of_a_network_and_of_a_run(tmp_path):
    drawn = command("bounds", "er:n=8,p=0.4,seed=1", "--tau-a", "1,3", "--json", cwd=tmp_path)
    panels = json.loads(drawn.stdout)["panels"]
    assert set(panels) == {"mild, hybrid", "extreme, hybrid", "mild, SGD", "extreme, SGD"}
    for curves in panels.values():
        assert all(len(values) == 8 and values[-1] == min(values) for values in curves.values())
    assert (tmp_path / "bounds.png").stat().st_size > 10_000
    gaps = ("--set", "evaluate.gaps=true", "--set", "training.local_steps=1")
    command("run", *TINY, *gaps, "--methods", "ssdfl", "--seeds", 1, "--out", "r", cwd=tmp_path)
    done = command("bounds", "r", cwd=tmp_path)
    assert done.returncode == 0
    assert "Theorem 1" in done.stdout
    assert (tmp_path / "r" / "bounds.png").exists()
    rows = json.loads(command("bounds", "r", "--json", cwd=tmp_path).stdout)["rows"]
    assert {row["statement"] for row in rows} == {"Lemma 1", "Lemma 2", "Theorem 1"}


def test_a_plan_that_nothing_satisfies_warns_with_the_numbers(tmp_path):
    done = command("plan", "path:n=6", "--learning-rate", 0.5, cwd=tmp_path)
    assert done.returncode == 0
    assert "warning: no candidate" in done.stderr
    assert (
        "nor a learning rate down to 1/100 makes this few clusters reach their threshold"
        in done.stderr
    )


def test_reports_of_one_run_and_of_several(tmp_path):
    for name in ("a", "b"):
        done = command(
            "run", *TINY, "--seeds", 1, "--methods", "ssdfl", "--out", name, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    (tmp_path / "a" / "report.html").unlink()
    assert command("report", "a", cwd=tmp_path).stdout == "a/report.html\n"
    assert (tmp_path / "a" / "report.html").exists()
    assert command("report", "a", "b", cwd=tmp_path).stdout == "comparison.html\n"
    assert "ssdfl in b" in (tmp_path / "comparison.html").read_text()


def test_a_live_run_says_its_address_and_leaves_nothing_running(tmp_path):
    words = [
        "run",
        *TINY,
        "--seeds",
        1,
        "--methods",
        "ssdfl",
        "--out",
        "r",
        "--live",
        "--log",
        "tensorboard",
    ]
    done = command(*words, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    address = re.search(r"^Live: (http://127\.0\.0\.1:\d+/)$", done.stderr, re.MULTILINE)[1]
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address)
    assert json.loads(done.stdout)["report"] == "r/report.html"
    assert len(list((tmp_path / "r" / "tensorboard" / "ssdfl" / "seed-0").iterdir())) == 1


def test_data_list(tmp_path):
    rows = json.loads(
        command("data", "list", "--json", cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path)).stdout
    )
    assert [row["name"] for row in rows] == [
        *("digits", "diabetes", "housing", "logbooks"),
        *("fmnist", "cifar10", "fmnist-half", "cifar10-half"),
    ]
    assert rows[0]["found"] == "built in"
    assert "ssdfl data fetch cifar10" in command("data", "list", cwd=tmp_path).stdout


DISCONNECTED = "source,target\na,b\nc,d\n"


@pytest.mark.parametrize(
    ("words", "named", "remedy"),
    [
        (["run", "--set", "training.lerning_rate=1"], "training.lerning_rate", "learning_rate"),
        (["run", "--set", "network.spec=er:n=30,p=1.5"], "p = 1.5", "[0, 1]"),
        (["run", "--set", "network.spec=er:n=0,p=0.5"], "n = 0", "at least 1"),
        (["run", "--set", "network.spec=net.csv"], "connected parts = 2", "Add a link between"),
        (["run", "--methods", "ssdfl,magic"], "magic", "sdfl"),
        (["run", "--seeds", "0"], "--seeds = 0", "at least 1"),
        (["run", "nowhere.toml"], "nowhere.toml", "TOML"),
        (["run", "--data", "nowhere", "--set", "data.name=fmnist"], "nowhere", "--data"),
        (["run", "--data", ".", "--set", "data.name=fmnist"], "train-images", "ssdfl data fetch"),
        (["graph", "net.csv"], "connected parts = 2", "Add a link between"),
        (["graph", "er:n=30,p=1.5"], "p = 1.5", "[0, 1]"),
        (["graph", "ring:n=5", "--mixing", "magic"], "magic", "metropolis"),
        (["graph", "ring:n=5", "--picture", "a.doc"], "a.doc", ".png or .pdf"),
        (["bounds", "ring:n=5", "--picture", "a.doc"], "a.doc", ".png or .pdf"),
        (["data", "describe", "--out", "a.doc"], "a.doc", ".png or .pdf"),
        (["graph", "ring:n=5", "--clusters", "9"], "9", "[1, 5]"),
        (["graph", "ring:n=5", "--check", "net.csv"], "--check net.csv", "written by --certify"),
        (
            ["graph", "ring:n=5", "--check", "a.json", "--certify", "b.json"],
            "b.json, a.json",
            "one of them",
        ),
        (["graph", "ring:n=1001", "--certify", "a.json"], "1001", "at most 1,000 devices"),
        (["data", "fetch", "mnist"], "mnist", "fmnist"),
        (["run", "--methods", ""], "method = ", "ssdfl"),
        (["run", "--port", "8000"], "--port = 8000", "Add --live"),
        (["run", "--live", "--port", "70000"], "--port = 70000", "[0, 65535]"),
        (["run", "--live", "--set", "network.spec=er:n=0,p=0.5"], "n = 0", "at least 1"),
        (["run", "--log", "comet"], "--log = comet", "tensorboard, mlflow, wandb"),
        (["report", "nowhere"], "run folder = nowhere", "Check the path"),
        (["report", "nowhere", "nowhere"], "runs = nowhere, nowhere", "different folders"),
        (["report", "nowhere", "--out", "a.html"], "--out = a.html", "to its folder"),
        (["run", "--plan", "nowhere.json"], "nowhere.json", "plan.json"),
        (["plan", "net.csv"], "connected parts = 2", "Add a link between"),
        (["plan", "complete:n=1"], "number of devices = 1", "at least 2"),
        (
            ["plan", "ring:n=5", "--learning-rate", "nan"],
            "training.learning_rate = nan",
            "a finite number",
        ),
        (["plan", "ring:n=5", "--devices", "net.csv"], "header of net.csv", "device[,label_0"),
        (["plan", "ring:n=5", "--score", "beauty"], "score = beauty", "one of time"),
        (["bounds", "ring:n=5", "--tau-a", "some"], "--tau-a = some", "whole numbers"),
        (["bounds", "ring:n=5", "--tau-a", "0"], "tau_a = 0", "in [1, 10000]"),
        (["bounds", "nowhere"], "nowhere", "a kind"),
        (["plan", "ring:n=5", "--mode", "lazy"], "clusters.mode = lazy", "auto, literal or fast"),
        (
            ["plan", "ring:n=5", "--partition", "fair"],
            "clusters.partition = fair",
            "cost, balanced or paper",
        ),
        (["plan", "ring:n=5", "--tolerance", "-1"], "clusters.tolerance = -1.0", "greater than 0"),
        (["plan", "ring:n=5", "--message-bytes", "0"], "message_bytes = 0", "at least 1"),
        (
            ["plan", "ring:n=5", "--mixing", "fair"],
            "network.mixing = fair",
            "metropolis, lazy or fastest",
        ),
        (["plan", "ring:n=5", "--set", "schedule.tau=3"], "schedule.tau = 3", "tau_a"),
        (["plan", "--experiment", "nowhere.toml"], "nowhere.toml", "TOML"),
        (
            ["plan", "ring:n=5", "--learning-rate", "1e200"],
            "learning_rate = 1e+200",
            "above 0, to 1e+50",
        ),
        (["plan", "ring:n=5", "--score", "math:sqrt"], "score sqrt of 1 clusters", "a number"),
        (["run", "--out", "net.csv/x", "--set", "cycles=1"], "net.csv", "usable path"),
        (["graph", "ring:n=5", "--save", "net.csv/x.csv"], "net.csv", "usable path"),
        (["run", "--set", "network.spec=[/x].csv"], "[/x].csv", "existing file"),
    ],
)
def test_bad_input_gives_one_line_and_exit_code_2(tmp_path, words, named, remedy):
    (tmp_path / "net.csv").write_text(DISCONNECTED)
    for part in ("train", "t10k"):
        for kind in ("images-idx3", "labels-idx1"):
            whole = gzip.compress(b"\0\0\x08\x01\0\0\x10\0" + bytes(4096))
            (tmp_path / f"{part}-{kind}-ubyte.gz").write_bytes(whole[:-8])
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("ssdfl: ")
    assert named in line
    assert remedy in line
    assert not (tmp_path / "runs").exists()


def test_interrupted_runs_say_how_to_go_on(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from ssdfl.methods import METHODS\n"
        "def stop(setting):\n"
        "    plain = METHODS['sdfl'].schedule(setting)\n"
        "    def schedule(t):\n"
        "        if t == 13: raise KeyboardInterrupt\n"
        "        return plain(t)\n"
        "    return schedule\n"
    )
    words = [
        *TINY,
        "--set",
        "cycles=5",
        "--methods",
        "sdfl,mine:stop",
        "--seeds",
        1,
        "--out",
        "there",
    ]
    done = command("run", *words, cwd=tmp_path)
    assert done.returncode == 130
    assert "--resume --out there" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "there" / "seed-0" / "sdfl" / "metrics.parquet").exists()


def test_a_model_is_exported_and_trained_longer(tmp_path):
    run = ("run", "--methods", "ssdfl,pdfl", "--seeds", 1, "--out", "out", *TINY)
    assert command(*run, cwd=tmp_path).returncode == 0
    longer = command(*run, "--resume", "--set", "cycles=3", cwd=tmp_path)
    assert longer.returncode == 0, longer.stderr
    export = ("export", "out", "--out", "model.safetensors", "--device", 2)
    done = command(*export, "--method", "ssdfl", cwd=tmp_path)
    assert done.stdout == "model.safetensors: device 2 of ssdfl, seed 0, after cycle 3.\n"
    assert (tmp_path / "model.safetensors").stat().st_size > 1000
    for words, message in (
        (export, "--method = none: expected one of ssdfl, pdfl"),
        ((*export, "--method", "ssdfl", "--seed", 9), "--seed = 9: expected one of 0"),
        (
            (*export, "--method", "ssdfl", "--device", "x"),
            "device = x: expected a number from 0 to 5",
        ),
        (("export", "nowhere", "--out", "model.pt2"), "run folder = nowhere"),
    ):
        refused = command(*words, cwd=tmp_path)
        assert refused.returncode == 2
        assert message in refused.stderr
        assert "Traceback" not in refused.stderr
