"""The record of a cycle, and what each of its numbers means.

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
    """What a number of a record means, and how to show it.

    Attributes:
        name: the field of `Record`.
        label: what an axis says.
        unit: what it is shown in, such as ``%``, ``MB`` or ``s``; empty for a count or plain
            number.
        column: a table's header; the unit or the label unless said otherwise.
        noun: what one has more or less of in a sentence; the label unless said otherwise.
        axis: it is a cost, counted from the start of the run, that curves are drawn against.
        ranked: it is a cost by which reports rank methods.
        log: it is drawn on a logarithmic axis where all values are positive.
        better: which end is the good one, if either.
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
        """Divide a stored value by this to have it in `unit`.

        Examples:
            >>> METRICS["sent_bytes"].unit, METRICS["sent_bytes"].scale
            ('MB', 1000000.0)
        """
        return SCALES.get(self.unit, 1.0)


def metric(label: str, *, default: Any = MISSING, **description: Any) -> Any:
    """A field of `Record` that is a metric; the other arguments are those of `Metric`.

    Args:
        default: for engines that do not measure it, and for files written before it existed.
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
        label: with ``{}`` for the score's own, as ``column`` and ``noun``.
        number: which of the task's scores.
        better: which end is good, if it is not the score's.
        column: without the unit; the unit or the label by default.
        noun: the label by default.
    """
    templates = {"label": label, "column": column, "noun": noun}
    return field(
        default=default, metadata={"templates": templates, "number": number, "own_better": better}
    )


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a run has come to after a cycle. Costs count from the start of the run.

    A number that was not measured is NaN. Fields with a value per device or cluster are not
    metrics.

    Attributes:
        score, score_std, score_worst: the task's first score on the test set, over honest devices;
            NaN if devices were not tested. For classes it is the accuracy. With liars, the numbers
            below also cover honest devices only.
        average_model_score: the score of the mean of all parameters.
        loss: mean test loss over devices; NaN if devices were not tested.
        score_2, score_3, score_4: the task's other scores, means over devices; NaN if it has none.
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
        """The mean over devices, or that of the averaged model if only that was tested."""
        return self.average_model_score if math.isnan(self.score) else self.score


OTHER_SCORES = tuple(f"score_{number}" for number in range(2, MOST_SCORES + 1))
"""The fields of a record that hold a task's other scores."""
TYPES: dict[str, Any] = get_type_hints(Record)
"""The type of each field of a record."""


def describe(one: Field[Any]) -> Metric:
    """The metric of a field of `Record`, with what its description leaves out filled in.

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
    """What a score's description says of a field."""
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
"""The scores of tasks of which nothing is known."""

METRICS = {one.name: describe(one) for one in fields(Record) if TYPES[one.name] in (int, float)}
"""Every metric by name, in the order of the record's fields, for a task scored by accuracy."""


@cache
def metrics_of(goal: Goal) -> dict[str, Metric]:
    """Every metric by name, those about scores as the task's scores are described.

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
"""What curves are drawn against."""
RANKED_COSTS = tuple(name for name in COSTS if METRICS[name].ranked)
"""What reports rank methods by."""
QUANTITIES = tuple(name for name, one in METRICS.items() if not one.axis)
"""What curves show."""
