"""Read a network, print facts about it, cut it into clusters, and price one mixing."""

import numpy as np

import ssdfl
from ssdfl.graph import Clock, describe, metropolis, spectrum

network = ssdfl.load_network("sites:sites=4,size=5,links=2,seed=1")
for key, value in describe(network).items():
    print(f"{key:>18}: {value}")

clusters = ssdfl.form_clusters(network).clusters
print("clusters:", clusters)

A = metropolis(network.adjacency)
ready_s, messages = Clock(network, message_bytes=20_000).advance(
    np.zeros(20), A, compute_s=np.zeros(20)
)
print(
    f"one mixing: {messages} messages, {ready_s.max():.3f} s, "
    f"disagreement × {spectrum(A).lambda_2:.3f}"
)
