"""The docs' keys, methods and specs match the code, and the commands they show run."""

import re
import shlex
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

import claims
import findings
import gallery
import held_out
from ssdfl.cli.main import app
from ssdfl.clusters import form_clusters, unknown_devices
from ssdfl.clusters.scores import ScoreInputs
from ssdfl.graph import MIXINGS, TOPOLOGIES, load_network
from ssdfl.methods import catalogue
from ssdfl.records import Experiment, make_experiment
from ssdfl.theory import Constants

ROOT = Path(__file__).parents[1]
EXPERIMENTS = (ROOT / "docs" / "experiments.md").read_text()
NETWORKS = (ROOT / "docs" / "networks.md").read_text()


def keys(values, prefix=""):
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from keys(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


@pytest.mark.parametrize(("key", "default"), list(keys(Experiment().model_dump(mode="json"))))
def test_every_key_is_documented_with_its_default(key, default):
    row = re.search(rf"^\| `{re.escape(key)}` \| (.*?) \|", EXPERIMENTS, re.MULTILINE)
    assert row, f"docs/experiments.md lacks {key}"
    if key != "methods":
        assert tomllib.loads(f"x = {row[1].strip('`')}")["x"] == default


def test_no_key_is_documented_that_does_not_exist():
    documented = set(re.findall(r"^\| `([\w.]+)` \| `", EXPERIMENTS, re.MULTILINE)) | {"methods"}
    assert documented == {key for key, _ in keys(Experiment().model_dump(mode="json"))}


def test_the_example_experiment_is_valid():
    example = re.search(r"```toml\n(.*?)```", EXPERIMENTS, re.DOTALL)
    assert make_experiment(tomllib.loads(example[1])).model.name == "cnn"


def test_every_documented_spec_builds_and_every_kind_is_documented():
    specs = re.findall(
        r"`([a-z]+:[a-z]+=\d[^`]*)`|^\| `([a-z]+)` \|", NETWORKS.split("## Files")[0], re.M
    )
    specs = [with_keys or without for with_keys, without in specs]
    assert {spec.partition(":")[0] for spec in specs} == set(TOPOLOGIES)
    for spec in specs:
        assert load_network(spec).num_devices >= 10


def test_methods_and_mixings_are_documented():
    assert all(f"`{name}`" in NETWORKS for name in MIXINGS)
    methods = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    for entry in catalogue():
        named = re.search(rf"`{entry.name}[`:]", methods)
        assert named or entry.name == "none", entry.name


def test_every_schedule_and_rule_has_a_section():
    methods = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    headings = " ".join(line for line in methods.splitlines() if line.startswith("### "))
    for entry in catalogue():
        if entry.kind in ("schedule", "rule"):
            assert f"`{entry.name}`" in headings, entry.name


def test_reasons_name_tests_that_exist():
    named = re.findall(r"tests/[\w/]+\.py", " ".join(ONLY_PARSED.values()))
    assert [name for name in named if not (ROOT / name).exists()] == []


PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "reproduce/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Commands that are only parsed, by how they begin, and why.
ONLY_PARSED = {
    "mesh up": "a process per device for minutes; tests/cli/test_mesh.py does it",
    "mesh collect": "gathers what mesh up left; tests/cli/test_mesh.py does it",
    "mesh init experiment.toml": "a reader's experiment and hosts; tests/cli/test_mesh.py has some",
    "mesh init --out mesh --set data.name=sites/": "own files: tests/mesh/test_own_data.py does",
    "mesh init --out mesh --hosts deploy/hosts.csv": "containers; tests/test_deploy.py does it",
    "mesh add": "needs the reader's newcomers; tests/cli/test_membership.py has some",
    "mesh remove": "needs a mesh with its names; tests/cli/test_membership.py has one",
    "run --set data.name=sites/": "the same",
    "data summarise shop.json": "others' summaries; tests/learning/test_summaries.py merges some",
    "device": "waits for its neighbours on other hosts; tests/mesh/test_walk_through.py does it",
    "run --engine mesh": "a process per device; tests/cli/test_mesh.py does it",
    "reproduce": "needs Fashion-MNIST or CIFAR-10; tests/cli/test_reproduce.py runs stand-ins",
    "run my.toml --engine distributed": "ranks; tests/experiments/test_distributed_run.py does it",
    "report": "opens a browser, and compares runs of the reader's; tests/cli/test_cli.py does it",
    "run --log": "other libraries warn, an error here; tests/experiments/test_logs.py does it",
    "sweep": "many runs in processes; tests/records/test_sweep.py does it",
    "data fetch": "downloads; tests/learning/test_sources.py does it from a local server",
}
# Commands of other hosts and schedulers, which nothing here can check.
ELSEWHERE = {"scp", "ssh", "systemctl", "docker", "sbatch", "srun", "torchrun", "ray"}
# Of the block on certificates, which tests/mesh/test_certificates.py runs.
ELSEWHERE |= {"openssl", "printf", "chmod"}
# Laid over every `ssdfl run`, so that a page takes seconds.
SHORT = ("--set", "cycles=1", "--set", "evaluate.samples=50", "--seeds", "1")
# Python that is not a programme.
NOT_PROGRAMMES = {"Step(train, W)  # (N,) who trains": "docs/architecture.md tells two types"}


@dataclass(frozen=True)
class Block:
    """A fenced block, and the file that the sentence above it says it is ("… as `name`:")."""

    language: str
    text: str
    file: str

    def commands(self):
        joined = self.text.replace("\\\n", " ")
        return [
            words for line in joined.splitlines() if (words := shlex.split(line, comments=True))
        ]


def blocks(page):
    found = re.finditer(
        r"(?:as `([\w./-]+)`:\n+)?^```(\w+)\n(.*?)^```$",
        page.read_text(encoding="utf-8"),
        re.M | re.S,
    )
    return [
        Block(language, text, file or "") for file, language, text in (m.groups() for m in found)
    ]


def run_command(words, capsys):
    """One `ssdfl` command line; `> file` writes what it printed."""
    words, target = (words[:-2], words[-1]) if words[-2:-1] == [">"] else (words, None)
    line = " ".join(words)
    if any(line.startswith(start) for start in ONLY_PARSED):
        words = [*words, "--help"]  # unknown options are refused before help is printed
    elif words[0] == "run" and "--show" not in words:
        words = [*words, *SHORT]
    capsys.readouterr()
    assert app(words, standalone_mode=False) in (None, 0), line
    if target is not None:
        Path(target).write_text(capsys.readouterr().out, encoding="utf-8")


def check_other_command(words):
    """What is not `ssdfl` must at least be there: a script, a make target, an extra."""
    if words[0] == "python":
        assert (ROOT / words[1]).is_file(), words
    elif words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), words
    elif words[0] == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for extra in re.findall(r"\[(\w+)\]", words[-1]):
            assert extra in extras["optional-dependencies"], words
    else:
        assert words[0] in ELSEWHERE, f"{words}: say in this test how it is checked"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_tells_one_to_run_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before, namespace = set(sys.modules), {"__name__": "page"}
    try:
        for block in blocks(page):
            if block.file:
                Path(block.file).write_text(block.text, encoding="utf-8")
            elif block.language == "python" and not any(s in block.text for s in NOT_PROGRAMMES):
                exec(compile(block.text, str(page), "exec"), namespace)
            elif block.language == "sh":
                for words in block.commands():
                    program = words[0].removeprefix(".venv/bin/")
                    if program == "ssdfl":
                        run_command(words[1:], capsys)
                    else:
                        check_other_command([program, *words[1:]])
    finally:
        for name in set(sys.modules) - before:
            if name.startswith("my_"):
                del sys.modules[name]


