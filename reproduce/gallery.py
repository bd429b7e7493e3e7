"""Print the page that shows our result of every table and figure of the paper.

    python reproduce/gallery.py > reproduce/results/README.md

A result is a Markdown file in ``results/PROFILE``. Its picture stands beside it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PROFILES = {
    "medium": "the paper's CNN",
    "medium-averaged": "the paper's CNN, by the averaged model",
    "larger": "the paper's CNN and larger steps",
    "drawn": "the averaged model of the paper's CNN, labels drawn at random",
    "averaged": "the averaged model of the paper's CNN",
    "plain": "the paper's CNN without normalisation",
    "small": "one hidden layer",
}
"""Folders of results by how near they are to the paper; the first that has a result is shown."""

INTRODUCTION = """# Results

Our result of every table and figure of the paper, with the command that made it in its file.
`python reproduce/gallery.py` prints this page; [Reproduction](../../docs/reproduction.md) says what
agrees with the paper. Profile `medium` has the paper's CNN on whole images; `medium-averaged` shows
the averaged model's accuracy of its runs. `larger` takes larger steps, `drawn` draws labels at
random, `averaged` has settings that fit the averaged model's accuracy, `plain` lacks batch
normalisation, `small` has one hidden layer on halved images. Numbers beside a profile count
seeds."""


@dataclass(frozen=True)
class Artefact:
    """A table or figure, and the profiles for which there is a result."""

    name: str
    title: str
    label: str
    profiles: tuple[str, ...]

    @property
    def row(self) -> str:
        """Its row of the overview."""
        label = f"`{self.label}`" if self.label else "beyond the paper"
        files = [self._linked(profile) for profile in self.profiles]
        return f"| [{self.name}](#{self.name}) | {label} | {', '.join(files) or 'not run'} |"

    def _linked(self, profile: str) -> str:
        path = RESULTS / profile / f"{self.name}.md"
        options = ("--only", "--finished")
        text = path.read_text(encoding="utf-8")
        part = ", in part" if any(option in text for option in options) else ""
        return f"[{profile}]({profile}/{self.name}.md) ({seeds(path)}{part})"

    @property
    def section(self) -> str:
        """Its section, with the picture of the profile nearest to the paper."""
        lines = [f"## {self.name}", "", f"{self.title}."]
        shown = [one for one in self.profiles if (RESULTS / one / f"{self.name}.png").exists()]
        if shown:
            lines[-1] += f" The picture is of runs with {PROFILES[shown[0]]}."
            lines += ["", f"![{self.title}]({shown[0]}/{self.name}.png)"]
        return "\n".join(lines)


def seeds(path: Path) -> str:
    """How many seeds a result has, by its first paragraph."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r"mean over (up to \d+|\d+) seeds", text)
    return found[1] if found else "1"


def artefacts() -> Iterator[Artefact]:
    """All tables and figures, by name."""
    for path in sorted(HERE.glob("*.toml")):
        described = tomllib.loads(path.read_text(encoding="utf-8"))
        if "title" in described:
            name = path.stem
            profiles = tuple(one for one in PROFILES if (RESULTS / one / f"{name}.md").exists())
            yield Artefact(name, described["title"], described["label"], profiles)


def page() -> str:
    """The whole page."""
    found = list(artefacts())
    rows = ["| artefact | the paper's label | results (seeds) |", "|---|---|---|"]
    rows += [one.row for one in found]
    sections = [one.section for one in found if one.profiles]
    return "\n\n".join([INTRODUCTION, "\n".join(rows), *sections]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
