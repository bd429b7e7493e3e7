"""The six methods. Each is a schedule: who trains when, and which matrix mixes (DESIGN: the one idea).

A method of your own is a function of `ScheduleInputs`; name it ``package.module:function`` in an experiment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from scipy.sparse import csr_array, eye_array

from ssdfl.clusters import Clusters, labels_of, random_clusters
from ssdfl.errors import check_range, find_function
from ssdfl.graph import Network, Weights, averaging, fastest, links_of, links_within, metropolis
from ssdfl.methods.step import Mixer, Schedule, alternate, always
from ssdfl.rng import generator

CENTRAL_LIMIT = 2000


@dataclass(frozen=True)
class ScheduleInputs:
    """What a method may know.

    Attributes:
        network: the devices and their links.
        clusters: the plan's clusters (for `ssdfl`).
        tau_a: training steps of a cycle, τ_a.
        tau_r: mixing-only steps of a cycle, τ_r.
        weights: rule for mixing weights.
        link_probability: how likely a link is up in a step of the stochastic methods.
        seed: of the stochastic methods' draws.
    """

    network: Network
    clusters: Clusters
    tau_a: int = 3
    tau_r: int = 1
    weights: Weights = field(default=metropolis)
    link_probability: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_range("schedule.tau_a", self.tau_a, 1)
        check_range("schedule.tau_r", self.tau_r, 1)
        check_range("schedule.link_probability", self.link_probability, 0, 1)

    @cached_property
    def all_links(self) -> Mixer:
        """Mixing over the whole network: the paper's A."""
        return always(self.weights(self.network.adjacency))

    def inside(self, clusters: Clusters) -> csr_array:
        """The links inside clusters."""
        return links_within(self.network.adjacency, labels_of(clusters, self.network.num_devices))

    def drawn(self, adjacency: csr_array) -> Mixer:
        """Mixing over links that are each up with ``link_probability``, drawn anew at every step.

        The weight rule is applied to the links that are up. Solving for `fastest` weights at every step
        would take longer than training, so there the draws use Metropolis weights.
        """
        weights = metropolis if self.weights is fastest else self.weights
        return lambda t: weights(_draw_links(adjacency, self.link_probability, self.seed, t))

    def cycle(self, intra: Mixer, inter: Mixer) -> Schedule:
        """``tau_a`` training steps mixed by ``intra``, then ``tau_r`` steps mixed by ``inter``."""
        return alternate(self.tau_a, self.tau_r, intra, inter)


def ssdfl(setting: ScheduleInputs) -> Schedule:
    """SSD-FL: train and mix inside the formed clusters, then mix over the whole network."""
    within_clusters = always(setting.weights(setting.inside(setting.clusters)))
    return setting.cycle(intra=within_clusters, inter=setting.all_links)


def sdfl(setting: ScheduleInputs) -> Schedule:
    """Synchronous: mix over the whole network at every step, as SSD-FL with one cluster does."""
    return setting.cycle(intra=setting.all_links, inter=setting.all_links)


def pdfl(setting: ScheduleInputs) -> Schedule:
    """Periodic: train alone, then mix, as SSD-FL with every device its own cluster does."""
    alone = always(csr_array(eye_array(setting.network.num_devices)))
    return setting.cycle(intra=alone, inter=setting.all_links)


def stc(setting: ScheduleInputs) -> Schedule:
    """Stochastic: synchronous, but over links drawn at random at every step."""
    links_up = setting.drawn(setting.network.adjacency)
    return setting.cycle(intra=links_up, inter=links_up)


def cstc(setting: ScheduleInputs) -> Schedule:
    """Clustered stochastic: as `stc` inside a random number of random clusters, then over all links."""
    clusters = random_clusters(setting.network, generator(setting.seed, "clusters"))
    within_clusters = setting.drawn(setting.inside(clusters))
    return setting.cycle(intra=within_clusters, inter=setting.drawn(setting.network.adjacency))


def central(setting: ScheduleInputs) -> Schedule:
    """Reference: everyone gets the mean of all at every step, which would need a server or many relays.

    Everyone sends to everyone, N² messages, so that it takes at most 2,000 devices.
    """
    remedy = "Leave central out of methods."
    check_range("devices for central", setting.network.num_devices, 1, CENTRAL_LIMIT, remedy)
    mean = always(averaging(setting.network.num_devices))
    return setting.cycle(intra=mean, inter=mean)


def _draw_links(adjacency: csr_array, probability: float, seed: int, t: int) -> csr_array:
    i, j, value = links_of(adjacency)
    up = generator(seed, "links", t).random(len(i)) < probability
    half = csr_array((value[up], (i[up], j[up])), shape=adjacency.shape)
    return csr_array(half + half.T)


Method = Callable[[ScheduleInputs], Schedule]

METHODS: dict[str, Method] = {
    "ssdfl": ssdfl,
    "sdfl": sdfl,
    "pdfl": pdfl,
    "stc": stc,
    "cstc": cstc,
    "central": central,
}


def find_method(name: str) -> Method:
    """A method by its name, or a user's own by ``package.module:function``.

    Examples:
        >>> find_method("pdfl").__name__
        'pdfl'
    """
    return find_function(METHODS, name, "method")