def test_nothing_is_excused_that_no_page_says():
    said = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert all(text in said for text in NOT_PROGRAMMES)
    assert all(f"ssdfl {start}" in said for start in ONLY_PARSED)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_no_link_is_dead(name):
    """Links between the site's pages are checked when it is built, with warnings as errors."""
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text(encoding="utf-8")):
        assert target.removeprefix("docs/") in site or (ROOT / target).exists(), target


def test_the_costs_that_concepts_tells_are_those_of_the_network():
    network = load_network("sites:sites=4,size=5,seed=0")
    everyone = range(network.num_devices)
    constants = Constants(tau_a=5, tau_r=1, local_steps=2)
    inputs = ScoreInputs(network, unknown_devices(network), constants, message_bytes=4 * 4810)
    for name, clusters in (
        ("`pdfl`", tuple((device,) for device in everyone)),
        ("`ssdfl`, the sites", form_clusters(network).clusters),
        ("`sdfl`", (tuple(everyone),)),
    ):
        cost = inputs.cycle_cost(clusters)
        told = [
            str(cost.transmissions),
            f"{cost.sent_bytes / 1e6:.1f}",
            f"{1000 * cost.time_s:.0f}",
        ]
        text = (
            (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8").split("| a cycle of |")[1]
        )
        row = re.search(rf"^\| {name}[^|]*\| (.*) \|$", text, re.M)
        assert [cell.strip() for cell in row[1].split("|")] == told


def test_the_speeds_that_the_comparison_tells_are_those_measured():
    measured = (
        (ROOT / "docs" / "performance.md")
        .read_text(encoding="utf-8")
        .split("## Against other tools")[1]
    )
    told = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").split("## Speed")[1]
    rows = re.findall(
        r"^\| (plain PyTorch loop|gossipy|Decent-DP|Flower|p2pfl)[^|]*\| (.*) \|$", told, re.M
    )
    assert len(rows) == 5
    for tool, cells in rows:
        slower = re.findall(rf"^\| {tool} \|(?:[^|\n]*\|){{4}} ([\d.]+) \|", measured, re.M)
        assert [float(x) for x in re.findall(r"([\d.]+) ×", cells)] == pytest.approx(
            [float(x) for x in slower], abs=0.05
        )


def test_the_claims_page_has_the_numbers_of_the_results():
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    averaged, without = (
        (ROOT / "docs" / "studies" / "cnn" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("averaged", "plain")
    )
    results = ROOT / "reproduce" / "results"
    of_profiles = (
        ("small", 20, page),
        ("medium", 9, page),
        ("averaged", 7, averaged),
        ("plain", 7, without),
    )
    for profile, least, shown in of_profiles:
        table = claims.table(results / profile)
        assert table.count("\n") > least
        assert table in shown
        assert held_out.criteria(results / profile) in shown
        assert held_out.agreement(results / profile) in shown
    assert claims.table(results / "medium-averaged") in page
    for found in (held_out.criteria, held_out.agreement):
        assert found(results / "larger") in page
        assert found(results / "drawn") in page
    assert findings.RULE in page
    assert claims.costs(results / "small", "beyond-costs") in page
    assert claims.costs(results / "medium", "beyond-tables") in page
    assert claims.costs(results / "plain", "beyond-tables") in without


def test_the_page_of_results_shows_every_result():
    page = (ROOT / "reproduce" / "results" / "README.md").read_text(encoding="utf-8")
    assert page == gallery.page()
    for path in (ROOT / "reproduce" / "results").glob("*/*.md"):
        assert f"({path.parent.name}/{path.name})" in page


def test_the_badges_are_true():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    badges = " ".join(
        re.findall(r"^\[!\[([^]]+)\]", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    )
    versions = re.findall(r":: Python :: (3\.\d+)", " ".join(project["project"]["classifiers"]))
    assert re.findall(r"3\.\d+", badges) == versions
    assert project["project"]["license"].replace("-", " ") in badges
    assert ("mypy strict" in badges) == project["tool"]["mypy"]["strict"]
