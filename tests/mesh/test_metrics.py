"""Metrics that Prometheus reads, and the dashboard that shows them."""

import json
import math
import re
import urllib.error
import urllib.request
from dataclasses import fields
from pathlib import Path

import pytest

from ssdfl.errors import InputError
from ssdfl.mesh.hosts import loopback_hosts
from ssdfl.mesh.metrics import Reading, metrics_text, serving_metrics
from ssdfl.mesh.metrics_server import CONTENT_TYPE

ROOT = Path(__file__).parents[2]
FULL = Reading("São Paulo", **{one.name: 1.5 for one in fields(Reading)[1:]})


def names_in(text):
    return set(re.findall(r"\bssdfl_\w+", text))


def test_every_metric_has_help_a_type_and_a_value():
    lines = metrics_text(FULL).splitlines()
    assert len(lines) == 3 * (len(fields(Reading)) - 1)
    for about, kind, value in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
        name = value.partition("{")[0]
        assert about.startswith(f"# HELP {name} ")
        assert kind == f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"
        assert value == f'{name}{{device="São Paulo"}} 1.5'


def test_what_is_unknown_is_left_out_and_names_are_quoted():
    text = metrics_text(Reading('a"b\\', step=3, score=math.nan))
    assert text.splitlines()[-1] == 'ssdfl_step{device="a\\"b\\\\"} 3'
    assert "score" not in text


def test_metrics_are_served_on_loopback_and_nothing_else_is():
    port = int(loopback_hosts(["a"])[0].address.rpartition(":")[2])
    with serving_metrics(port, lambda: FULL):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert answer.read().decode() == metrics_text(FULL)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
        with (
            pytest.raises(InputError, match="expected a free port"),
            serving_metrics(port, lambda: FULL),
        ):
            pass
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)


def test_the_dashboard_and_the_docs_name_metrics_that_there_are():
    known = names_in(metrics_text(FULL))
    dashboard = json.loads((ROOT / "examples" / "grafana.json").read_text(encoding="utf-8"))
    asked = {target["expr"] for panel in dashboard["panels"] for target in panel["targets"]}
    assert len(asked) >= 5
    assert names_in(" ".join(asked)) <= known
    docs = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert known <= names_in(docs)
