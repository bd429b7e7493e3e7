"""``plan.html``: one file that shows a plan and every candidate that was considered."""

from __future__ import annotations

from html import escape
from pathlib import Path

from ssdfl.clusters import Plan, explain, fitting_plan
from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.graph import Network
from ssdfl.report.condensed import if_large
from ssdfl.report.network_data import (
    diagnostics_table,
    drawn_data,
    explanation_list,
    formation_line,
    plan_reason,
    settings_table,
)
from ssdfl.report.page import PLAN_SCRIPTS, asset, fill, page, palette


def write_plan_page(network: Network, plan: Plan, path: Path | str) -> None:
    """Write the page of a formed plan.

    Raises:
        InputError: the plan is for another network, or has no candidates to show.
    """
    plan = fitting_plan(plan, network)
    if not plan.candidates:
        raise InputError("candidates of the plan", 0, "a formed plan", "Make it with ssdfl plan.")
    explanation = explain(network, plan)
    title = f"{network.title}: {plan.num_devices} devices in {plan.num_clusters} clusters"
    body = fill(
        "plan.html",
        title=escape(title),
        headline=escape(f"{explanation.cycle_line} {explanation.upgrade_line}"),
        plan=asset("plan_part.html"),
        explanation=explanation_list(explanation),
        diagnostics=diagnostics_table(plan),
        reason=escape(plan_reason(plan)),
        formation=escape(formation_line(plan)),
        settings=settings_table(plan),
    )
    data = {**palette(), **drawn_data(network, plan, if_large(network, plan.clusters))}
    write_text(path, page(f"ssdfl plan: {title}", body, data, [*PLAN_SCRIPTS, "plan_page.js"]))
