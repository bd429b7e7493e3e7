"""What a device writes down while it runs: a line for each cycle, and where it is just now."""

from __future__ import annotations

import json
import logging
import math
import time
from pathlib import Path
from typing import Any

from ssdfl.engine import Job, State
from ssdfl.files import write_text
from ssdfl.mesh.folder import STATUS
from ssdfl.mesh.node import Node
from ssdfl.records import Record
from ssdfl.records.record import OTHER_SCORES
from ssdfl.records.scores import Score

STATUS_S = 0.5

log = logging.getLogger(__name__)


class Journal:
    """``metrics.jsonl`` and ``status.json`` of a device; a full disk is logged and stops nothing.

    Args:
        scores: what the task is tested for, the first ranks.
        job: what the device has a part in.
        before: of the same device before a change of membership.

    Attributes:
        score: of the last test.
        left: whether the device is no longer in the mesh.
    """

    def __init__(
        self, folder: Path, node: Node, scores: list[Score], job: Job, before: Journal | None = None
    ) -> None:
        self._folder, self._node, self.scores, self._job = folder, node, scores, job
        self._written_s = -math.inf
        # The last line that another process wrote may have been cut short.
        self._continues = before is None and (folder / "metrics.jsonl").exists()
        self.score: float = math.nan if before is None else before.score
        self.left = False

    def record(self, record: Record, state: State) -> None:
        """Write the line of a cycle."""
        if not math.isnan(record.score):
            self.score = record.score
        names = ("score", *OTHER_SCORES[: len(self.scores) - 1], "loss", "effective_gradient")
        row = {
            "cycle": record.cycle,
            **{name: getattr(record, name) for name in names},
            "received": record.transmissions,
            "received_bytes": self._node.received_bytes,
            "time_s": record.time_s,
            "real_s": state.real_s,
            "neighbours": len(self._node.neighbours.alive),
            "bad_messages": sum(self._node.bad_messages.values()),
        }
        try:
            with (self._folder / "metrics.jsonl").open("a", encoding="utf-8") as lines:
                lines.write("\n" * self._continues + json.dumps(row) + "\n")
            self._continues = False
        except OSError as error:
            log.error("metrics not written: %s", error)

    def tell(self, state: State, refused: int, always: bool = False) -> None:
        """Write the device's position, for those who watch its host, at most twice a second."""
        if not always and time.monotonic() - self._written_s < STATUS_S:
            return
        self._written_s = time.monotonic()
        try:
            write_text(
                self._folder / STATUS, json.dumps(self._now(state, refused)) + "\n", durable=False
            )
        except OSError as error:
            log.error("status not written: %s", error)

    def _now(self, state: State, refused: int) -> dict[str, Any]:
        neighbours = self._node.neighbours
        tested = not math.isnan(self.score)
        return {
            "device": self._node.name,
            "step": state.step,
            "cycle": state.step // self._job.steps_per_cycle,
            "score": self.score if tested else None,
            "shown_score": self.scores[0].shown(self.score) if tested else None,
            "neighbours": f"{len(neighbours.alive)}/{len(neighbours.names)}",
            "received": state.transmissions,
            "message_bytes": self._job.message_bytes,
            "real_s": state.real_s,
            "bad_messages": sum(self._node.bad_messages.values()),
            "refused": refused,
            "skipped": self._node.skipped,
            "waited_s": self._node.waited_s,
            "done": self.left or state.step >= self._job.last_step,
            "membership": self._node.membership,
        }
