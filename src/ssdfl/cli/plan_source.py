"""The source of ``ssdfl plan``'s inputs: a network alone, or an experiment."""

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
    """The source that the user named.

    Attributes:
        network: a spec or file.
        experiment: a TOML file.
        settings: the experiment's values that the user set.
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
        """Whether to plan for an experiment rather than for a network alone."""
        return self.network is None or self.experiment is not None or bool(self.settings)

    def inputs(self, chosen: Experiment) -> PlanInputs:
        """The inputs for the experiment; a user's own functions are found beside its file."""
        from ssdfl.cli.plan_inputs import gather_inputs

        if self.experiment is not None:
            sys.path.append(str(self.experiment.parent.resolve()))
        return gather_inputs(chosen, measure=self.is_experiment and not self.quick, data=self.data)
