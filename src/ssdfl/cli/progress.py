"""Progress of a run: bars on a terminal, one line per finished method elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from ssdfl.experiments import Advance
    from ssdfl.records import Experiment, Record, RunFolder, Score


BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 16) -> str:
    """Values as a row of at most ``width`` blocks, whose heights span the range of the values.

    Examples:
        >>> sparkline([0.1, 0.4, 0.8])
        '▁▄█'
    """
    if not values:
        return ""
    step = max(1, -(-len(values) // width))
    shown = [*values[:-1:step], values[-1]]
    low, span = min(shown), max(shown) - min(shown)
    return "".join(BLOCKS[round(7 * (value - low) / span) if span else 0] for value in shown)


def say(console: Console, text: str) -> None:
    """Print a line as it is: no markup, no colours, no breaks inside a path."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


class ProgressView:
    """Shows the progress of one experiment."""

    def __init__(
        self,
        console: Console,
        bars: Progress,
        experiment: Experiment,
        folder: RunFolder,
        remark: str = "",
    ) -> None:
        self.console, self.bars, self.experiment, self.remarks = console, bars, experiment, [remark]
        self.folder = folder
        self.total = experiment.all_cycles
        self.task = bars.add_task("preparing", total=self.total, note="")
        self.begun = False
        self.label, self.scores = "", list[float]()
        self.score: Score | None = None
        self.reading = ""

    def download(self, name: str, received: int, total: int) -> None:
        """Show the progress of a download."""
        self.bars.update(
            self.task, note=f"downloading {name}: {received / 1e6:.1f} of {total / 1e6:.1f} MB"
        )

    def cycle(self, advance: Advance) -> None:
        """Show that one more cycle is done."""
        if not self.begun:
            self._announce()
        self._remember(f"seed {advance.seed} {advance.method}", advance.record)
        self.bars.update(self.task, advance=1, description=self.label, note=self._note())
        if advance.record is not None and not self.console.is_terminal:
            self._say_if_finished(advance.record)

    def _remember(self, label: str, record: Record | None) -> None:
        """Add a score to those of the same seed and method."""
        if label != self.label:
            self.label, self.scores = label, []
        if record is not None and record.tested:
            self.scores.append(getattr(record, self.reading))

    def _note(self) -> str:
        """The scores so far as a sparkline, and the last one, named unless it is accuracy."""
        if not self.scores or self.score is None:
            return ""
        name = "" if self.score.label == "accuracy" else f"{self.score.label} "
        return f"{sparkline(self.scores)} {name}{self.score.shown(self.scores[-1])}"

    def _say_if_finished(self, record: Record) -> None:
        if record.cycle == self.experiment.cycles:
            costs = f"after {record.cycle} cycles, {record.time_s:.2f} simulated s"
            say(self.console, f"{self.label}: {self._note()} {costs}")

    def _announce(self) -> None:
        """Say what is running, once it has passed all checks."""
        self.begun = True
        e = self.experiment
        goal = self.folder.goal(e)
        self.score, self.reading = goal.score, goal.reading
        seeds = ", ".join(map(str, e.seeds))
        runs = f"methods {', '.join(e.methods)}; seeds {seeds}; cycles {e.cycles}"
        say(self.console, f"{e.name}: {e.data.name} on {e.network.spec}; {runs}")
        for line in (*self.folder.notes(), *filter(None, self.remarks)):
            say(self.console, line)


@contextmanager
def showing_progress(
    console: Console, experiment: Experiment, folder: RunFolder, remark: str = ""
) -> Iterator[ProgressView]:
    """Show an experiment's progress, after a note on how the data were prepared."""
    columns = (
        TextColumn("{task.description:>16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        yield ProgressView(console, bars, experiment, folder, remark)
