"""Formulas become MathML when the site is built, so that pages need no script and no network."""

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(html: str, **_: Any) -> str:
    """Replace what arithmatex marked."""
    return _FORMULA.sub(_to_mathml, html)


def _to_mathml(found: re.Match[str]) -> str:
    formula: str = convert(unescape(found[3]), display="block" if found[2] == "[" else "inline")
    return formula
