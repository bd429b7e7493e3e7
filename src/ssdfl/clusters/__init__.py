"""Clusters of devices and the plan that holds them."""

from ssdfl.clusters.device_file import read_devices
from ssdfl.clusters.formation import Candidate, FormationSettings, choose, form_candidates
from ssdfl.clusters.heterogeneity import (
    Device,
    amplification,
    energy_distance,
    label_divergence,
    optimizer_distance,
)
from ssdfl.clusters.partition import (
    Cluster,
    Clusters,
    bisect,
    clusters_of,
    labels_of,
    random_clusters,
    spectral_bisection,
)
from ssdfl.clusters.plan import Plan, form_clusters, plan_clusters, read_plan, write_plan

__all__ = [
    "Candidate",
    "Cluster",
    "Clusters",
    "Device",
    "FormationSettings",
    "Plan",
    "amplification",
    "bisect",
    "choose",
    "clusters_of",
    "energy_distance",
    "form_candidates",
    "form_clusters",
    "label_divergence",
    "labels_of",
    "optimizer_distance",
    "plan_clusters",
    "random_clusters",
    "read_devices",
    "read_plan",
    "spectral_bisection",
    "write_plan",
]
