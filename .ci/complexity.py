"""``make complexity``: print the cyclomatic complexity of src; fail above pyproject's limits.

The mean is that of ``radon cc --average --total-average src``: over classes, functions and methods.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from radon.complexity import average_complexity, cc_visit

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Measure, print, and exit with an error above a limit."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    limits = settings["tool"]["ssdfl"]["complexity"]
    paths = sorted((ROOT / "src").rglob("*.py"))
    blocks = [
        (path, block) for path in paths for block in cc_visit(path.read_text(encoding="utf-8"))
    ]
    mean = average_complexity([block for _, block in blocks])
    print(f"cyclomatic complexity: mean {mean:.2f} of {len(blocks)} (at most {limits['mean']})")
    high = [(path, block) for path, block in blocks if block.complexity > limits["function"]]
    for path, block in high:
        place = f"{path.relative_to(ROOT)} {block.fullname}"
        print(f"  {block.complexity} (at most {limits['function']}): {place}")
    if high or mean > limits["mean"]:
        sys.exit("Split what is complex: name values, extract functions, use tables.")


if __name__ == "__main__":
    main()
