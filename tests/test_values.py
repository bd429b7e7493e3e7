"""Dataclasses are values, which nobody changes, but for a few that keep a state."""

import ast
import re
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "ssdfl"
STATES = {
    *(
        "Neighbour",
        "Member",
        "Flood",
        "Holders",
        "ReplyTimes",
        "_Record",
        "_Window",
    ),  # of a device of a mesh
    *("Node", "ScoreInputs"),  # of a search
}
ARRAY = re.compile(r"\b(\w*Array|Tensor|Rows|MixingMatrix)\b")


@cache
def dataclasses():
    """Every dataclass of the source, and the options of its decorator."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for decorator in getattr(node, "decorator_list", []):
                if ast.unparse(decorator).startswith("dataclass"):
                    options = getattr(decorator, "keywords", [])
                    found.append((node, {one.arg: one.value.value for one in options}))
    return found


def test_all_dataclasses_but_states_are_frozen():
    assert len(dataclasses()) > 100
    assert {node.name for node, options in dataclasses() if not options.get("frozen")} == STATES


def compared_arrays(node):
    """The fields of a dataclass that hold arrays and would be compared with another's."""
    for field in node.body:
        is_compared = "compare=False" not in ast.unparse(field)
        if isinstance(field, ast.AnnAssign) and is_compared:
            kind = ast.unparse(field.annotation)
            if "Callable" not in kind and ARRAY.search(kind):
                yield field.target.id


def test_what_holds_arrays_is_compared_by_identity():
    """Whether two arrays are equal has no single answer, and arrays have no hash."""
    holders = {
        node.name: options.get("eq", True)
        for node, options in dataclasses()
        if list(compared_arrays(node))
    }
    assert len(holders) > 30
    assert [name for name, is_compared in holders.items() if is_compared] == []
