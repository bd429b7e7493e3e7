"""Algorithm 1 (`alg:cluster_form`): the best feasible of candidates of every size from 1 to N."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from threadpoolctl import threadpool_limits

from ssdfl.arrays import FloatArray
from ssdfl.clusters import cost_aware, spectral
from ssdfl.clusters.balanced import partitions_by_data
from ssdfl.clusters.candidates import Candidate, choose, round_score
from ssdfl.clusters.cluster_cache import Budget
from ssdfl.clusters.diagnostics import Diagnostic, diagnose
from ssdfl.clusters.heterogeneity import PAPER_AMPLIFICATION, AmplificationSettings, Device
from ssdfl.clusters.partition import Cluster, Clusters
from ssdfl.clusters.scores import (
    COSTS,
    MESSAGE_BYTES,
    SCORES,
    TRAINING,
    Score,
    ScoreInputs,
    evaluate,
    find_score,
)
from ssdfl.clusters.standing import Standing, standing_of
from ssdfl.errors import InputError, check_range
from ssdfl.graph import Network, Weights, metropolis, survived_liars
from ssdfl.theory import THRESHOLD_STEPS, Constants, conductance_threshold

PARTITIONS = ("cost", "balanced", "paper")
MODES = ("auto", "literal", "fast")
PREDICTIONS = tuple(COSTS)
PRICE = 1.1
INDIFFERENCE = 1.01
_KNOWN: dict[str, Collection[str]] = {
    "partition": PARTITIONS,
    "mode": MODES,
    "threshold_step": THRESHOLD_STEPS,
}
_AUTO_LIMIT = 200
_FAST = Budget(state_limit=1 << 8, half_limit=1 << 6, prefixes=3)
_HUGE = 20_000
"""Above this size, formation weighs fewer numbers of clusters and searches small clusters only."""
_FASTEST = Budget(state_limit=2, half_limit=2, prefixes=1)
_EVERY_SIZE_TO = 16
_IMPROVED = 3
_ROUNDING = 1e-9


@dataclass(frozen=True)
class FormationSettings:
    """How to form clusters.

    Attributes:
        constants: of training and of the bounds.
        partition: ``cost``, ``balanced`` (candidates that also see data) or ``paper`` (Algorithm
            2).
        score: a name of `SCORES`, ``package.module:function``, or a function.
        mode: ``literal`` weighs every number of clusters, with conductances as exact as can be;
            ``fast`` leaves out what costs most; ``auto`` is literal up to 200 devices.
        price: how many times the best predicted time (or bytes) a feasible candidate may take, if
            devices are known to differ. Above it, the best wins though it misses Φ_min. Infinite:
            Φ_min always decides.
        message_bytes: the size of a model on the wire.
        weights: rule for mixing weights.
        with_tau_a: keep Lemma 1's τ_a in Φ_min, which the paper drops.
        threshold_step: the step size in Φ_min: ``eta`` as printed, or ``eta_E``, η times local
            steps.
        amplification: how differences between devices become α_s.
        data_distance: (L,) how different linked devices' data are, if not computed from samples.
        sends_early: messages leave before devices train, so sending hides behind computing.
        corrects: the rule corrects devices' drift, which simulated learning takes into account.
        liars: how many liars per neighbourhood every cluster must survive (`survived_liars`).
    """

    constants: Constants = TRAINING
    partition: str = "cost"
    score: str | Score = "time"
    mode: str = "auto"
    price: float = PRICE
    message_bytes: int = MESSAGE_BYTES
    weights: Weights = metropolis
    with_tau_a: bool = False
    threshold_step: str = "eta"
    amplification: AmplificationSettings = PAPER_AMPLIFICATION
    data_distance: FloatArray | None = field(default=None, compare=False)
    sends_early: bool = True
    corrects: bool = False
    liars: int = 0

    def __post_init__(self) -> None:
        for name, known in _KNOWN.items():
            value = getattr(self, name)
            if value not in known:
                raise InputError(name, value, f"one of {', '.join(known)}", "Choose one of them.")
        check_range("price", self.price, 1)
        check_range("message_bytes", self.message_bytes, 1)
        check_range("liars", self.liars, 0)

    def threshold(self, num_devices: int, num_clusters: int) -> float:
        """Φ_min(S)."""
        return conductance_threshold(
            self.constants, num_devices, num_clusters, self.with_tau_a, self.threshold_step
        )

    @property
    def score_name(self) -> str:
        """The score as a text."""
        return self.score if isinstance(self.score, str) else getattr(self.score, "__name__", "own")

    def price_for(self, inputs: ScoreInputs) -> float:
        """The price, or infinity where the score cannot tell what keeping to Φ_min costs.

        It can if it predicts a cost and devices are known to differ.
        """
        return self.price if self.predicts and inputs.devices_differ else math.inf

    @property
    def predicts(self) -> bool:
        """Whether the score is a predicted cost."""
        return self.predicted is not None

    @property
    def predicted(self) -> str | None:
        """Which cost the score predicts, a name of `COSTS`; None if it predicts none."""
        score = find_score(self.score)
        return next((name for name in PREDICTIONS if SCORES[name] is score), None)

    def mode_for(self, num_devices: int) -> str:
        """``literal`` or ``fast``."""
        if self.mode == "auto":
            return "literal" if num_devices <= _AUTO_LIMIT else "fast"
        return self.mode


@dataclass(frozen=True)
class Skipped:
    """What the fast mode left out; with nothing left out its result is the literal one.

    Attributes:
        sizes: numbers of clusters that were not scored.
        prefixes: cuts along Fiedler vectors that were not tried.
        halves: halves of Algorithm 2 weighed by the best cut found, not by their conductance.
        moves: whether the step that moves devices between clusters was skipped.
        inexact: candidates whose conductance is an interval and not a value.
    """

    sizes: int = 0
    prefixes: int = 0
    halves: int = 0
    moves: bool = False
    inexact: int = 0


@dataclass(frozen=True)
class Formation:
    """What formation found: every candidate, the chosen one and why."""

    candidates: tuple[Candidate, ...]
    chosen: Candidate
    choice: str
    mode: str
    skipped: Skipped
    diagnostics: tuple[Diagnostic, ...]
    standing: Standing | None


def form(network: Network, devices: Sequence[Device], settings: FormationSettings) -> Formation:
    """Weigh partitions of every size and choose one, deterministically.

    With ``partition="paper"`` and ``score="stationarity"`` it is Algorithm 1 (`alg:cluster_form`).

    Raises:
        InputError: there are not as many descriptors as devices, or the score is unknown.
    """
    with threadpool_limits(1):  # matrices are small: more threads only get in each other's way
        return _form(network, devices, settings)


def _form(network: Network, devices: Sequence[Device], settings: FormationSettings) -> Formation:
    n = network.num_devices
    mode = settings.mode_for(n)
    exact = score_inputs(network, devices, settings)
    inputs = _for_search(exact, settings)
    sizes = _sizes(n) if mode == "fast" else list(range(1, n + 1))
    weigher = _Weigher(inputs, settings)
    make = _by_the_paper if settings.partition == "paper" else _by_cost
    candidates = tuple(_rescored(candidate, weigher, exact) for candidate in make(weigher, sizes))
    indifference = INDIFFERENCE if settings.predicts else 1.0
    eligible = weigher.surviving(candidates)
    chosen, choice = choose(eligible, weigher.price, indifference, weigher.assumed)
    skipped = Skipped(
        sizes=n - len(sizes),
        prefixes=inputs.splits.skipped_prefixes,
        halves=inputs.splits.inexact_halves,
        moves=settings.partition != "paper" and not _moves_devices(settings, n),
        inexact=sum(not candidate.min_conductance.exact for candidate in candidates),
    )
    diagnostics = diagnose(exact, chosen.clusters)
    standing = standing_of(exact, settings.predicted, chosen.score)
    return Formation(candidates, chosen, choice, mode, skipped, diagnostics, standing)


def _for_search(inputs: ScoreInputs, settings: FormationSettings) -> ScoreInputs:
    """Inputs for the search of candidates, which scores too many partitions to simulate each."""
    simulates = settings.predicts and inputs.pilot is not None
    return replace(inputs, simulates=False) if simulates else inputs


def _rescored(candidate: Candidate, weigher: _Weigher, inputs: ScoreInputs) -> Candidate:
    """The candidate with its final score, if the search used a simpler one."""
    if inputs is weigher.inputs:
        return candidate
    return replace(candidate, score=evaluate(weigher.score, inputs, candidate.clusters))


def score_inputs(
    network: Network, devices: Sequence[Device], settings: FormationSettings
) -> ScoreInputs:
    """What partitions of a network are scored with.

    Raises:
        InputError: there are not as many descriptors as devices.
    """
    return ScoreInputs(
        network,
        devices,
        settings.constants,
        settings.weights,
        settings.message_bytes,
        _budget(settings.mode_for(network.num_devices), network.num_devices),
        settings.data_distance,
        settings.amplification,
        settings.sends_early,
        settings.corrects,
    )


def _budget(mode: str, num_devices: int) -> Budget:
    """What a mode may leave out."""
    if mode != "fast":
        return Budget()
    return _FAST if num_devices <= _HUGE else _FASTEST


class _Weigher:
    """Makes candidates of partitions: scores them and compares them with the threshold."""

    def __init__(self, inputs: ScoreInputs, settings: FormationSettings) -> None:
        self.inputs, self.settings = inputs, settings
        self.score = find_score(settings.score)
        self.price = settings.price_for(inputs)
        self.num_devices = inputs.network.num_devices

    def threshold(self, num_clusters: int) -> float:
        """Φ_min(S)."""
        return self.settings.threshold(self.num_devices, num_clusters)

    @cached_property
    def least_score(self) -> float:
        """What no partition scores below: a cycle without clusters, if nothing slows it down."""
        predicted = self.settings.predicted
        if predicted is None:
            return -math.inf
        alone = tuple((device,) for device in range(self.num_devices))
        return COSTS[predicted](self.inputs.cycle_cost(alone))

    @property
    def assumed(self) -> Callable[[Candidate], float] | None:
        """Candidates' costs if devices differ as usual; None if more is known or Φ_min decides."""
        is_needed = self.settings.predicts and not self.inputs.devices_differ
        return self._assumed_cost if is_needed and math.isfinite(self.settings.price) else None

    def _assumed_cost(self, candidate: Candidate) -> float:
        return candidate.score * self.inputs.assumed_slowdown(candidate.clusters)

    def contenders(self, options: list[tuple[Clusters, str]]) -> list[tuple[Clusters, str]]:
        """Of partitions of the same size, those that may be chosen: the rest need no conductance.

        At a finite price that is the one of least score, and any that may be feasible.
        """
        if len(options) == 1 or math.isinf(self.price):
            return options
        scores = [self._score(clusters) for clusters, _ in options]
        least = min(map(round_score, scores))
        return [
            option
            for option, score in zip(options, scores, strict=True)
            if round_score(score) == least or self._may_be_feasible(option[0])
        ]

    def _may_be_feasible(self, clusters: Clusters) -> bool:
        """Whether no single device, taken as a cut, shows that a cluster misses the threshold."""
        weakest = 1.0 - float(self.inputs.A_intra(clusters).diagonal().max())
        return weakest >= self.threshold(len(clusters)) * (1 - _ROUNDING)

    def _score(self, clusters: Clusters) -> float:
        return evaluate(self.score, self.inputs, clusters)

    def better(self, candidates: Sequence[Candidate]) -> Candidate:
        """The best of some candidates of the same size."""
        if self.assumed is not None:
            least = min(candidate.score for candidate in candidates)
            candidates = [c for c in candidates if c.feasible or c.score <= least * INDIFFERENCE]
        return choose(candidates, self.price)[0]

    def survives(self, candidate: Candidate) -> bool:
        """Whether each cluster survives as many liars as is demanded."""
        demanded = self.settings.liars
        return (
            not demanded or min(survived_liars(self.inputs.network, candidate.clusters)) >= demanded
        )

    def surviving(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that survive as many liars as is demanded.

        Raises:
            InputError: there are none.
        """
        found = [candidate for candidate in candidates if self.survives(candidate)]
        if not found:
            most = max(min(survived_liars(self.inputs.network, one.clusters)) for one in candidates)
            expected = f"at most {most}, which the best of {len(candidates)} partitions survives"
            remedy = (
                "Add links: F liars take clusters of 4 F + 1 devices with 2 F + 1 neighbours each."
            )
            raise InputError("clusters.liars", self.settings.liars, expected, remedy)
        return found

    def candidate(self, clusters: Clusters, rule: str, split: Cluster = ()) -> Candidate:
        """A partition with its score, threshold and conductance."""
        threshold = self.threshold(len(clusters))
        weakest = self.inputs.cache.weakest(clusters)
        return Candidate(clusters, self._score(clusters), threshold, weakest, split, rule)


def _sizes(num_devices: int) -> list[int]:
    """Every number of clusters to 16, then some 20 % more each time to N / 2, and N.

    More than N / 2 clusters leave a device alone, so they never reach a threshold. For huge
    networks, 40 % more each time from the start.
    """
    half = num_devices // 2
    if half <= _EVERY_SIZE_TO:
        return list(range(1, num_devices + 1))
    every, growth = (_EVERY_SIZE_TO, 1.2) if num_devices <= _HUGE else (2, 1.4)
    sizes = {*range(1, every + 1), half, num_devices}
    size = float(every)
    while (size := size * growth) < half:
        sizes.add(round(size))
    return sorted(sizes)


def _by_the_paper(weigher: _Weigher, sizes: list[int]) -> list[Candidate]:
    """Every partition that Algorithm 1 passes through.

    Where sizes were left out before N, the last one needs no splits.
    """
    n = weigher.num_devices
    left_out = len(sizes) > 1 and sizes[-2] < n - 1
    wanted = sizes[:-1] if left_out else sizes
    splits = spectral.repeated_splits(weigher.inputs.splits, weigher.threshold, wanted)
    found = [weigher.candidate(clusters, rule, split) for clusters, split, rule in splits]
    alone = tuple((device,) for device in range(n))
    return [*found, weigher.candidate(alone, "end")] if left_out else found


def _by_cost(weigher: _Weigher, sizes: list[int]) -> list[Candidate]:
    """The better cost-aware partition of each size; the most promising ones also move devices."""
    found = []
    sees_data = weigher.settings.partition == "balanced"
    partitions = partitions_by_data if sees_data else cost_aware.partitions_by_cost
    for options in partitions(weigher.inputs, sizes):
        candidates = [
            weigher.candidate(clusters, rule) for clusters, rule in weigher.contenders(options)
        ]
        found.append(weigher.better(candidates))
    if _moves_devices(weigher.settings, weigher.num_devices):
        by_score = sorted(range(len(found)), key=lambda k: (round_score(found[k].score), k))
        for k in by_score[:_IMPROVED]:
            found[k] = _with_devices_moved(weigher, found[k])
    return found


def _with_devices_moved(weigher: _Weigher, candidate: Candidate) -> Candidate:
    """The candidate after moves that make its score better, unless they make it infeasible."""
    if candidate.score <= weigher.least_score:
        return candidate
    better = cost_aware.move_devices(weigher.inputs, candidate.clusters, weigher.score)
    if better == candidate.clusters:
        return candidate
    moved = weigher.candidate(better, "moves")
    keeps = moved.feasible >= candidate.feasible and weigher.survives(moved) >= weigher.survives(
        candidate
    )
    return moved if keeps else candidate


def _moves_devices(settings: FormationSettings, num_devices: int) -> bool:
    return settings.mode_for(num_devices) == "literal" or num_devices <= _AUTO_LIMIT
