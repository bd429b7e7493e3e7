"""The scores that results are judged by, each described once, and the target to reach.

The run's folder keeps the description of a score. Records hold only numbers. Tables, pages,
rankings, progress bars and logs take the name, the unit and the better direction from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ssdfl.errors import InputError

SCALES = {"%": 0.01, "MB": 1e6}
"""Stored values per unit; 1 for all other units."""
READINGS = ("score", "average_model_score")
"""Record columns that can be ranked: the mean over devices, or the averaged model's score."""
MOST_SCORES = 4
"""How many scores of a task fit into a record."""


@dataclass(frozen=True)
class Score:
    """A score by which a task's models are tested.

    Attributes:
        name: its name in an experiment.
        label: its name within a sentence.
        unit: the unit it is shown in, such as ``%``; empty for a plain number.
        better: ``higher`` or ``lower``.
        target: the default value to reach; None if there is none.
    """

    name: str
    label: str
    unit: str = ""
    better: Literal["higher", "lower"] = "higher"
    target: float | None = None

    @property
    def scale(self) -> float:
        """Divide a stored value by this to get it in `unit`."""
        return SCALES.get(self.unit, 1.0)

    @property
    def sign(self) -> int:
        """1 if higher is better, −1 if lower is."""
        return 1 if self.better == "higher" else -1

    @property
    def best(self) -> str:
        """The adjective for the best value."""
        return "Best" if self.better == "higher" else "Lowest"

    @property
    def header(self) -> str:
        """The label with the unit, for columns of numbers.

        Examples:
            >>> SCORES["accuracy"].header, SCORES["r2"].header
            ('accuracy %', 'R²')
        """
        return f"{self.label} {self.unit}".rstrip()

    def number(self, value: float) -> str:
        """A value converted to its unit, without the unit's name.

        Examples:
            >>> [SCORES[name].number(0.4567) for name in ("accuracy", "r2", "mae")]
            ['45.7', '0.457', '0.457']
            >>> [SCORES["mae"].number(value) for value in (999.4, 1000)]
            ['999', '1,000']
        """
        scaled = value / self.scale
        if self.unit == "%":
            return f"{scaled:.1f}"
        return f"{scaled:,.0f}" if abs(scaled) >= 1000 else f"{scaled:.3g}"

    def shown(self, value: float) -> str:
        """A value with its unit."""
        return f"{self.number(value)} {self.unit}".rstrip()

    def reaches(self, value: float, target: float) -> bool:
        """Whether a value is at least as good as a target; NaN never is."""
        return self.sign * value >= self.sign * target

    def worst(self, values: Iterable[float]) -> float:
        """The worst of some values."""
        return self.sign * min(self.sign * value for value in values)


SCORES = {
    score.name: score
    for score in (
        Score("accuracy", "accuracy", "%", target=0.85),
        Score("token_accuracy", "accuracy of the next token", "%"),
        Score("perplexity", "perplexity", better="lower"),
        Score("binary_accuracy", "accuracy", "%", target=0.85),
        Score("f1", "F1", "%"),
        Score("label_accuracy", "accuracy of all labels", "%"),
        Score("r2", "R²"),
        Score("mae", "mean absolute error", better="lower"),
        Score("rmse", "root mean square error", better="lower"),
    )
}
"""The scores that come with ssdfl, by name; `ssdfl.learning.metrics` computes them."""

ACCURACY = SCORES["accuracy"]


OWN_TESTS = "Each device is tested on its own held-out data; there is no common test set."
"""The note on data in runs whose devices have their own data."""


@dataclass(frozen=True)
class CrossTests:
    """The scores of every model on every device's held-out data.

    Attributes:
        devices: their names.
        samples: the number of test samples of each.
        scores: indexed as [model][test data].
    """

    devices: tuple[str, ...]
    samples: tuple[int, ...]
    scores: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Goal:
    """How results are judged: the task's scores, the first of which ranks, and the value to reach.

    Attributes:
        target: the value that the first score has to reach; None if there is none.
        reading: the ranked column of records: the devices' mean score, or the averaged model's.
    """

    scores: tuple[Score, ...] = (ACCURACY,)
    target: float | None = ACCURACY.target
    reading: str = READINGS[0]

    @property
    def score(self) -> Score:
        """The score that ranks."""
        return self.scores[0]

    @property
    def averaged(self) -> bool:
        """Whether the averaged model is ranked rather than the devices' models."""
        return self.reading == READINGS[1]

    @property
    def noun(self) -> str:
        """The name of the ranked score within a sentence.

        Examples:
            >>> Goal().noun, Goal(reading=READINGS[1]).noun
            ('accuracy', "averaged model's accuracy")
        """
        return f"averaged model's {self.score.label}" if self.averaged else self.score.label

    @property
    def header(self) -> str:
        """The name of the ranked score with its unit, for columns of numbers."""
        return f"{self.noun} {self.score.unit}".rstrip()

    @property
    def shown_target(self) -> str:
        """The target with its unit, as users write it.

        Examples:
            >>> Goal().shown_target
            '85 %'
        """
        assert self.target is not None
        return f"{self.target / self.score.scale:g} {self.score.unit}".rstrip()

    @property
    def named_target(self) -> str:
        """The target in a sentence; a number without a unit is preceded by the score's label.

        Examples:
            >>> Goal().named_target, Goal((SCORES["r2"],), 0.4).named_target
            ('85 %', 'R² 0.4')
        """
        return self.shown_target if self.score.unit else f"{self.score.label} {self.shown_target}"

    def reached(self, value: float) -> bool:
        """Whether a value is at the target, or better."""
        return self.target is not None and self.score.reaches(value, self.target)


def make_goal(scores: Sequence[Score], target: float | str, reading: str = READINGS[0]) -> Goal:
    """An experiment's goal. The target is a number, or ``auto`` for the score's default."""
    wanted = scores[0].target if isinstance(target, str) else target
    return Goal(tuple(scores), wanted, reading)


def scores_to_json(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Descriptions for the run's folder."""
    return [asdict(score) for score in scores]


def scores_from_json(found: Iterable[Mapping[str, Any]]) -> tuple[Score, ...]:
    """Descriptions from the run's folder.

    Raises:
        InputError: the descriptions are not valid.
    """
    try:
        return tuple(Score(**one) for one in found)
    except TypeError as error:
        raise InputError(
            "scores", str(found), "descriptions of scores", f"({error}) Restore them."
        ) from None
