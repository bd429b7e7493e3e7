"""Clusters of devices and the plan that holds them."""

from ssdfl.clusters.partition import (
    Cluster,
    Clusters,
    bisect,
    clusters_of,
    labels_of,
    random_clusters,
    spectral_bisection,
)
from ssdfl.clusters.plan import Plan, plan_clusters, read_plan, write_plan

__all__ = [
    "Cluster",
    "Clusters",
    "Plan",
    "bisect",
    "clusters_of",
    "labels_of",
    "plan_clusters",
    "random_clusters",
    "read_plan",
    "spectral_bisection",
    "write_plan",
]
