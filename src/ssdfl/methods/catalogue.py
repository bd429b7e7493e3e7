"""The parts that can be named in a method, described by registries and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ssdfl.errors import InputError
from ssdfl.methods.attacks import ATTACKS
from ssdfl.methods.compressors import COMPRESSORS
from ssdfl.methods.describe import describe
from ssdfl.methods.rules import RULES
from ssdfl.methods.rules.find import RULE
from ssdfl.methods.schedules import METHODS

_WITHIN = {RULE: "cta"}
"""The placeholder for an inner part that is not named."""


@dataclass(frozen=True)
class Option:
    """An option of a part, as in ``name:key=value``; the default … means that it is required."""

    name: str
    default: Any

    def __str__(self) -> str:
        return f"{self.name}={self.default}"


@dataclass(frozen=True)
class Entry:
    """A part that users can name.

    Attributes:
        kind: schedule, rule, compressor or attack.
        summary: one line.
        equation: its formula.
        source: its publication.
        text: the whole docstring.
    """

    kind: str
    name: str
    summary: str
    equation: str
    source: str
    text: str
    options: tuple[Option, ...]


def catalogue() -> list[Entry]:
    """All schedules, rules and so on, in the order of their registries."""
    return list(_entries())


def _entries() -> Iterator[Entry]:
    for name, method in METHODS.items():
        yield _entry("schedule", name, method.schedule, method.summary, given=1)
    for name, rule in RULES.items():
        yield _entry("rule", name, rule)
    for name, compressor in COMPRESSORS.items():
        yield _entry("compressor", name, compressor)
    for name, attack in ATTACKS.items():
        yield _entry("attack", name, attack)


def find_entries(name: str) -> list[Entry]:
    """The parts of a name, or of all names in a method's text such as ``ssdfl+gt:rounds=2``.

    Raises:
        InputError: there is no such part.

    Examples:
        >>> [entry.kind for entry in find_entries("ssdfl+atc")]
        ['schedule', 'rule']
    """
    known = catalogue()
    found: list[Entry] = []
    for part in name.split("+"):
        plain = part.partition(":")[0].strip()
        entries = [entry for entry in known if entry.name == plain]
        if not entries:
            choices = f"one of {', '.join(dict.fromkeys(entry.name for entry in known))}"
            raise InputError("name", plain, choices, "ssdfl methods lists them all.")
        found += entries
    return found


def _entry(
    kind: str, name: str, function: Callable[..., Any], summary: str = "", given: int = 0
) -> Entry:
    said = describe(function)
    return Entry(
        kind=kind,
        name=name,
        summary=summary or said.summary.removeprefix(f"`{name}`: "),
        equation=said.equation,
        source=said.source,
        text=inspect.getdoc(function) or "",
        options=_options(function, given),
    )


def _options(function: Callable[..., Any], given: int) -> tuple[Option, ...]:
    parameters = list(inspect.signature(function).parameters.values())[given:]
    return tuple(Option(one.name, _default(one)) for one in parameters)


def _default(parameter: inspect.Parameter) -> Any:
    """An option's default; for an inner part, its name."""
    if parameter.default is parameter.empty:
        return _WITHIN.get(parameter.name, "…")
    names = [name for name, kind in COMPRESSORS.items() if type(parameter.default) is kind]
    return names[0] if names else parameter.default
