"""The schedules of the built-in methods: when devices train, and which matrix mixes.

Your own schedule is a function of `ScheduleInputs`; an experiment names it
``package.module:function``. To add one here, write the function and its `Method` below; nothing
else has to change.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, eye_array

from ssdfl.arrays import SparseMatrix
from ssdfl.clusters import labels_of, random_clusters
from ssdfl.errors import check_range
from ssdfl.graph import (
    MixingMatrix,
    averaging,
    averaging_within,
    links_of,
    on_links,
    random_matching,
)
from ssdfl.methods.matcha import plan_matchings
from ssdfl.methods.method import Method, ScheduleInputs, one_for_all, one_for_each
from ssdfl.methods.step import Mixer, Periodic, Schedule, always
from ssdfl.rng import generator

MEAN_LIMIT = 2000


def ssdfl(inputs: ScheduleInputs) -> Schedule:
    """SSD-FL: train and mix inside the formed clusters, then mix over the whole network.

        W = Ã while training, block-diagonal over the clusters; then W = A

    Source: the paper, `eq:intraC_updates`, `eq:inter_c_updates` and `fig:intro_diag`.
    """
    within_clusters = always(inputs.weights(inputs.inside(inputs.clusters)))
    return inputs.cycle(intra=within_clusters, inter=inputs.all_links)


def sdfl(inputs: ScheduleInputs) -> Schedule:
    """Synchronous: mix over the whole network at every step, as SSD-FL with one cluster does.

        W = A

    Source: the paper's sDFL; decentralized SGD of Lian et al., "Can decentralized algorithms
    outperform centralized algorithms?", NeurIPS 2017.
    """
    return inputs.cycle(intra=inputs.all_links, inter=inputs.all_links)


def pdfl(inputs: ScheduleInputs) -> Schedule:
    """Periodic: train alone, then mix, as SSD-FL with every device its own cluster does.

        W = I while training, then W = A

    Source: the paper's pDFL.
    """
    return inputs.cycle(intra=always(_alone(inputs)), inter=inputs.all_links)


def stc(inputs: ScheduleInputs) -> Schedule:
    """Stochastic: synchronous, but over links drawn at random at every step.

        W(t) = the weights of the links that are up, each with probability p

    p is ``schedule.link_probability``.

    Source: the paper's STC.
    """
    links_up = inputs.drawn(inputs.network.adjacency)
    return inputs.cycle(intra=links_up, inter=links_up)


def cstc(inputs: ScheduleInputs) -> Schedule:
    """Clustered stochastic: as `stc`, but inside random clusters first, then over all links.

        W(t) = as in `stc`, over the links inside the random clusters while training, then over all

    Source: the paper's cSTC.
    """
    clusters = random_clusters(inputs.network, generator(inputs.seed, "clusters"))
    within_clusters = inputs.drawn(inputs.inside(clusters))
    return inputs.cycle(intra=within_clusters, inter=inputs.drawn(inputs.network.adjacency))


def matcha(inputs: ScheduleInputs, budget: float = 0.5) -> Schedule:
    """MATCHA: random matchings of the network; those critical for agreement are used more often.

        W(t) = I − α Σ_j b_j(t) L_j,  b_j(t) ~ Bernoulli(p_j),  L = Σ_j L_j

    The L_j are Laplacians of matchings. The p_j maximise λ₂(Σ_j p_j L_j) with Σ_j p_j ≤ budget · M,
    and α minimises ‖E[W²] − 11ᵀ/N‖. With budget 1 every link is used at every step.

    Source: Wang, Sahu, Yang, Joshi and Kar, "MATCHA: Speeding up decentralized SGD via matching
    decomposition sampling", 2019, arXiv:1905.09435.
    """
    matchings = _matchings_at_random(inputs.network.adjacency, budget, inputs.seed)
    return inputs.cycle(intra=matchings, inter=matchings)


def cmatcha(inputs: ScheduleInputs, budget: float = 0.5) -> Schedule:
    """Clustered MATCHA: its matchings inside the formed clusters while training, then of all links.

        W(t) = I − Σ_s α_s Σ_j b_sj(t) L_sj while training, then as in `matcha`

    Each cluster s has its own matchings, probabilities and weight.

    Source: `matcha`, with the cycle of the paper.
    """
    within_clusters = _matchings_at_random(inputs.inside(inputs.clusters), budget, inputs.seed)
    everywhere = _matchings_at_random(inputs.network.adjacency, budget, inputs.seed)
    return inputs.cycle(intra=within_clusters, inter=everywhere)


def _matchings_at_random(adjacency: SparseMatrix, budget: float, seed: int) -> Mixer:
    """Mixing by MATCHA, in every connected part separately."""
    plan = plan_matchings(adjacency, budget)

    def mixing(t: int) -> MixingMatrix:
        used = generator(seed, "matchings", t).random(len(plan.probability)) < plan.probability
        up = used[plan.matching]
        return on_links(adjacency.shape[0], plan.i[up], plan.j[up], plan.weight[up])

    return always(mixing(0)) if (plan.probability == 1).all() else mixing


def gossip(inputs: ScheduleInputs) -> Schedule:
    """Gossip: devices pair up at random, and each pair takes its mean.

        W(t) = I − ½ Σ_{(i,j) ∈ M(t)} (e_i − e_j)(e_i − e_j)ᵀ

    M(t) is a random maximal matching.

    Source: Boyd, Ghosh, Prabhakar and Shah, "Randomized gossip algorithms", IEEE Transactions on
    Information Theory 52(6), 2006; many pairs at a time, as in its section on synchronous gossip.
    """
    pairs = _random_pairs(inputs.network.adjacency, inputs.seed)
    return inputs.cycle(intra=pairs, inter=pairs)


def cgossip(inputs: ScheduleInputs) -> Schedule:
    """Clustered gossip: pairs inside the formed clusters while training, then across the network.

        W(t) = I − ½ Σ_{(i,j) ∈ M(t)} (e_i − e_j)(e_i − e_j)ᵀ

    M(t) is a maximal matching of the links inside clusters while training, of all links afterwards.

    Source: `gossip`, with the cycle of the paper.
    """
    within_clusters = _random_pairs(inputs.inside(inputs.clusters), inputs.seed)
    return inputs.cycle(
        intra=within_clusters, inter=_random_pairs(inputs.network.adjacency, inputs.seed)
    )


def _random_pairs(adjacency: SparseMatrix, seed: int) -> Mixer:
    num_devices = adjacency.shape[0]
    i, j, _ = links_of(adjacency)

    def mixing(t: int) -> MixingMatrix:
        pairs = random_matching(num_devices, i, j, generator(seed, "pairs", t))
        return on_links(num_devices, i[pairs], j[pairs], np.full(pairs.sum(), 0.5))

    return mixing


def tthf(inputs: ScheduleInputs) -> Schedule:
    """TT-HF: clusters train and mix over their own links, then a server averages all.

        W = Ã while training, then 11ᵀ/N once, then I for the rest of the cycle

    The paper's server samples one device of each cluster and weighs it by the cluster's size. This
    one uses all devices: the mean that the samples estimate. There is no server, so messages are
    relayed, for at most 2,000 devices.

    Source: Lin, Hosseinalipour, Azam, Brinton and Michelusi, "Semi-decentralized federated learning
    with cooperative D2D local model aggregations", IEEE JSAC 39(12), 2021.
    """
    within_clusters = always(inputs.weights(inputs.inside(inputs.clusters)))
    return inputs.cycle(intra=within_clusters, inter=_mean_once(inputs, "tthf"))


def hier(inputs: ScheduleInputs) -> Schedule:
    """Hierarchical: edge servers average clusters at every step, then the cloud averages all.

        W = blockdiag(11ᵀ/n_s) while training, then 11ᵀ/N once, then I for the rest of the cycle

    The paper's κ₁ is ``training.local_steps``, its κ₂ is τ_a. There are no servers, so messages are
    relayed, for at most 2,000 devices.

    Source: Liu, Zhang, Song and Letaief, "Client-edge-cloud hierarchical federated learning", IEEE
    ICC 2020, arXiv:1905.06641.
    """
    mean_once = _mean_once(inputs, "hier")
    labels = labels_of(inputs.clusters, inputs.network.num_devices)
    return inputs.cycle(intra=always(averaging_within(labels)), inter=mean_once)


def _mean_once(inputs: ScheduleInputs, method: str) -> Mixer:
    """The mean of all at a cycle's first mixing-only step; a second would change nothing."""
    mean, alone = _mean_of_all(inputs, method), _alone(inputs)
    cycle = inputs.tau_a + inputs.tau_r
    return Periodic(lambda t: mean if t == inputs.tau_a else alone, period=cycle)


