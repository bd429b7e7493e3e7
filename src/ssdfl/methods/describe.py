"""The docstrings of rules, compressors and schedules, for lists, help and docs."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

SOURCE = "Source:"


@dataclass(frozen=True)
class Description:
    """The description of a part in lists and docs.

    Attributes:
        summary: the docstring's first line.
        equation: its indented lines; empty if it has none.
        source: the paragraph that starts with "Source:", without that word; empty if there is none.
    """

    summary: str
    equation: str
    source: str


def describe(part: object) -> Description:
    """The summary, equation and source in the docstring of a class, function or object.

    Examples:
        >>> from ssdfl.methods import RULES
        >>> describe(RULES["atc"]).equation
        'x⁺ = W (x − η g̃(x))'
    """
    documented = part if isinstance(part, type) or inspect.isroutine(part) else type(part)
    summary, *others = (inspect.getdoc(documented) or "").split("\n\n")
    source = _first_with(SOURCE, others)
    return Description(
        summary=summary.strip(),
        equation=inspect.cleandoc(_first_with("    ", others)),
        source=" ".join(source.removeprefix(SOURCE).split()),
    )


def _first_with(start: str, paragraphs: Sequence[str]) -> str:
    """The first paragraph that starts with ``start``; empty if there is none."""
    return next((text for text in paragraphs if text.startswith(start)), "")
