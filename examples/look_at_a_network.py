"""Read a network, ask what it is like, cut it into clusters, and price one mixing of the whole of it."""

import numpy as np

from ssdfl.clusters import spectral_bisection
from ssdfl.graph import Clock, describe, load_network, metropolis, spectrum

network = load_network("sites:sites=4,size=5,links=2,seed=1")
for key, value in describe(network).items():
    print(f"{key:>18}: {value}")

clusters = spectral_bisection(network, 4)
print("clusters:", clusters)

A = metropolis(network.adjacency)
ready_s, messages = Clock(network, message_bytes=20_000).advance(np.zeros(20), A, compute_s=np.zeros(20))
print(f"one mixing: {messages} messages, {ready_s.max():.3f} s, disagreement × {spectrum(A).lambda_2:.3f}")
