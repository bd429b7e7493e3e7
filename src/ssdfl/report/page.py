"""What the pages share: templates, the style, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template


def fill(template: str, **values: str) -> str:
    """A page from one of the templates beside this module; its ``$style`` is filled in."""
    folder = files("ssdfl.report")
    style = folder.joinpath("style.css").read_text(encoding="utf-8")
    page = Template(folder.joinpath(template).read_text(encoding="utf-8"))
    return page.substitute(style=style, **values)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table; texts are escaped.

    Examples:
        >>> table(["a"], [["1 < 2"]])
        '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1 &lt; 2</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(text)}</th>" for text in headers)
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
