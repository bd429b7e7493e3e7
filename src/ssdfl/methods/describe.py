"""What a docstring says of a rule, a compressor or a schedule: one home for lists, help and docs."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

SOURCE = "Source:"


@dataclass(frozen=True)
class Description:
    """What lists of rules show.

    Attributes:
        summary: the docstring's first line.
        equation: its indented lines; empty if it has none.
        source: the paragraph that starts with "Source:", without that word; empty if there is none.
    """

    summary: str
    equation: str
    source: str


def describe(part: object) -> Description:
    """The summary, equation and source in the docstring of a class, a function, or an object's class.

    Examples:
        >>> from ssdfl.methods import RULES
        >>> describe(RULES["atc"]).equation
        'x⁺ = W (x − η g̃(x))'
    """
    documented = part if isinstance(part, type) or inspect.isroutine(part) else type(part)
    paragraphs = (inspect.getdoc(documented) or "").split("\n\n")
    indented = [text for text in paragraphs[1:] if text.startswith("    ")]
    sources = [text for text in paragraphs if text.startswith(SOURCE)]
    return Description(
        summary=paragraphs[0].strip(),
        equation=inspect.cleandoc(indented[0]) if indented else "",
        source=" ".join(sources[0].removeprefix(SOURCE).split()) if sources else "",
    )
