"""Parse a part and its options from one line of text: ``name:key=value,key=value``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ssdfl.errors import InputError
from ssdfl.mappings import without

_NOUNS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}
_BOOLEANS = {"true": True, "false": False}


def parse_spec(text: str, what: str) -> tuple[str, dict[str, str]]:
    """The name and the options of ``name:key=value,…``; a name may itself be ``module:function``.

    Raises:
        InputError: a key is repeated, or a part has no ``=``.

    Examples:
        >>> parse_spec("choco:fraction=0.1,gamma=1", "rule")
        ('choco', {'fraction': '0.1', 'gamma': '1'})
        >>> parse_spec("my_rules:mine:k=2", "rule")
        ('my_rules:mine', {'k': '2'})
        >>> parse_spec("my_rules:mine", "rule")
        ('my_rules:mine', {})
    """
    head, equals, _ = text.partition("=")
    if not equals:
        return text.strip(), {}
    name, colon, _ = head.rpartition(":")
    if not colon:
        raise InputError(
            what, text, "name:key=value,…", "Write the name and a colon before the options."
        )
    options: dict[str, str] = {}
    for part in text[len(name) + 1 :].split(","):
        key, value = _pair(part, text, what)
        if key in options:
            raise InputError(what, text, "each key once", f"Remove the repeated {key}.")
        options[key] = value
    return name.strip(), options


def _pair(part: str, text: str, what: str) -> tuple[str, str]:
    key, equals, value = part.partition("=")
    if not equals or not key.strip():
        raise InputError(what, text, "key=value pairs after the colon", f"Correct {part!r}.")
    return key.strip(), value.strip()


def call_with_options(
    function: Callable[..., Any], options: Mapping[str, str], what: str, given: int = 0
) -> dict[str, Any]:
    """Keyword arguments for a function, converted to the types that it annotates.

    Args:
        given: the number of leading parameters that the caller supplies; they are not options.

    Raises:
        InputError: the function does not take an option, or a value has the wrong type or is
            missing.

    Examples:
        >>> def power(base: float, exponent: int = 2) -> float: ...
        >>> call_with_options(power, {"exponent": "3"}, "power", given=1)
        {'exponent': 3}
    """
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())[given:]
    known = {p.name: p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    _check_known(options, known, what)
    for name, parameter in without(known, options).items():
        if parameter.default is parameter.empty:
            raise InputError(what, "…", f"the option {name}", f"Add {name}=….")
    return {
        key: convert(f"{what}: {key}", value, known[key].annotation)
        for key, value in options.items()
    }


def whole_number(text: str) -> int:
    """A text as an integer that fits a machine word; larger ones break later computations.

    Raises:
        ValueError: the text is not such an integer.
    """
    number = int(text)
    if abs(number) >= 2**63:
        raise ValueError("a number of more than 63 bits")
    return number


def _check_known(options: Mapping[str, str], known: Collection[str], what: str) -> None:
    unknown = next((key for key in options if key not in known), None)
    if unknown is not None:
        choices = f"one of the options {', '.join(known)}" if known else "no options"
        remedy = "Correct the option's name, or remove it."
        raise InputError(f"{what}: {unknown}", options[unknown], choices, remedy)


def convert(what: str, text: str, kind: Any) -> Any:
    """A text as a parameter's annotated type, or else as the number it looks like.

    Examples:
        >>> convert("p", "0.5", float), convert("p", "3", inspect.Parameter.empty)
        (0.5, 3)
    """
    if kind is str:
        return text
    if kind not in _NOUNS:
        return _guess(text)
    try:
        return _READERS[kind](text)
    except (KeyError, ValueError):
        raise InputError(what, text, _NOUNS[kind], f"Write such a value, not {text!r}.") from None


_READERS: dict[Any, Callable[[str], Any]] = {
    int: whole_number,
    float: float,
    bool: lambda text: _BOOLEANS[text.lower()],
}


def _guess(text: str) -> Any:
    for read in (whole_number, float):
        try:
            return read(text)
        except ValueError:
            continue
    return _BOOLEANS.get(text.lower(), text)
