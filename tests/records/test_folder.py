"""Where a run's files are."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdfl.clusters import Plan
from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.records import RunFolder, load_experiment
from ssdfl.records.config import write_experiment
from ssdfl.records.folder import folder_name

METHODS = (
    "ssdfl",
    "ssdfl+atc",
    "a:b",
    "a.b",
    "a.b:c",
    "a:b.c",
    "a:b:c",
    "sdfl+a:b",
    "sdfl+a.b",
    "sdfl+choco:compressor=topk,fraction=0.01",
    "sdfl+choco:compressor=topk,fraction=0.1",
    "sdfl+choco:compressor=topk,fraction=0,1",
    "a%3Ab",
    "a b",
    "a/b",
    "..",
)


def test_names_of_today_are_kept():
    names = ("ssdfl", "my_module:function", "package.module:function", "ssdfl+atc")
    assert [folder_name(name) for name in names] == [
        "ssdfl",
        "my_module.function",
        "package.module.function",
        "ssdfl+atc",
    ]


def test_no_two_methods_share_a_folder():
    folders = [folder_name(method) for method in METHODS]
    assert len(set(folders)) == len(METHODS)
    assert all(re.fullmatch(r"[\w.+=,%~-]+", folder) for folder in folders)
    assert ".." not in folders


@given(st.text("ab.:+=,%/ ", min_size=1, max_size=6), st.text("ab.:+=,%/ ", min_size=1, max_size=6))
def test_folders_are_equal_only_if_methods_are(one, other):
    assert (folder_name(one) == folder_name(other)) == (one == other)


def test_a_long_name_is_cut_but_told_apart():
    long = "sdfl+mine:" + ",".join(f"option_{k}=0.{k}" for k in range(40))
    names = {folder_name(long), folder_name(long + "1")}
    assert len(names) == 2
    assert {len(name) for name in names} == {150}


def test_records_of_methods_with_rules_are_kept_apart(tmp_path):
    folder = RunFolder(tmp_path)
    for cycle, method in enumerate(METHODS, start=1):
        folder.write_rows(0, method, [{"cycle": cycle}])
    assert [folder.read_rows(0, method)[0]["cycle"] for method in METHODS] == [
        *range(1, len(METHODS) + 1)
    ]
    assert len(list((tmp_path / "seed-0").iterdir())) == len(METHODS)


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [("local", "reference", True), ("local", "mesh", False), ("mesh", "local", False)],
)
def test_another_engine_may_go_on_unless_devices_keep_their_own_files(
    tmp_path, before, after, allowed
):
    folder = RunFolder(tmp_path)
    write_experiment(load_experiment(None, [f"engine.name={before}"]), folder.experiment_file)
    new = load_experiment(None, [f"engine.name={after}"])
    if allowed:
        assert folder.joined(new).engine.name == after
        return
    with pytest.raises(InputError, match="as in the run to resume"):
        folder.joined(new)


def test_only_a_run_that_has_begun_may_be_resumed(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(InputError, match="expected a folder with a run in it"):
        folder.check_begun()
    folder.write_experiment(load_experiment(None), 0)
    folder.check_begun()


def test_a_plan_file_of_version_2_is_the_same_plan(tmp_path):
    folder = RunFolder(tmp_path)
    plan = Plan(((0, 1), (2,)), "by hand", names=("a", "b", "c"))
    old = plan.to_json() | {
        "version": 2,
        "clusters": [[0, 1], [2]],
        "devices": None,
        "checksum": None,
    }
    write_text(folder.seed_folder(0) / "plan.json", json.dumps(old))
    folder.write_plan(0, plan)
    assert folder.plan(0) == plan
    with pytest.raises(InputError, match="plan.json of seed 0 = changed"):
        folder.write_plan(0, replace(plan, clusters=((0,), (1, 2))))
