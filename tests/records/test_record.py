"""Metrics: described once, and read by whoever stores, shows or logs them."""

import filecmp
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import ssdfl
from pages import data_of
from ssdfl.records import METRICS, RunFolder
from ssdfl.records.record import COSTS, QUANTITIES
from ssdfl.records.tables import record_schema

SOURCE = Path(ssdfl.__file__).parent

OLD_COLUMNS = (
    ("cycle", pa.int64()),
    ("score", pa.float64()),
    ("score_std", pa.float64()),
    ("score_worst", pa.float64()),
    ("average_model_score", pa.float64()),
    ("loss", pa.float64()),
    ("consensus_distance", pa.float64()),
    ("effective_gradient", pa.float64()),
    ("transmissions", pa.int64()),
    ("sent_bytes", pa.int64()),
    ("time_s", pa.float64()),
    ("device_score", pa.list_(pa.float64())),
)
"""Columns of the first files that were ever written."""


def test_the_schema_keeps_the_columns_of_old_files():
    known = [(column.name, column.type) for column in record_schema()]
    assert [column for column in known if column in OLD_COLUMNS] == list(OLD_COLUMNS)


def test_an_old_file_reads_with_defaults_for_what_is_new(tmp_path):
    folder = RunFolder(tmp_path)
    path = folder.method_folder(0, "ssdfl") / "metrics.parquet"
    path.parent.mkdir(parents=True)
    values = {name: [[0.5]] if pa.types.is_list(kind) else [1] for name, kind in OLD_COLUMNS}
    parquet.write_table(pa.table(values, schema=pa.schema(OLD_COLUMNS)), path)
    (row,) = folder.read_rows(0, "ssdfl")
    assert (row["time_s"], row["device_score"]) == (1.0, [0.5])
    assert math.isnan(row["real_s"])
    assert math.isnan(row["training_gap"])
    assert set(row) == set(record_schema().names)


def test_every_metric_is_a_cost_or_a_quantity_and_says_what_it_is():
    assert COSTS == ("cycle", "transmissions", "sent_bytes", "time_s", "real_s")
    assert set(COSTS) | set(QUANTITIES) == set(METRICS)
    labels = [metric.label for metric in METRICS.values()]
    assert len(set(labels)) == len(labels)
    assert all(METRICS[name].better == "lower" for name in COSTS)
    assert all(metric.axis for metric in METRICS.values() if metric.ranked)


CHILD = """
import json
from ssdfl.experiments import run_experiment
from ssdfl.experiments.logs import scalars
from ssdfl.records import load_experiment
from ssdfl.report import write_report

settings = ["cycles=2", "seeds=[0]", "methods=['pdfl']", "data.name=helpers:tiny_data",
            "data.labels_per_device=2", "network.spec=ring:n=4", "clusters.number=1"]
folder = run_experiment(load_experiment(None, settings), "run")
write_report(folder)
print(json.dumps([scalars(row)["largest_norm"] for row in folder.all_rows()]))
"""


def recipe():
    """What ``docs/extend.md`` says to add: the file, the line before it, and the line."""
    text = (SOURCE.parents[1] / "docs" / "extend.md").read_text(encoding="utf-8")
    section = text.partition("\n## A metric\n")[2].partition("\n## ")[0]
    return re.findall(r"`src/ssdfl/([\w/.]+)`[^`]*```diff\n (.*)\n\+(.*)\n```", section)


def insert_after(path, before, added):
    lines = path.read_text(encoding="utf-8").split("\n")
    places = [k for k, line in enumerate(lines) if line.strip() == before.strip()]
    assert len(places) == 1, f"{path} has {len(places)} lines {before!r}"
    lines.insert(places[0] + 1, added)
    path.write_text("\n".join(lines), encoding="utf-8")


def changed_files(before, after):
    """All files that differ between two folders."""
    names = [path.relative_to(after) for path in sorted(after.rglob("*")) if path.is_file()]
    return [
        str(name) for name in names if not filecmp.cmp(before / name, after / name, shallow=False)
    ]


@pytest.fixture
def with_new_metric(tmp_path):
    """The package as the recipe changes it."""
    copy = tmp_path / "src" / "ssdfl"
    shutil.copytree(SOURCE, copy)  # with what is compiled of it
    for file, before, added in recipe():
        insert_after(copy / file, before, added)
    return copy


def test_a_new_metric_touches_two_files_and_appears_everywhere(with_new_metric, tmp_path):
    assert changed_files(SOURCE, with_new_metric) == ["engine/loop.py", "records/record.py"]
    path = os.pathsep.join([str(with_new_metric.parent), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    logged = json.loads(done.stdout)  # as TensorBoard and MLflow get it
    assert len(logged) == 2
    assert min(logged) > 0
    table = parquet.read_table(tmp_path / "run" / "metrics.parquet")
    assert table["largest_norm"].to_pylist() == logged
    data = data_of((tmp_path / "run" / "report.html").read_text())
    assert "largest_norm" in data["quantities"]
    assert data["metrics"]["largest_norm"]["label"] == "largest norm of a device's parameters"
    assert data["series"][0]["curves"]["largest_norm"]["mean"] == pytest.approx(logged, rel=1e-6)
