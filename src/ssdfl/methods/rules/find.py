"""Find rules by name: ``name:key=value,…``, with options of a compressor or an inner rule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ssdfl.errors import InputError, find_function
from ssdfl.mappings import without
from ssdfl.methods.compressors import find_compressor
from ssdfl.methods.rules.base import Rule
from ssdfl.methods.rules.compressed import Choco, Compressed
from ssdfl.methods.rules.exact import ExactDiffusion, Extra, GradientTracking
from ssdfl.methods.rules.momentum import Outer, QuasiGlobalMomentum
from ssdfl.methods.rules.plain import AdaptThenCombine, CombineThenAdapt
from ssdfl.methods.rules.robust import Clipped, Median, Trimmed
from ssdfl.specs import call_with_options, parse_spec

RULES: dict[str, Callable[..., Rule]] = {
    "cta": CombineThenAdapt,
    "atc": AdaptThenCombine,
    "gt": GradientTracking,
    "ed": ExactDiffusion,
    "extra": Extra,
    "qgm": QuasiGlobalMomentum,
    "choco": Choco,
    "outer": Outer,
    "clipped": Clipped,
    "trimmed": Trimmed,
    "median": Median,
}

RULE, COMPRESSOR = "rule", "compressor"
"""The options that name an inner rule and a compressor."""


def find_rule(text: str) -> Rule:
    """The rule that ``name:key=value,…`` names, or a user's own by ``package.module:name``.

    A user's own is a class or function that is called with the options and returns a rule. The
    option ``compressor`` names a compressor for the messages of any rule; its options follow in the
    same list. With `outer`, ``rule`` names the inner rule in the same way.

    Raises:
        InputError: there is no such rule, it does not take an option, or it is not a rule.

    Examples:
        >>> find_rule("choco:compressor=topk,fraction=0.1,gamma=0.3")
        Choco(compressor=TopK(fraction=0.1), gamma=0.3)
        >>> find_rule("outer:rule=gt,rate=0.5")
        Outer(rule=GradientTracking(), rate=0.5, momentum=0.9)
    """
    return _make(*parse_spec(text, "rule"))


def _make(name: str, options: Mapping[str, str]) -> Rule:
    make = find_function(RULES, name, "rule")
    taken = _options_of(make)
    others = without(options, taken - {RULE, COMPRESSOR})
    own = without(options, others)
    if RULE in taken:
        within = _make(others.pop(RULE, "cta"), others)
        return _checked(name, make(within, **_converted(name, make, own, 1)))
    if COMPRESSOR not in taken | options.keys():
        return _checked(name, make(**_converted(name, make, options, 0)))
    compressor = find_compressor(others.pop(COMPRESSOR, "topk"), others)
    if COMPRESSOR in taken:
        return _checked(name, make(compressor, **_converted(name, make, own, 1)))
    return Compressed(_checked(name, make(**_converted(name, make, own, 0))), compressor)


def _options_of(make: Callable[..., Any]) -> set[str]:
    return {
        parameter.name
        for parameter in inspect.signature(make).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def _converted(
    name: str, make: Callable[..., Any], options: Mapping[str, str], given: int
) -> dict[str, Any]:
    return call_with_options(make, options, f"rule {name}", given)


def _checked(name: str, rule: object) -> Rule:
    if not isinstance(rule, Rule):
        remedy = "Subclass ssdfl.methods.Rule; see 'A rule' in docs/extend.md."
        raise InputError("rule", name, "a rule", remedy)
    return rule
