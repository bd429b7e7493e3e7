"""``ssdfl plan`` plans for the training that ``ssdfl run`` does."""

import json
import subprocess
import sys

import pytest

from commands import quick_command
from ssdfl.clusters import FormationSettings
from ssdfl.records import Experiment
from ssdfl.records.formation import TaskFacts, formation_settings

TINY = """
methods = ["ssdfl"]
seeds = [3, 4]
cycles = 1

[network]
spec = "sites:sites=3,size=3"

[data]
name = "helpers:tiny_data"
labels_per_device = 2

[model]
name = "logreg"

[training]
learning_rate = 0.02
"""
UNLIKE_DEFAULTS = """
[network]
spec = "er:n=9,p=0.4"
mixing = "lazy"

[schedule]
tau_a = 2
tau_r = 3

[clusters]
partition = "paper"
score = "bytes"
mode = "fast"
strict = true
tolerance = 40.0
gradient_bound = 2.5
threshold_step = "eta_E"
variance_floor = 0.2
optimizer_weights = [1, 0.5, 2.0]
optimizer_amplification = [0.1, 0.3]
data_amplification = [0.0, 0.4]
"""


def command(*words, cwd, **environment):
    done = quick_command(*words, cwd=cwd, COLUMNS="200", **environment)
    assert done.returncode == 0, done.stderr
    return done


def planned(*words, cwd):
    """What plan.json holds; --json has the explanation beside it."""
    data = json.loads(command("plan", *words, "--json", cwd=cwd).stdout)
    assert data.pop("explanation")["cycle_s"] > 0
    return data


def test_python_the_command_and_runs_share_defaults():
    assert formation_settings(Experiment(), TaskFacts()) == FormationSettings()


def test_training_steps_raise_the_threshold_only_if_asked(tmp_path):
    drift = []
    for more in ((), ("--with-tau-a",)):
        plan = planned("ring:n=9", "--tau-a", "5", *more, cwd=tmp_path)
        threshold = plan["candidates"][0]["threshold"]
        drift.append(threshold**2 - 2 * plan["settings"]["learning_rate"])
    assert drift[1] == pytest.approx(5 * drift[0])


def test_it_shows_the_plan_that_a_run_forms_for_its_first_seed(tmp_path):
    (tmp_path / "mine.toml").write_text(TINY)
    command("run", "mine.toml", "--out", "r", cwd=tmp_path)
    expected = json.loads((tmp_path / "r" / "seed-3" / "plan.json").read_text())
    assert planned("--experiment", "mine.toml", cwd=tmp_path) == expected
    assert expected["settings"]["message_bytes"] == 4 * (16 * 4 + 4)


def test_it_follows_every_key_that_formation_reads(tmp_path):
    text = TINY.replace('[network]\nspec = "sites:sites=3,size=3"\n', UNLIKE_DEFAULTS)
    (tmp_path / "mine.toml").write_text(text)
    command("run", "mine.toml", "--out", "r", cwd=tmp_path)
    expected = json.loads((tmp_path / "r" / "seed-3" / "plan.json").read_text())
    assert planned("--experiment", "mine.toml", cwd=tmp_path) == expected


def test_settings_and_a_network_change_what_is_planned_for(tmp_path):
    (tmp_path / "mine.toml").write_text(TINY)
    words = ["--experiment", "mine.toml"]
    changed = planned(
        "barbell:size=3", *words, "--set", "schedule.tau_a=2", "--tau-r", 4, cwd=tmp_path
    )
    assert changed["num_devices"] == 6
    assert (changed["settings"]["tau_a"], changed["settings"]["tau_r"]) == (2, 4)
    assert changed["settings"]["learning_rate"] == 0.02


def test_the_threshold_step_is_an_option(tmp_path):
    def first_threshold(*words):
        return planned("barbell:size=3", *words, cwd=tmp_path)["candidates"][0]["threshold"]

    four = ["--local-steps", 4, "--learning-rate", 0.01, "--threshold-step", "eta_E"]
    assert first_threshold(*four) == first_threshold("--local-steps", 1, "--learning-rate", 0.04)


def test_only_a_network_is_planned_without_torch(tmp_path):
    code = (
        "import sys; sys.argv = ['ssdfl', 'plan', 'barbell:size=3', '--json']\n"
        "from ssdfl.cli.main import app\n"
        "app(standalone_mode=False)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    settings = json.loads(done.stdout)["settings"]
    default = Experiment()
    assert settings["learning_rate"] == default.training.learning_rate
    assert settings["local_steps"] == default.training.local_steps
    assert settings["tau_a"] == default.schedule.tau_a
    assert "assumed (--experiment measures it): all devices alike, B = 1, γ̂ = 1" in done.stderr


def test_it_says_what_is_given_measured_or_assumed(tmp_path):
    (tmp_path / "mine.toml").write_text(TINY)
    words = ["plan", "--experiment", "mine.toml", "--gradient-bound", 3, "--message-bytes", 7]
    told = command(*words, cwd=tmp_path).stderr
    assert (
        "given: B = 3, 7 bytes per message; measured on helpers:tiny_data with logreg, seed 3: "
        in told
    )
    assert "what devices hold, γ̂ = " in told
    quick = command(*words, "--quick", cwd=tmp_path).stderr
    assert "assumed" in quick
    assert "measured on" not in quick


def test_data_that_would_have_to_be_downloaded_is_not(tmp_path):
    (tmp_path / "none").mkdir()
    words = [
        "plan",
        "--set",
        "data.name=cifar10",
        "--set",
        "network.spec=ring:n=4",
        "--data",
        "none",
    ]
    told = command(*words, cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path)).stderr
    assert (
        "assumed, as cifar10 is not on disk (ssdfl data fetch cifar10): all devices alike" in told
    )


