"""The page of a run in progress: a `report.html` that polls for updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ssdfl.records.config import Experiment
from ssdfl.records.folder import RunFolder
from ssdfl.records.tables import Row
from ssdfl.report.html import RUN_SCRIPTS, run_body, run_parts
from ssdfl.report.page import asset, page, to_json
from ssdfl.report.run_data import Facts, run_data


def live_page(folder: RunFolder, experiment: Experiment, facts: Facts) -> str:
    """The page before the first record; it requests ``data.json`` from its server."""
    body = run_body(folder, experiment, (), status=asset("live.html"))
    data = run_data(folder, experiment, (), facts=facts)
    scripts = (*RUN_SCRIPTS, "live.js")
    return page(f"ssdfl: {experiment.name}, live", body, data, scripts, charts=True, asks="'self'")


def live_news(
    folder: RunFolder,
    experiment: Experiment,
    rows: Sequence[Row],
    status: dict[str, Any],
    facts: Facts,
) -> str:
    """The content of ``data.json``: everything that the page shows about the records so far."""
    bounds = folder.read_bounds() if status["ended"] else []
    return to_json(
        {
            **status,
            "data": run_data(folder, experiment, rows, bounds, facts),
            "parts": run_parts(folder, experiment, rows, bounds, goes_on=not status["ended"]),
        }
    )
