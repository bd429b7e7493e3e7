"""Formulas become MathML when the site is built, so that pages need no script and no network.

An extension of Python-Markdown, which every tool that builds the site can load.
"""

import re
from html import unescape

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_LAST = -100
"""A priority after everything else, when the page is complete."""


class MathML(Extension):
    """Replaces what arithmatex marked."""

    def extendMarkdown(self, md: Markdown) -> None:  # the name that Markdown calls
        """Register the replacement."""
        md.postprocessors.register(_Formulas(md), "mathml", _LAST)


class _Formulas(Postprocessor):
    def run(self, text: str) -> str:
        return _FORMULA.sub(_to_mathml, text)


def _to_mathml(found: re.Match[str]) -> str:
    formula: str = convert(unescape(found[3]), display="block" if found[2] == "[" else "inline")
    return formula


def makeExtension(**options: object) -> MathML:  # the name that Markdown looks for
    """What Markdown calls to load this module."""
    return MathML(**options)
