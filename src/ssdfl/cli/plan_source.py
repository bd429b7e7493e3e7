"""Where ``ssdfl plan`` takes what it plans with: a network alone, or an experiment."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssdfl.cli.plan_inputs import PlanInputs
    from ssdfl.records import Experiment


@dataclass(frozen=True)
class Source:
    """What the user named.

    Attributes:
        network: a spec or file.
        experiment: a TOML file.
        settings: values of the experiment that were set.
        quick: whether to measure nothing.
        data: folder with data sets.
    """

    network: str | None
    experiment: Path | None
    settings: tuple[str, ...]
    quick: bool
    data: Path | None

    @property
    def is_experiment(self) -> bool:
        """Whether an experiment is planned for, and not a network alone."""
        return self.network is None or self.experiment is not None or bool(self.settings)

    def inputs(self, chosen: Experiment) -> PlanInputs:
        """What to plan the experiment with; a user's own functions are found beside its file."""
        from ssdfl.cli.plan_inputs import gather_inputs

        if self.experiment is not None:
            sys.path.append(str(self.experiment.parent.resolve()))
        return gather_inputs(chosen, measure=self.is_experiment and not self.quick, data=self.data)
