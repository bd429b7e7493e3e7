"""The record of a cycle, and the meaning of its numbers.

A metric is described once, where its field is declared. The Parquet schema, reports, pages and logs
read the descriptions from `METRICS`. To add a metric, add a field here and compute it in the
engine. Each task has its own scores: `metrics_of` fills in their descriptions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal, get_type_hints

from ssdfl.records.scores import ACCURACY, MOST_SCORES, SCALES, Goal, Score


@dataclass(frozen=True)
class Metric:
    """The meaning of a number in a record, and how to show it.

    Attributes:
        name: the field of `Record`.
        label: the label of an axis.
        unit: the unit it is shown in, such as ``%``, ``MB`` or ``s``; empty for a count or plain
            number.
        column: the header in a table; by default the unit or the label.
        noun: its name in a sentence such as "fewest bytes"; by default the label.
        axis: it is a cost, counted from the start of the run, that can be the x-axis of curves.
        ranked: it is a cost by which reports rank methods.
        log: it is drawn on a logarithmic axis if all values are positive.
        better: ``higher`` or ``lower``, if either is better.
        optional: not every run measures it.
    """

    name: str
    label: str
    unit: str = ""
    column: str = ""
    noun: str = ""
    axis: bool = False
    ranked: bool = False
    log: bool = False
    better: Literal["higher", "lower", ""] = ""
    optional: bool = False

    @property
    def scale(self) -> float:
        """Divide a stored value by this to get it in `unit`.

        Examples:
            >>> METRICS["sent_bytes"].unit, METRICS["sent_bytes"].scale
            ('MB', 1000000.0)
        """
        return SCALES.get(self.unit, 1.0)


def metric(label: str, *, default: Any = MISSING, **description: Any) -> Any:
    """A field of `Record` that is a metric; the other arguments are those of `Metric`.

    Args:
        default: the value for engines that do not measure it, and for older files.
    """
    return field(default=default, metadata={"label": label, **description})


def of_score(
    label: str,
    *,
    number: int = 1,
    better: str = "",
    column: str = "",
    noun: str = "",
    default: Any = MISSING,
) -> Any:
    """A field of `Record` about one of a task's scores; the score's description fills the gaps.

    Args:
        label: the label, with ``{}`` for the score's label; so are ``column`` and ``noun``.
        number: the number of the score in the task.
        better: ``higher`` or ``lower``, if it differs from the score's.
        column: the header without the unit; the unit or the label by default.
        noun: the label by default.
    """
    templates = {"label": label, "column": column, "noun": noun}
    return field(
        default=default, metadata={"templates": templates, "number": number, "own_better": better}
    )


@dataclass(frozen=True, kw_only=True)
class Record:
    """The results of a run after a cycle. Costs count from the start of the run.

    A number that was not measured is NaN. Fields with a value per device or cluster are not
    metrics.

    Attributes:
        score, score_std, score_worst: the task's first score on the test set, over honest devices;
            NaN if devices were not tested. For classes it is the accuracy. With liars, the numbers
            below also cover honest devices only.
        average_model_score: the score of the mean of all parameters.
        loss: mean test loss over devices; NaN if devices were not tested.
        score_2, score_3, score_4: the task's other scores, means over devices; NaN if missing.
        consensus_distance: root mean square distance of devices' parameters from their mean.
        effective_gradient: root mean square, over the cycle's training steps and devices, of the
            effective gradient (θ before − θ after) / η of `eq:expand_cluster_gd`.
        transmissions, sent_bytes: directed messages, and their bytes.
        time_s: simulated seconds, by the network's latencies, bandwidths and computing times.
        real_s: seconds that real devices took; NaN in a simulation.
        device_score: the score of each device, liars included; empty if devices were not tested.
        liar_score: the mean score of the devices that lie; NaN if there are none.
        training_gap: ‖Δ̂‖ of Lemma 2 at the end of training. Without recorded gaps it is NaN, and
            the next are empty.
        cluster_gaps_before, cluster_gaps: ‖Δ_s‖ of Lemma 1 before and after training, per cluster.
        cluster_gradients: Σ_q ‖∇F̃_s‖² of Theorem 1 over the cycle's training steps.
        cluster_losses: Σ_i L_i before training, on a few of each device's samples.
    """

    cycle: int = metric("cycles", axis=True, ranked=True, better="lower")
    score: float = of_score("mean test {}", column="{}", noun="{}")
    score_std: float = of_score("deviation of test {} over devices", better="lower")
    score_worst: float = of_score("test {} of the worst device")
    average_model_score: float = of_score(
        "test {} of the averaged model", column="averaged model", noun="{} of the averaged model"
    )
    loss: float = metric("mean test loss", better="lower")
    consensus_distance: float = metric("consensus distance", better="lower")
    effective_gradient: float = metric("effective gradient")
    transmissions: int = metric(
        "messages sent", column="messages", noun="messages", axis=True, log=True, better="lower"
    )
    sent_bytes: int = metric(
        "megabytes sent", unit="MB", noun="bytes", axis=True, ranked=True, log=True, better="lower"
    )
    time_s: float = metric(
        "simulated seconds",
        unit="s",
        column="sim. s",
        axis=True,
        ranked=True,
        log=True,
        better="lower",
    )
    real_s: float = metric(
        "real seconds",
        unit="s",
        column="real s",
        axis=True,
        ranked=True,
        log=True,
        better="lower",
        default=math.nan,
    )
    device_score: tuple[float, ...]
    score_2: float = of_score("mean test {}", number=2, default=math.nan)
    score_3: float = of_score("mean test {}", number=3, default=math.nan)
    score_4: float = of_score("mean test {}", number=4, default=math.nan)
    liar_score: float = of_score("mean test {} of liars", default=math.nan)
    training_gap: float = metric(
        "distance from the mean after training", better="lower", default=math.nan
    )
    cluster_gaps_before: tuple[float, ...] = ()
    cluster_gaps: tuple[float, ...] = ()
    cluster_gradients: tuple[float, ...] = ()
    cluster_losses: tuple[float, ...] = ()

    @property
    def tested(self) -> bool:
        """Whether the cycle ended with a test, of all models or of the averaged one only."""
        return not math.isnan(self.reported_score)

    @property
    def reported_score(self) -> float:
        """The mean score over devices, or the averaged model's if only that was tested."""
        return self.average_model_score if math.isnan(self.score) else self.score


