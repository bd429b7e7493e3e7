"""Print the oldest versions that pyproject.toml allows, as requirements; torch as it is pinned.

Args on the command line are extras to include, such as ``mesh pandas``.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINNED = "torch"


def oldest(requirement: str) -> str:
    """``name>=1.2`` as ``name==1.2``."""
    return requirement.replace(">=", "==")


def pinned(name: str) -> str:
    """The line of constraints.txt for a package."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^{name}==.*$", text, re.M)
    return str(line)


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for name in sys.argv[1:] for one in project["optional-dependencies"][name]]
    for requirement in [*project["dependencies"], *extras]:
        name = requirement.partition(">=")[0]
        print(pinned(name) if name == PINNED else oldest(requirement))
