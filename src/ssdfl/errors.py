"""The error for a user's mistakes, its variants, and helpers that raise it."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

_LONGEST_SHOWN = 80


class InputError(ValueError):
    """A value that cannot be used: its name, what was expected, and the remedy.

    Examples:
        >>> print(InputError("p", 1.5, "a probability in [0, 1]", "Choose 0.1 for few links."))
        p = 1.5: expected a probability in [0, 1]. Choose 0.1 for few links.
    """

    exit_code = 2
    """The exit code of commands; a restart would not help."""

    def __init__(self, what: str, got: object, expected: str, remedy: str) -> None:
        shown = got if isinstance(got, str) else repr(got)
        self.what, self.got, self.expected, self.remedy = what, got, expected, remedy
        super().__init__(" ".join(f"{what} = {shown}: expected {expected}. {remedy}".split()))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, object, str, str]]:
        return type(self), (self.what, self.got, self.expected, self.remedy)


class NotYetError(InputError):
    """Something is missing that may appear later, such as a peer or disk space."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h


class InputWarning(UserWarning):
    """An input that works, but perhaps not as the user expects; commands print it as one line."""


class OtherRankError(InputError):
    """A mistake that another process of the same run has found and reports."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or name the extra that installs it.

    Raises:
        InputError: the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            "optional dependency",
            module,
            "an installed package",
            f"Install it: pip install 'ssdfl[{extra}]', "
            f"or in a clone: pip install -e '.[{extra}]'.",
        ) from error


def check_range(
    what: str, value: float, low: float, high: float = float("inf"), remedy: str = ""
) -> None:
    """Refuse a number outside ``[low, high]``, NaN included.

    Examples:
        >>> check_range("p", 0.5, 0, 1)
    """
    if not low <= value <= high:
        bounds = (
            f"a number in [{low:g}, {high:g}]"
            if high < float("inf")
            else f"a number of at least {low:g}"
        )
        raise InputError(what, value, bounds, remedy or f"Choose {what} in that range.")


def import_object(path: str, what: str) -> object:
    """The object that ``package.module:name`` points at.

    Raises:
        InputError: the module or the name in it cannot be found.

    Examples:
        >>> import_object("math:pi", "constant")
        3.141592653589793
    """
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a user's module may raise anything
        says = f"Python says: {type(error).__name__}: {error}."
        where = (
            "It has to be in the working folder, beside the experiment's file, or on PYTHONPATH."
        )
        raise InputError(
            what, path, "an importable package.module:name", f"{says} {where}"
        ) from error
    if not attribute or not hasattr(module, attribute):
        raise InputError(
            what, path, f"a name that {module_name} defines", "Write it as package.module:name."
        )
    return getattr(module, attribute)


def find_function(
    registry: Mapping[str, Callable[..., Any]], name: str, what: str
) -> Callable[..., Any]:
    """A function by its name in a registry, or a user's own by ``package.module:function``.

    Raises:
        InputError: neither exists, or it is not a function.

    Examples:
        >>> find_function({"length": len}, "length", "measure")("abc")
        3
    """
    if name in registry:
        return registry[name]
    if ":" not in name:
        choices = f"one of {', '.join(registry)}"
        raise InputError(what, name, choices, "Or name your own as package.module:function.")
    found = import_object(name, what)
    if not callable(found):
        raise InputError(
            what, name, "a function", "Point it at a function, as package.module:function."
        )
    return found


def number_from(function: Callable[..., Any], *arguments: Any, what: str) -> float:
    """The number that a user's function returns, with checks.

    Raises:
        InputError: the function raised an error, or did not return a number.

    Examples:
        >>> number_from(math.sqrt, 9, what="root")
        3.0
    """
    try:
        value = float(function(*arguments))
    except InputError:
        raise
    except Exception as error:
        says = f"It says: {type(error).__name__}: {error}."
        raise InputError(what, "an error", "a number", says) from error
    if math.isnan(value):
        raise InputError(what, value, "a number", "Fix the function.")
    return value


def unfit_value(problem: Mapping[str, Any], where: str, remedy: str) -> InputError:
    """The error for a bad value in a file, from one of pydantic's ``errors()``.

    Examples:
        >>> problem = {"loc": ("step",), "type": "int_type", "input": "x"}
        >>> problem["msg"] = "Input should be whole"
        >>> print(unfit_value(problem, "a.json", "Restore it."))
        step in a.json = x: expected whole. Restore it.
    """
    key = ".".join(map(str, problem["loc"]))
    got = "missing" if problem["type"] == "missing" else problem["input"]
    shown = repr(got) if not isinstance(got, str) else got
    expected = problem["msg"].removeprefix("Input should be ")
    return InputError(f"{key} in {where}", shown[:_LONGEST_SHOWN], expected, remedy)
