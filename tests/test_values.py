"""Dataclasses are values, which nobody changes, but for a few that keep a state."""

import ast
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


def dataclasses():
    """Every dataclass of the source, and whether it is frozen."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for decorator in getattr(node, "decorator_list", []):
                if ast.unparse(decorator).startswith("dataclass"):
                    options = {
                        option.arg: option.value.value
                        for option in getattr(decorator, "keywords", [])
                    }
                    yield node.name, options.get("frozen", False)


def test_all_dataclasses_but_states_are_frozen():
    found = list(dataclasses())
    assert len(found) > 100
    assert {name for name, is_frozen in found if not is_frozen} == STATES
