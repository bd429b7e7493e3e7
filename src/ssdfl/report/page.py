"""Parts that the pages share: the shell with style, data and scripts, and tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import ssdfl
from ssdfl.report.figures import COLOURS

PLAN_SCRIPTS = ("base.js", "network.js", "bubbles.js", "plan.js")


def asset(name: str) -> str:
    """The text of a template, style or script in ``assets``."""
    return files("ssdfl.report").joinpath("assets", name).read_text(encoding="utf-8")


def fill(template: str, **values: str) -> str:
    """A template of ``assets`` with its ``$names`` filled in."""
    return Template(asset(template)).substitute(values)


def page(
    title: str,
    body: str,
    data: Any,
    scripts: Sequence[str],
    *,
    charts: bool = False,
    asks: str = "'none'",
) -> str:
    """A whole page in one file. Its content security policy forbids it to load anything else.

    Args:
        body: the content, as HTML.
        data: the data for its scripts, written as JSON.
        scripts: names in ``assets``, in order.
        charts: whether Plotly is needed.
        asks: where its scripts may send requests; ``'self'`` for a page that is served and updated.
    """
    return fill(
        "shell.html",
        title=escape(title),
        asks=asks,
        style=asset("style.css"),
        body=body,
        version=escape(ssdfl.__version__),
        data=to_json(data).replace("<", "\\u003c"),
        plotly=_plotly() if charts else "",
        scripts="\n".join(asset(name) for name in scripts),
    )


def to_json(data: Any) -> str:
    """Compact JSON; numbers that are not finite become null.

    Examples:
        >>> to_json({"a": [1.5, float("nan")]})
        '{"a":[1.5,null]}'
    """
    return json.dumps(_finite(data), separators=(",", ":"), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_finite, value))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return f'<script id="plotly">{get_plotlyjs()}</script>'


def palette() -> dict[str, Any]:
    """Colours for methods, clusters and accuracy that colour-blind people can distinguish."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return {"colours": COLOURS, "scale": [to_hex(colormaps["cividis"](k / 10)) for k in range(11)]}


def html_table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """An HTML table; texts are escaped.

    Examples:
        >>> html_table(["a"], [["1 < 2"]]).partition("<tbody>")[2]
        '<tr><td>1 &lt; 2</td></tr></tbody></table>'
    """
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in headers)
    body = "".join(f"<tr>{_html_cells(row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_cells(row: Iterable[str]) -> str:
    return "".join(f"<td>{escape(text)}</td>" for text in row)
