"""Clusters of devices and the plan that holds them."""

from ssdfl.clusters.candidates import Candidate, choose
from ssdfl.clusters.decision import CHOICES, Decision
from ssdfl.clusters.device_file import read_devices, with_device_costs
from ssdfl.clusters.diagnostics import Diagnostic
from ssdfl.clusters.difference import Gain, Move, PlanDifference, compare_plans
from ssdfl.clusters.exchange import Exchange
from ssdfl.clusters.explanation import Explanation, explain
from ssdfl.clusters.export import export_plan
from ssdfl.clusters.fitting import Misfit, fitting_plan, listed_names, misfit
from ssdfl.clusters.formation import FormationSettings
from ssdfl.clusters.heterogeneity import (
    AmplificationSettings,
    Device,
    amplification,
    data_divergence,
    energy_distance,
    optimizer_distance,
    unknown_devices,
)
from ssdfl.clusters.partition import (
    Cluster,
    Clusters,
    clusters_of,
    labels_of,
    random_clusters,
    spectral_bisection,
)
from ssdfl.clusters.plan import Plan, form_clusters, plan_clusters
from ssdfl.clusters.plan_file import parse_plan, read_plan, write_plan
from ssdfl.clusters.plan_repair import Repair, repair
from ssdfl.clusters.rank_assignment import assign_to_ranks
from ssdfl.clusters.scores import SCORES, Score, ScoreInputs
from ssdfl.clusters.standing import Standing

__all__ = [
    "CHOICES",
    "SCORES",
    "AmplificationSettings",
    "Candidate",
    "Cluster",
    "Clusters",
    "Decision",
    "Device",
    "Diagnostic",
    "Exchange",
    "Explanation",
    "FormationSettings",
    "Gain",
    "Misfit",
    "Move",
    "Plan",
    "PlanDifference",
    "Repair",
    "Score",
    "ScoreInputs",
    "Standing",
    "amplification",
    "assign_to_ranks",
    "choose",
    "clusters_of",
    "compare_plans",
    "data_divergence",
    "energy_distance",
    "explain",
    "export_plan",
    "fitting_plan",
    "form_clusters",
    "labels_of",
    "listed_names",
    "misfit",
    "optimizer_distance",
    "parse_plan",
    "plan_clusters",
    "random_clusters",
    "read_devices",
    "read_plan",
    "repair",
    "spectral_bisection",
    "unknown_devices",
    "with_device_costs",
    "write_plan",
]
