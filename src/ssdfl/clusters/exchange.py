"""What formation asks of a rule."""

from __future__ import annotations

from typing import NamedTuple


class Exchange(NamedTuple):
    """How devices exchange parameters: methods that differ here may get other clusters.

    Attributes:
        message_bytes: the size of a model on the wire; None if clusters were given.
        sends_early: messages leave before devices train, so sending hides behind computing.
        corrects: the rule corrects drift, so clusters may mix less.
    """

    message_bytes: int | None
    sends_early: bool = True
    corrects: bool = False

    @property
    def file_name(self) -> str:
        """Of a plan made for it, beside that of an experiment's first method.

        Examples:
            >>> Exchange(1000, sends_early=False, corrects=True).file_name
            'plan-1000-late-corrected.json'
        """
        late = "" if self.sends_early else "-late"
        corrected = "-corrected" if self.corrects else ""
        return f"plan-{self.message_bytes}{late}{corrected}.json"
