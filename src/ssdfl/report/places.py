"""Where devices are drawn: on a map, at given places, by springs, or in discs of clusters."""

from __future__ import annotations

import networkx as nx
import numpy as np
from scipy.sparse import coo_array

from ssdfl.arrays import FloatArray, IntArray
from ssdfl.graph import Network

MAP_SHAPE = (552.0, 466.0)
"""Width and height of the frame that pages draw networks in, so that maps are not stretched."""
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
_SPRINGS = 800


def map_projection(positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The scale and shift of longitude and latitude that fit all devices in a unit square.

    Equirectangular, true to scale in the middle latitude of the devices.
    """
    low, high = positions.min(axis=0), positions.max(axis=0)
    middle = (low + high) / 2
    span = np.maximum((high - low) * 1.12, 4.0)  # show some surroundings even of a single city
    shape = np.array(MAP_SHAPE)
    stretch = np.array([np.cos(np.radians(middle[1])), 1.0])
    pixels_per_degree = (shape / (span * stretch)).min()
    scale: FloatArray = stretch * pixels_per_degree / shape
    return scale, 0.5 - middle * scale


def sunflower(count: int) -> FloatArray:
    """(count, 2) points spread evenly over a unit disc."""
    k = np.arange(count)
    radius, angle = np.sqrt((k + 0.5) / max(count, 1)), k * _GOLDEN_ANGLE
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def discs_of_clusters(network: Network, labels: IntArray) -> FloatArray:
    """(N, 2) places: each cluster fills a disc of its size; linked clusters are close together."""
    sizes = np.bincount(labels)
    centres = _centres(network, labels, len(sizes)) * 2.2 * np.sqrt(sizes.sum())
    places = np.zeros((network.num_devices, 2))
    for cluster, size in enumerate(sizes.tolist()):
        places[labels == cluster] = centres[cluster] + np.sqrt(size) * sunflower(size)
    return places


def _centres(network: Network, labels: IntArray, num_clusters: int) -> FloatArray:
    """(S, 2) centres of clusters, by springs between linked ones, or spread evenly if very many."""
    if num_clusters > _SPRINGS:
        return sunflower(num_clusters)
    ends = labels[network.links]
    cut = ends[ends[:, 0] != ends[:, 1]]
    shape = (num_clusters, num_clusters)
    between = coo_array((np.ones(len(cut)), (cut[:, 0], cut[:, 1])), shape=shape).tocsr()
    graph = nx.from_scipy_sparse_array(between + between.T)
    places = nx.spring_layout(graph, seed=0, weight=None)
    return np.array([places[cluster] for cluster in range(num_clusters)])
