"""Formation's inputs from an experiment. Needs no torch, so planning needs no data or model."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ssdfl.clusters import AmplificationSettings, FormationSettings
from ssdfl.clusters.formation import PRICE
from ssdfl.clusters.scores import MESSAGE_BYTES
from ssdfl.graph import MIXINGS
from ssdfl.records.config import Experiment
from ssdfl.theory import Constants


@dataclass(frozen=True)
class TaskFacts:
    """Facts that only data and model can provide; the defaults apply if neither is available.

    Attributes:
        gradient_bound: B of Assumption 2.
        smoothness: γ̂ of Assumption 1.
        initial_loss: L(θ⁰); ln 10 is the loss of guessing among ten classes.
        message_bytes: the size of a model on the wire; by default the default experiment's.
        sends_early: messages leave before devices train.
    """

    gradient_bound: float = 1.0
    smoothness: float = 1.0
    initial_loss: float = math.log(10)
    message_bytes: int = MESSAGE_BYTES
    sends_early: bool = True


def formation_settings(experiment: Experiment, facts: TaskFacts) -> FormationSettings:
    """An experiment's formation settings; ``clusters.gradient_bound`` overrides the measured B.

    Examples:
        >>> formation_settings(Experiment(), TaskFacts()) == FormationSettings()
        True
    """
    config = experiment.clusters
    constants = Constants(
        learning_rate=experiment.training.learning_rate,
        local_steps=experiment.training.local_steps,
        tau_a=experiment.schedule.tau_a,
        tau_r=experiment.schedule.tau_r,
        gradient_bound=config.gradient_bound or facts.gradient_bound,
        smoothness=facts.smoothness,
        initial_loss=facts.initial_loss,
        tolerance=config.tolerance,
        variance_floor=config.variance_floor,
    )
    amplification = AmplificationSettings(
        *config.optimizer_weights, *config.optimizer_amplification, *config.data_amplification
    )
    return FormationSettings(
        constants=constants,
        partition=config.partition,
        score=config.score,
        mode=config.mode,
        price=math.inf if config.strict else PRICE,
        message_bytes=facts.message_bytes,
        sends_early=facts.sends_early,
        weights=MIXINGS[experiment.network.mixing],
        threshold_step=config.threshold_step,
        amplification=amplification,
        liars=config.liars,
    )
