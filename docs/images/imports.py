"""Draw which package of ssdfl imports which, for docs/architecture.md: ``make imports``.

The drawing is read off the source. An import inside a function or under ``TYPE_CHECKING`` counts as
lazy: nothing is loaded until it is needed. The text of the SVG depends on the imports alone, so a
test compares it with the file (`tests/test_layers.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ssdfl"
DRAWING = Path(__file__).with_suffix(".svg")

LAYERS = {
    "cli": "commands",
    "report": "tables, figures and pages, from records alone",
    "experiments": "run into folders, resume, pool, sweep",
    "mesh": "real devices, one process each",
    "preparation": "from an experiment and a seed to jobs",
    "engine": "reference, local and distributed",
    "learning": "data, models, optimizers",
    "records": "experiment files, records, run folders",
    "methods": "schedules and rules",
    "clusters": "scores, formation, plans",
    "theory": "the paper's statements",
    "graph": "networks, mixing, spectra, costs",
}
"""Packages, top to bottom: each may import those below it."""

BASE = (
    "arrays",
    "checksums",
    "claims",
    "errors",
    "files",
    "lazy",
    "locks",
    "machine",
    "mappings",
    "memo",
    "rng",
    "specs",
)
"""Modules below all packages."""

FACADE = ("__init__.py", "__main__.py")
"""Modules of ssdfl itself that offer what the packages have."""


@dataclass(frozen=True)
class Import:
    """One imported name.

    Attributes:
        path: the file that imports.
        name: dotted, such as ``ssdfl.graph.Network`` or ``torch``.
        lazy: inside a function or under ``TYPE_CHECKING``.
    """

    path: Path
    name: str
    lazy: bool

    @property
    def importer(self) -> str:
        """The package of the file, or ``base``."""
        return _layer(self.path.relative_to(SOURCE).with_suffix("").parts[0])

    @property
    def imported(self) -> str:
        """The package of ssdfl that is imported, or ``base``; empty for other distributions."""
        root, _, rest = self.name.partition(".")
        return _layer(rest.partition(".")[0]) if root == "ssdfl" else ""


def _layer(name: str) -> str:
    """The layer of a package or module; ``import ssdfl`` alone loads nothing, so it is ``base``."""
    return "base" if name in ("", *BASE) else name


def find_imports(path: Path) -> Iterator[Import]:
    """All imports of a file.

    Raises:
        ValueError: a relative import, which this project does not use.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for statement, lazy in _statements(tree, lazy=False):
        for name in _names(statement):
            yield Import(path, name, lazy)


