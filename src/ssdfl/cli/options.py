"""What several commands do with their options."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from ssdfl.errors import InputError


def find_modules_in(folder: Path) -> None:
    """Let `module:function` name a module in a folder; last, so that none stands in for a library."""
    sys.path.append(str(folder.resolve()))


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Refuse a value that is none of the choices.

    Examples:
        >>> check_choice("--mixing", "lazy", ["metropolis", "lazy"])
    """
    if value not in choices:
        raise InputError(option, value, f"one of {', '.join(choices)}", "Choose one of them.")