OTHER_SCORES = tuple(f"score_{number}" for number in range(2, MOST_SCORES + 1))
"""The fields of a record that hold a task's other scores."""
TYPES: dict[str, Any] = get_type_hints(Record)
"""The type of each field of a record."""


def describe(one: Field[Any]) -> Metric:
    """The metric of a field of `Record`, with missing parts of its description filled in.

    Examples:
        >>> describe(fields(Record)[0]).noun
        'cycles'
    """
    description = _of_score(one, _UNNAMED) if "templates" in one.metadata else dict(one.metadata)
    label = description.get("label", one.name.replace("_", " "))
    filled_in = {
        "label": label,
        "column": description.get("unit") or label,
        "noun": label,
        "optional": one.default is not MISSING,
    }
    return Metric(one.name, **(filled_in | description))


def _of_score(one: Field[Any], scores: Sequence[Score]) -> dict[str, Any]:
    """The parts of a field's description that follow from its score."""
    score = scores[one.metadata["number"] - 1]
    templates = one.metadata["templates"].items()
    said = {
        what: text.format(score.label).replace("mean test mean", "test mean")
        for what, text in templates
    }
    column = f"{said['column']} {score.unit}".rstrip() if said["column"] else score.unit
    return {
        "label": said["label"],
        "unit": score.unit,
        "column": column or said["label"],
        "noun": said["noun"] or said["label"],
        "better": one.metadata["own_better"] or score.better,
    }


_UNNAMED = (ACCURACY, *(Score(f"score_{k}", f"score {k}") for k in range(2, MOST_SCORES + 1)))
"""The scores that are assumed for an unknown task."""

METRICS = {one.name: describe(one) for one in fields(Record) if TYPES[one.name] in (int, float)}
"""Every metric by name, in the order of the record's fields, for a task scored by accuracy."""


@cache
def metrics_of(goal: Goal) -> dict[str, Metric]:
    """Every metric by name, with the task's own description of its scores.

    Examples:
        >>> from ssdfl.records.scores import SCORES
        >>> found = metrics_of(Goal((SCORES["mae"],), None))["score"]
        >>> found.label, found.column, found.better
        ('test mean absolute error', 'mean absolute error', 'lower')
    """
    scores = (*goal.scores, *_UNNAMED[len(goal.scores) :])
    described = {
        one.name: _of_score(one, scores) for one in fields(Record) if "templates" in one.metadata
    }
    return METRICS | {name: replace(METRICS[name], **own) for name, own in described.items()}


COSTS = tuple(name for name, one in METRICS.items() if one.axis)
"""The metrics that can be the x-axis of curves."""
RANKED_COSTS = tuple(name for name in COSTS if METRICS[name].ranked)
"""The metrics by which reports rank methods."""
QUANTITIES = tuple(name for name, one in METRICS.items() if not one.axis)
"""The metrics that curves can show."""