def central(inputs: ScheduleInputs) -> Schedule:
    """Exact mean of all at every step, which would need a server or many relays.

        W = 11ᵀ/N

    All devices send to all, N² messages, so it takes at most 2,000 devices.

    Source: federated averaging with full participation, McMahan et al., AISTATS 2017.
    """
    mean = always(_mean_of_all(inputs, "central"))
    return inputs.cycle(intra=mean, inter=mean)


def _mean_of_all(inputs: ScheduleInputs, method: str) -> MixingMatrix:
    remedy = f"Leave {method} out of methods."
    check_range(f"devices for {method}", inputs.network.num_devices, 1, MEAN_LIMIT, remedy)
    return averaging(inputs.network.num_devices)


def _alone(inputs: ScheduleInputs) -> MixingMatrix:
    return csr_array(eye_array(inputs.network.num_devices))


_KNOWN = (
    Method("ssdfl", ssdfl, summary="clusters train and mix, then all mix", bounded=True),
    Method(
        "sdfl",
        sdfl,
        summary="everyone mixes at every step",
        needs_plan=False,
        training_clusters=one_for_all,
        bounded=True,
    ),
    Method(
        "pdfl",
        pdfl,
        summary="train alone, then mix",
        needs_plan=False,
        training_clusters=one_for_each,
        bounded=True,
    ),
    Method("stc", stc, summary="links up at random", needs_plan=False),
    Method("cstc", cstc, summary="links up at random in random clusters", needs_plan=False),
    Method("matcha", matcha, summary="matchings at random, critical ones often", needs_plan=False),
    Method("cmatcha", cmatcha, summary="matchings at random in clusters, then of all links"),
    Method("gossip", gossip, summary="devices pair up at random", needs_plan=False),
    Method("cgossip", cgossip, summary="devices pair up in clusters, then across"),
    Method("tthf", tthf, summary="clusters train and mix, then a server averages", reference=True),
    Method("hier", hier, summary="a server averages each cluster, then all", reference=True),
    Method(
        "central",
        central,
        summary="exact mean, by relays",
        needs_plan=False,
        reference=True,
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _KNOWN}
