"""The record of a cycle, and what each of its numbers means.

A metric is described here and nowhere else, where its field is declared. The Parquet schema, reports, pages
and logs read the descriptions from `METRICS`. To add a metric, add a field here and compute it in the engine.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal, get_type_hints

SCALES = {"%": 0.01, "MB": 1e6}
"""How much of what is stored makes one of a unit; 1 for all other units."""


@dataclass(frozen=True)
class Metric:
    """What a number of a record means, and how to show it.

    Attributes:
        name: the field of `Record`.
        label: what an axis says.
        unit: what it is shown in, such as ``%``, ``MB`` or ``s``; empty for a count or a plain number.
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


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a run has come to after a cycle. Costs count from the start of the run.

    A number that was not measured is NaN. Fields with one value for each device or cluster are no metrics.

    Attributes:
        accuracy, accuracy_std, accuracy_worst: test accuracy over devices; NaN if devices were not tested.
        average_model_accuracy: test accuracy of the mean of all parameters.
        loss: mean test loss over devices; NaN if devices were not tested.
        consensus_distance: root mean square distance of devices' parameters from their mean.
        effective_gradient: root mean square over the cycle's training steps and devices of the effective
            gradient (θ before − θ after) / η of `eq:expand_cluster_gd`.
        transmissions, sent_bytes: directed messages, and their bytes.
        time_s: simulated seconds, by the network's latencies, bandwidths and computing times.
        real_s: seconds that real devices took; NaN in a simulation.
        device_accuracy: test accuracy of each device; empty if devices were not tested.
        training_gap: ‖Δ̂‖ of Lemma 2 at the end of training; NaN if gaps are not recorded, as the next are
            empty.
        cluster_gaps_before, cluster_gaps: ‖Δ_s‖ of Lemma 1 before and after training, for each cluster.
        cluster_gradients: Σ_q ‖∇F̃_s‖² of Theorem 1 over the cycle's training steps.
        cluster_losses: Σ_i L_i before training, on a few of each device's samples.
    """

    cycle: int = metric("cycles", axis=True, ranked=True, better="lower")
    accuracy: float = metric(
        "mean test accuracy", unit="%", column="accuracy %", noun="accuracy", better="higher"
    )
    accuracy_std: float = metric("deviation of test accuracy over devices", unit="%", better="lower")
    accuracy_worst: float = metric("test accuracy of the worst device", unit="%", better="higher")
    average_model_accuracy: float = metric(
        "test accuracy of the averaged model",
        unit="%",
        column="averaged model %",
        noun="accuracy of the averaged model",
        better="higher",
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
        "simulated seconds", unit="s", column="sim. s", axis=True, ranked=True, log=True, better="lower"
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
    device_accuracy: tuple[float, ...]
    training_gap: float = metric("distance from the mean after training", better="lower", default=math.nan)
    cluster_gaps_before: tuple[float, ...] = ()
    cluster_gaps: tuple[float, ...] = ()
    cluster_gradients: tuple[float, ...] = ()
    cluster_losses: tuple[float, ...] = ()

    @property
    def tested(self) -> bool:
        """Whether the cycle ended with a test, of all models or of the averaged one only."""
        return not math.isnan(self.reported_accuracy)

    @property
    def reported_accuracy(self) -> float:
        """The mean over devices, or that of the averaged model if only that was tested."""
        return self.average_model_accuracy if math.isnan(self.accuracy) else self.accuracy


TYPES: dict[str, Any] = get_type_hints(Record)
"""The type of each field of a record."""


def describe(one: Field[Any]) -> Metric:
    """The metric of a field of `Record`, with what its description leaves out filled in.

    Examples:
        >>> describe(fields(Record)[0]).noun
        'cycles'
    """
    label = one.metadata.get("label", one.name.replace("_", " "))
    filled_in = {
        "label": label,
        "column": one.metadata.get("unit") or label,
        "noun": label,
        "optional": one.default is not MISSING,
    }
    return Metric(one.name, **(filled_in | dict(one.metadata)))


METRICS = {one.name: describe(one) for one in fields(Record) if TYPES[one.name] in (int, float)}
"""Every metric by name, in the order of the record's fields."""
COSTS = tuple(name for name, one in METRICS.items() if one.axis)
"""What curves are drawn against."""
RANKED_COSTS = tuple(name for name in COSTS if METRICS[name].ranked)
"""What reports rank methods by."""
QUANTITIES = tuple(name for name, one in METRICS.items() if not one.axis)
"""What curves show."""
READINGS = ("accuracy", "average_model_accuracy")
"""What can be reported as a run's accuracy, the first that it has."""
