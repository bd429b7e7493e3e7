"""Formation's inputs from an experiment. Needs no torch, so planning needs no data or model."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ssdfl.clusters import AmplificationSettings, FormationSettings
from ssdfl.clusters.formation import PRICE
from ssdfl.graph import MIXINGS
from ssdfl.methods import Rule, find_method, find_rule
from ssdfl.records.config import Experiment
from ssdfl.theory import Constants


@dataclass(frozen=True)
class TaskFacts:
    """Facts that only data and model can provide; the defaults apply if neither is available.

    Attributes:
        gradient_bound: B of Assumption 2.
        smoothness: γ̂ of Assumption 1.
        initial_loss: L(θ⁰); ln 10 is the loss of guessing among ten classes.
    """

    gradient_bound: float = 1.0
    smoothness: float = 1.0
    initial_loss: float = math.log(10)


def planned_rules(experiment: Experiment) -> list[Rule]:
    """The rules of methods that need a plan; the paper's if there are none."""
    methods = [find_method(name) for name in experiment.methods]
    return [method.rule for method in methods if method.needs_plan] or [find_rule("cta")]


def formation_settings(experiment: Experiment, facts: TaskFacts) -> FormationSettings:
    """Formation's settings for the first method of an experiment that needs a plan.

    ``clusters.gradient_bound`` overrides the measured B.

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
    rule = planned_rules(experiment)[0]
    return FormationSettings(
        constants=constants,
        partition=config.partition,
        score=config.score,
        mode=config.mode,
        price=math.inf if config.strict else PRICE,
        sends_early=rule.early,
        corrects=rule.corrects,
        weights=MIXINGS[experiment.network.mixing],
        threshold_step=config.threshold_step,
        amplification=amplification,
        liars=config.liars,
    )
