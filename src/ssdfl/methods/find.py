"""Find methods by name: ``schedule`` or ``schedule+rule``, each with options."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ssdfl.errors import InputError, import_object
from ssdfl.methods.method import Method
from ssdfl.methods.rules import find_rule
from ssdfl.methods.rules.plain import CombineThenAdapt
from ssdfl.methods.schedules import METHODS
from ssdfl.specs import call_with_options, parse_spec


def find_method(text: str) -> Method:
    """The method that a text names: ``schedule[:key=value,…][+rule[:key=value,…]]``.

    Schedule and rule are built-in names, or a user's own by ``package.module:name``. The default
    rule is `cta`, the paper's.

    Raises:
        InputError: there is no such schedule or rule, or it does not take an option.

    Examples:
        >>> find_method("ssdfl+atc").rule
        AdaptThenCombine()
        >>> find_method("pdfl").needs_plan
        False
    """
    schedule, plus, rule = text.partition("+")
    method = _scheduled(schedule)
    if not plus:
        return replace(method, name=text)
    found = find_rule(rule)
    bounded = method.bounded and isinstance(found, CombineThenAdapt)
    return replace(method, name=text, rule=found, bounded=bounded)


def _scheduled(text: str) -> Method:
    name, options = parse_spec(text, "method")
    method = METHODS.get(name) or _own(name)
    chosen = call_with_options(method.schedule, options, f"method {name}", given=1)
    return replace(method, schedule=partial(method.schedule, **chosen)) if chosen else method


def _own(name: str) -> Method:
    """A user's own method: a `Method`, or a function from `ScheduleInputs` to a schedule."""
    if ":" not in name:
        choices = f"one of {', '.join(METHODS)}"
        raise InputError("method", name, choices, "Or name your own as package.module:function.")
    found = import_object(name, "method")
    if isinstance(found, Method):
        return found
    if not callable(found):
        raise InputError(
            "method", name, "a function", "Point it at a function, as package.module:function."
        )
    return Method(name, found)


def split_methods(text: str) -> list[str]:
    """The methods of a comma-separated list; ``key=value`` belongs to the method before it.

    Examples:
        >>> split_methods("ssdfl, sdfl+choco:compressor=topk,fraction=0.01, pdfl")
        ['ssdfl', 'sdfl+choco:compressor=topk,fraction=0.01', 'pdfl']
    """
    found: list[str] = []
    for part in text.split(","):
        if found and _is_option(part):
            found[-1] += f",{part.strip()}"
        else:
            found.append(part.strip())
    return found


def _is_option(part: str) -> bool:
    """Whether a part is ``key=value`` rather than the start of a method with options."""
    key, equals, _ = part.partition("=")
    return bool(equals) and ":" not in key and "+" not in key