@pytest.mark.parametrize("given", ["clusters.number=2", "clusters.plan=plan.json"])
def test_clusters_that_an_experiment_gives_are_told(tmp_path, given):
    told = command("plan", "--quick", "--set", given, cwd=tmp_path).stderr
    assert (
        "note: ssdfl run forms no clusters here, "
        f"since the experiment has {given.replace('=', ' = ')}" in told
    )


def test_an_operators_story(tmp_path):
    """A device is replaced: the old plan says so, and two plans are compared."""
    rows = ["source,target,latency_ms"]
    rows += [f"{site}{i},{site}{j},1" for site in "ab" for i in range(4) for j in range(i)]
    (tmp_path / "old.csv").write_text("\n".join([*rows, "a0,b0,200"]))
    (tmp_path / "new.csv").write_text("\n".join([*rows, "a0,b0,200"]).replace("b3", "a9"))
    words = ["--out", "old.json", "--export", "old-clusters.csv", "--export", "old.graphml"]
    told = command("plan", "old.csv", *words, cwd=tmp_path).stdout
    assert "Upgrade a0 – b0 (200 ms, 12.5 MB/s) first" in told
    assert "a3,0" in (tmp_path / "old-clusters.csv").read_text()
    command("plan", "new.csv", "--out", "new.json", cwd=tmp_path)
    settings = ["--set", "network.spec=new.csv", "--set", "data.name=helpers:tiny_data"]
    done = quick_command(
        "run", *settings, "--plan", "old.json", "--out", "r", cwd=tmp_path, COLUMNS="200"
    )
    assert done.returncode == 2
    assert "1 device new (a9), 1 device gone (b3)" in done.stderr
    compared = command(
        "plan", "--diff", "old.json", "new.json", "--html", "d.html", cwd=tmp_path
    ).stdout
    assert "1 new: a9" in compared
    assert "0 devices move" in compared
    assert "<td>a9</td><td>new</td>" in (tmp_path / "d.html").read_text()
    data = json.loads(
        command("plan", "--diff", "old.json", "new.json", "--json", cwd=tmp_path).stdout
    )
    assert (data["new"], data["gone"]) == (["a9"], ["b3"])


def test_a_plan_is_repaired_for_a_changed_network(tmp_path):
    rows = ["source,target,latency_ms"]
    rows += [f"{site}{i},{site}{j},1" for site in "ab" for i in range(4) for j in range(i)]
    (tmp_path / "old.csv").write_text("\n".join([*rows, "a0,b0,200"]))
    (tmp_path / "new.csv").write_text("\n".join([*rows, "a0,b0,200", "a9,a0,1", "a9,a1,1"]))
    command("plan", "old.csv", "--tau-a", "3", "--out", "old.json", cwd=tmp_path)
    told = command("plan", "new.csv", "--repair", "old.json", "--out", "new.json", cwd=tmp_path)
    assert "2 clusters instead of 2; 0 devices move." in told.stdout
    assert "1 new: a9" in told.stdout
    assert "why: a9 (new) to the cluster of a0, over the fastest links." in told.stdout
    assert "training as in old.json" in told.stderr
    assert "a new plan is not worth forming" in told.stderr
    written = json.loads((tmp_path / "new.json").read_text())
    assert (written["choice"], written["settings"]["tau_a"]) == ("repaired", 3)
    words = ["--repair", "old.json", "--tau-a", "4", "--html", "p.html", "--json"]
    data = json.loads(command("plan", "new.csv", *words, cwd=tmp_path).stdout)
    assert data["settings"]["tau_a"] == 4
    assert data["repair"]["difference"]["new"] == ["a9"]
    assert "different training" in data["repair"]["difference"]["notes"][0]
    assert "9 devices in 2 clusters" in (tmp_path / "p.html").read_text()


def test_a_repair_says_that_it_lacks_the_file_of_devices_of_the_old_plan(tmp_path):
    rows = [f"{number},{1 if number < 5 else 1000}" for number in range(10)]
    (tmp_path / "d.csv").write_text("\n".join(["device,uplink_Mbps", *rows]))
    command("plan", "ring:n=10", "--devices", "d.csv", "--out", "old.json", cwd=tmp_path)
    given = ["plan", "ring:n=10", "--repair", "old.json", "--out", "new.json"]
    told = command(*given, "--devices", "d.csv", cwd=tmp_path)
    assert "--devices" not in told.stderr
    score = json.loads((tmp_path / "new.json").read_text())["score"]
    for _ in range(2):  # a repair of the repair lacks it, too
        told = command(*given, cwd=tmp_path)
        assert "the old plan was made with the devices of d.csv" in told.stderr
        written = json.loads((tmp_path / "new.json").read_text())
        assert written["score"] < 0.5 * score
        given[3] = "new.json"


def test_what_a_network_file_holds_and_is_not_read_is_told(tmp_path):
    (tmp_path / "net.csv").write_text("source,target,colour\na,b,red\nb,c,blue\n")
    words = [sys.executable, "-m", "ssdfl", "plan", "net.csv"]
    told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    assert told.startswith("ssdfl: net.csv: ignored attributes of links: colour\n")
