"""Files that hosts, package indexes and citation tools read say what the project says."""

import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import ssdfl

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def steps(workflow):
    for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values():
        yield from job["steps"]


def test_the_citation_has_the_version_and_the_license():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == ssdfl.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["cff-version"] == "1.2.0"
    assert [author["family-names"] for author in citation["preferred-citation"]["authors"]] == [
        "Wang",
        "Chiang",
        "Poor",
    ]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_is_there(workflow):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    assert commands
    for command in commands:
        program, *arguments = command.split()
        if program == "make":
            assert f"\n{arguments[0]}:" in makefile, command
        else:
            assert (ROOT / program).stat().st_mode & 0o100, command


def test_some_workflow_runs_all_that_has_to_pass():
    assert any(step.get("run") == ".ci/run" for workflow in WORKFLOWS for step in steps(workflow))


def test_workflows_run_every_python_that_is_promised():
    promised = {
        text.rpartition(" ")[2]
        for text in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", text)
    }
    tried = set()
    for workflow in WORKFLOWS:
        for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values():
            tried |= set(job.get("strategy", {}).get("matrix", {}).get("python", []))
    assert tried == promised


def test_the_changelog_has_a_section_for_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## .*$", changelog, re.M)
    assert any(ssdfl.__version__ in section for section in sections)
    assert len(sections) == len(set(sections))


@pytest.mark.parametrize(
    "template", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
)
def test_issue_forms_have_what_the_host_demands(template):
    form = yaml.safe_load(template.read_text(encoding="utf-8"))
    assert form["name"]
    assert form["description"]
    identifiers = [field["id"] for field in form["body"]]
    assert len(identifiers) == len(set(identifiers))
    assert all(field["attributes"]["label"] for field in form["body"])


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="needs pytest-xdist")
@pytest.mark.xdist_group("named")
def test_workers_are_told_of_groups(request):
    """Else they share them out test by test without a word, and set up all that groups share."""
    assert request.node.nodeid.endswith("@named")
