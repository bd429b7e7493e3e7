"""Figures, tables and pages, made from a run's records alone."""

from ssdfl.report.bounds import draw_bounds_by_clusters, draw_measured_bounds
from ssdfl.report.comparison import write_comparison
from ssdfl.report.figures import draw_curves, draw_network, save
from ssdfl.report.html import write_report
from ssdfl.report.leads import Lead, leads
from ssdfl.report.plan_page import write_plan_page
from ssdfl.report.ranking import Side, headline
from ssdfl.report.summary import MethodSummary, cells, headers, summarise

__all__ = [
    "Lead",
    "MethodSummary",
    "Side",
    "cells",
    "draw_bounds_by_clusters",
    "draw_curves",
    "draw_measured_bounds",
    "draw_network",
    "headers",
    "headline",
    "leads",
    "save",
    "summarise",
    "write_comparison",
    "write_plan_page",
    "write_report",
]
