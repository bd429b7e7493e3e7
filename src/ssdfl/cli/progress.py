"""What a run shows while it goes on: bars on a terminal, one line per finished method elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from ssdfl.experiments import Advance, Experiment


def say(console: Console, text: str) -> None:
    """Print a line as it is: no markup, no colours, no breaks inside a path."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


class Follower:
    """Follows one experiment."""

    def __init__(self, console: Console, bars: Progress, experiment: Experiment) -> None:
        self.console, self.bars, self.experiment = console, bars, experiment
        self.total = experiment.cycles * len(experiment.methods) * len(experiment.seeds)
        self.task = bars.add_task("preparing", total=self.total, note="")
        self.begun = False

    def download(self, name: str, received: int, total: int) -> None:
        """Show how far a download is."""
        self.bars.update(self.task, note=f"downloading {name}: {received / 1e6:.1f} of {total / 1e6:.1f} MB")

    def cycle(self, advance: Advance) -> None:
        """Show that one more cycle is done."""
        if not self.begun:
            self._announce()
        record = advance.record
        note = f"{100 * record.accuracy:.1f} %" if record and record.accuracy == record.accuracy else ""
        label = f"seed {advance.seed} {advance.method}"
        self.bars.update(self.task, advance=1, description=label, note=note)
        if record and record.cycle == self.experiment.cycles and not self.console.is_terminal:
            say(self.console, f"{label}: {note} after {record.cycle} cycles, {record.time_s:.2f} simulated s")

    def _announce(self) -> None:
        """Say what runs, once it is known that it can."""
        self.begun = True
        e = self.experiment
        runs = f"methods {', '.join(e.methods)}; seeds {', '.join(map(str, e.seeds))}; cycles {e.cycles}"
        say(self.console, f"{e.name}: {e.data.name} on {e.network.spec}; {runs}")


@contextmanager
def follow(console: Console, experiment: Experiment) -> Iterator[Follower]:
    """A follower of an experiment, with bars if the console is a terminal."""
    columns = (
        TextColumn("{task.description:>16}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield Follower(console, bars, experiment)
