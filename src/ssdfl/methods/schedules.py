"""The schedules of the methods that we know: who trains when, and which matrix mixes.

A schedule of your own is a function of `ScheduleInputs`; an experiment names it ``package.module:function``.
To add one here, write the function and its `Method` below; nothing else has to change.
"""

from __future__ import annotations

from scipy.sparse import csr_array, eye_array

from ssdfl.clusters import random_clusters
from ssdfl.errors import check_range
from ssdfl.graph import averaging
from ssdfl.methods.method import Method, ScheduleInputs, one_for_all, one_for_each
from ssdfl.methods.step import Schedule, always
from ssdfl.rng import generator

CENTRAL_LIMIT = 2000


def ssdfl(inputs: ScheduleInputs) -> Schedule:
    """SSD-FL: train and mix inside the formed clusters, then mix over the whole network."""
    within_clusters = always(inputs.weights(inputs.inside(inputs.clusters)))
    return inputs.cycle(intra=within_clusters, inter=inputs.all_links)


def sdfl(inputs: ScheduleInputs) -> Schedule:
    """Synchronous: mix over the whole network at every step, as SSD-FL with one cluster does."""
    return inputs.cycle(intra=inputs.all_links, inter=inputs.all_links)


def pdfl(inputs: ScheduleInputs) -> Schedule:
    """Periodic: train alone, then mix, as SSD-FL with every device its own cluster does."""
    alone = always(csr_array(eye_array(inputs.network.num_devices)))
    return inputs.cycle(intra=alone, inter=inputs.all_links)


def stc(inputs: ScheduleInputs) -> Schedule:
    """Stochastic: synchronous, but over links drawn at random at every step."""
    links_up = inputs.drawn(inputs.network.adjacency)
    return inputs.cycle(intra=links_up, inter=links_up)


def cstc(inputs: ScheduleInputs) -> Schedule:
    """Clustered stochastic: as `stc` inside a random number of random clusters, then over all links."""
    clusters = random_clusters(inputs.network, generator(inputs.seed, "clusters"))
    within_clusters = inputs.drawn(inputs.inside(clusters))
    return inputs.cycle(intra=within_clusters, inter=inputs.drawn(inputs.network.adjacency))


def central(inputs: ScheduleInputs) -> Schedule:
    """Reference: everyone gets the mean of all at every step, which would need a server or many relays.

    Everyone sends to everyone, N² messages, so it takes at most 2,000 devices.
    """
    remedy = "Leave central out of methods."
    check_range("devices for central", inputs.network.num_devices, 1, CENTRAL_LIMIT, remedy)
    mean = always(averaging(inputs.network.num_devices))
    return inputs.cycle(intra=mean, inter=mean)


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
    Method(
        "central",
        central,
        summary="exact mean, by relays",
        needs_plan=False,
        reference=True,
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _KNOWN}
