"""Checks of options that several commands share."""

from __future__ import annotations

from collections.abc import Collection

from ssdfl.errors import InputError


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Refuse a value that is none of the choices.

    Examples:
        >>> check_choice("--mixing", "lazy", ["metropolis", "lazy"])
    """
    if value not in choices:
        raise InputError(option, value, f"one of {', '.join(choices)}", "Choose one of them.")
