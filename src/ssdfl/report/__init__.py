"""Figures, tables and pages, made only from a run's records."""

from ssdfl.report.bounds import plot_bounds_by_clusters, plot_measured_bounds
from ssdfl.report.comparison import write_comparison
from ssdfl.report.difference_page import write_difference_page
from ssdfl.report.figures import plot_curves, plot_network, save
from ssdfl.report.holdings import plot_holdings
from ssdfl.report.html import write_report
from ssdfl.report.plan_page import write_plan_page
from ssdfl.report.ranking import RunResults, headline
from ssdfl.report.summary import MethodSummary, summarise
from ssdfl.report.tables import Table, summary_table
from ssdfl.report.target import cost_to_target
from ssdfl.report.winners import Winner, winners

__all__ = [
    "MethodSummary",
    "RunResults",
    "Table",
    "Winner",
    "cost_to_target",
    "headline",
    "plot_bounds_by_clusters",
    "plot_curves",
    "plot_holdings",
    "plot_measured_bounds",
    "plot_network",
    "save",
    "summarise",
    "summary_table",
    "winners",
    "write_comparison",
    "write_difference_page",
    "write_plan_page",
    "write_report",
]