def _statements(node: ast.AST, lazy: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, lazy
        else:
            yield from _statements(child, lazy or _defers(child))


def _defers(node: ast.AST) -> bool:
    """Whether the statements inside do not run when the module is imported."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def _names(statement: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    if statement.level or statement.module is None:
        raise ValueError(f"relative import: {ast.unparse(statement)}")
    if statement.module == "ssdfl":  # its names may be modules
        return [f"ssdfl.{alias.name}" for alias in statement.names]
    return [statement.module]


def source_files() -> list[Path]:
    """The files of ssdfl that belong to a layer."""
    return sorted(
        path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.name not in FACADE
    )


class Arrow(NamedTuple):
    """One package imports another.

    Attributes:
        lazy: all such imports are.
    """

    importer: str
    imported: str
    lazy: bool


def find_arrows(imports: Iterable[Import]) -> list[Arrow]:
    """Each pair of packages of which one imports the other, sorted."""
    always_lazy: dict[tuple[str, str], bool] = {}
    for one in imports:
        pair = (one.importer, one.imported)
        if one.imported and one.importer != one.imported:
            always_lazy[pair] = always_lazy.get(pair, True) and one.lazy
    return sorted(Arrow(*pair, lazy) for pair, lazy in always_lazy.items())


# The drawing: a box for each package, top to bottom. Arrows at the right are imported with the
# package, those at the left lazily. The longer an arrow, the further out it bends.
WIDTH, BOX_WIDTH, BOX_HEIGHT, ROW = 880, 360, 40, 54
LEFT, TOP = 250, 44
PORT = 3.6
COLOURS = (
    "#4269d0", "#b8860b", "#d9480f", "#0f8b8d", "#2f7d32", "#c2407a",
    "#7d5ba6", "#8a5a3b", "#1f78b4", "#6b7a1e", "#a13d3d", "#5f6b7a",
)  # fmt: skip
STYLE = """text { font: 15px system-ui, sans-serif; fill: #222 }
.name { font-weight: 600 }
.note { font-size: 13px; fill: #555 }
.box { fill: #f6f7f9; stroke: #c9ced6 }
.arrow { fill: none; stroke-width: 1.5 }
.lazy { stroke-dasharray: 5 3 }"""


def draw(arrows: Iterable[Arrow]) -> str:
    """The drawing, as the text of an SVG file."""
    rows = {name: row for row, name in enumerate([*LAYERS, "base"])}
    between = [arrow for arrow in arrows if arrow.imported != "base"]
    lazy = [arrow for arrow in between if arrow.lazy]
    eager = [arrow for arrow in between if not arrow.lazy]
    height = TOP + ROW * len(rows)
    notes = {**LAYERS, "base": f"{', '.join(BASE)}: imported by all"}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Which package of ssdfl imports which</title>",
        f"<style>{STYLE}</style>",
        "<defs>",
        *(_head(name) for name in LAYERS),
        "</defs>",
        _caption(LEFT - 16, "end", "imports when it is needed"),
        _caption(LEFT + BOX_WIDTH + 16, "start", "imports at once"),
        *_curves(lazy, rows, edge=LEFT, side=-1),
        *_curves(eager, rows, edge=LEFT + BOX_WIDTH, side=1),
        *(_box(name, notes[name], row) for name, row in rows.items()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _colour(package: str) -> str:
    return COLOURS[list(LAYERS).index(package)]


def _caption(x: float, anchor: str, text: str) -> str:
    return f'<text class="note" x="{x}" y="22" text-anchor="{anchor}">{text}</text>'


def _head(package: str) -> str:
    """The head of a package's arrows, in its colour."""
    triangle = f'<path d="M0 0L8 4L0 8z" fill="{_colour(package)}"/>'
    size = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto"'
    return f'<marker id="{package}" {size}>{triangle}</marker>'


def _box(name: str, note: str, row: int) -> str:
    y = TOP + ROW * row
    colour = _colour(name) if name in LAYERS else "#999999"
    return "".join(
        [
            f'<rect class="box" x="{LEFT}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
            'rx="4"/>',
            f'<rect x="{LEFT}" y="{y}" width="5" height="{BOX_HEIGHT}" rx="2" fill="{colour}"/>',
            f'<text class="name" x="{LEFT + 14}" y="{y + 17}">{name}</text>',
            f'<text class="note" x="{LEFT + 14}" y="{y + 33}">{escape(note)}</text>',
        ]
    )


def _curves(arrows: list[Arrow], rows: dict[str, int], edge: int, side: int) -> Iterator[str]:
    """Arrows along one side of the boxes, nested so that those of one box do not cross there."""

    def length(arrow: Arrow) -> int:
        return rows[arrow.imported] - rows[arrow.importer]

    for arrow in sorted(arrows, key=length, reverse=True):
        leaving = sorted((a for a in arrows if a.importer == arrow.importer), key=length)
        coming = sorted((a for a in arrows if a.imported == arrow.imported), key=length)
        start = TOP + ROW * rows[arrow.importer] + BOX_HEIGHT - 3 - PORT * leaving.index(arrow)
        end = TOP + ROW * rows[arrow.imported] + 3 + PORT * coming.index(arrow)
        bend = edge + side * (30 + 26 * length(arrow))
        style = "arrow lazy" if arrow.lazy else "arrow"
        yield (
            f'<path class="{style}" stroke="{_colour(arrow.importer)}"'
            f' marker-end="url(#{arrow.importer})"'
            f' d="M{edge} {start:.1f}C{bend} {start:.1f} {bend} {end:.1f} {edge} {end:.1f}">'
            f"<title>{arrow.importer} imports {arrow.imported}</title></path>"
        )


def drawing() -> str:
    """The drawing of the source as it is."""
    imports = (one for path in source_files() for one in find_imports(path))
    return draw(find_arrows(imports))


if __name__ == "__main__":
    DRAWING.write_text(drawing(), encoding="utf-8")
