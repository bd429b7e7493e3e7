"""A method is a value: a schedule, a rule, and facts about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from scipy.sparse import csr_array

from ssdfl.clusters import Clusters, labels_of
from ssdfl.errors import check_range
from ssdfl.graph import Network, Weights, fastest, links_of, links_within, metropolis
from ssdfl.methods.rules import Rule
from ssdfl.methods.rules.plain import CombineThenAdapt
from ssdfl.methods.step import Mixer, Schedule, alternate, always
from ssdfl.rng import generator


@dataclass(frozen=True)
class ScheduleInputs:
    """The inputs of a schedule.

    Attributes:
        network: the devices and their links.
        clusters: the plan's clusters, for methods that need a plan.
        tau_a: training steps of a cycle, τ_a.
        tau_r: mixing-only steps of a cycle, τ_r.
        weights: the rule for mixing weights.
        link_probability: the probability that a link is up in a step of the stochastic methods.
        seed: the seed of the stochastic methods.
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
        """Mixing over links that are each up with ``link_probability``, drawn at every step.

        The weight rule is applied to the links that are up. Solving for `fastest` weights at every
        step would take longer than training, so Metropolis weights are used instead.
        """
        weights = metropolis if self.weights is fastest else self.weights
        return lambda t: weights(_links_up(adjacency, self.link_probability, self.seed, t))

    def cycle(self, intra: Mixer, inter: Mixer) -> Schedule:
        """``tau_a`` training steps mixed by ``intra``, then ``tau_r`` steps mixed by ``inter``."""
        return alternate(self.tau_a, self.tau_r, intra, inter)


def _links_up(adjacency: csr_array, probability: float, seed: int, t: int) -> csr_array:
    i, j, value = links_of(adjacency)
    up = generator(seed, "links", t).random(len(i)) < probability
    half = csr_array((value[up], (i[up], j[up])), shape=adjacency.shape)
    return csr_array(half + half.T)


def the_plans(clusters: Clusters) -> Clusters:
    """Training happens inside the plan's clusters."""
    return clusters


def one_for_all(clusters: Clusters) -> Clusters:
    """Training happens in one cluster."""
    everyone = sorted(device for cluster in clusters for device in cluster)
    return (tuple(everyone),)


def one_for_each(clusters: Clusters) -> Clusters:
    """Every device trains alone."""
    everyone = sorted(device for cluster in clusters for device in cluster)
    return tuple((device,) for device in everyone)


@dataclass(frozen=True)
class Method:
    """A method: a schedule of training and mixing, and a rule.

    Attributes:
        name: as the user wrote it, such as ``ssdfl+atc``.
        schedule: makes the schedule.
        rule: what a device sends and how it uses what it receives.
        summary: one line for lists of methods.
        needs_plan: whether the plan's clusters change what it does.
        training_clusters: maps the plan's clusters to the ones in which the method mixes while it
            trains.
        bounded: whether the paper's bounds describe the schedule.
        reference: shown for comparison, but never ranked.
    """

    name: str
    schedule: Callable[[ScheduleInputs], Schedule]
    rule: Rule = field(default=CombineThenAdapt())
    summary: str = ""
    needs_plan: bool = True
    training_clusters: Callable[[Clusters], Clusters] = the_plans
    bounded: bool = False
    reference: bool = False
