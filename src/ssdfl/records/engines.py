"""The engines: where each is defined, and what it can do.

Code asks for a capability, never for an engine's name: ``engine_traits(name).real_time``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ssdfl.errors import InputError


@dataclass(frozen=True)
class EngineTraits:
    """The capabilities of an engine, as the rest of the library sees them.

    Attributes:
        home: ``package.module:name`` of its class, imported when the engine is used.
        description: what it is for, in one line.
        real_time: it runs on real devices and measures real seconds.
        records_gaps: it can record the quantities in the paper's bounds.
        resumes_exactly: a resumed run equals an unbroken one bit for bit.
        ranks: several processes, started by torchrun, run one job together.
        process_per_device: each device is a process with its own folder.
    """

    home: str
    description: str
    real_time: bool = False
    records_gaps: bool = True
    resumes_exactly: bool = True
    ranks: bool = False
    process_per_device: bool = False


ENGINES: dict[str, EngineTraits] = {
    "local": EngineTraits("ssdfl.engine.local:LocalEngine", "fast, on this machine"),
    "reference": EngineTraits("ssdfl.engine.reference:ReferenceEngine", "plain loops, the oracle"),
    "distributed": EngineTraits(
        "ssdfl.engine.distributed:DistributedEngine", "on many cores or machines", ranks=True
    ),
    "mesh": EngineTraits(
        "ssdfl.mesh.processes:MeshProcesses",
        "a process per device",
        real_time=True,
        records_gaps=False,
        resumes_exactly=False,
        process_per_device=True,
    ),
}


def engine_traits(name: str) -> EngineTraits:
    """The capabilities of an engine.

    Raises:
        InputError: there is no such engine.

    Examples:
        >>> engine_traits("mesh").real_time
        True
    """
    if name not in ENGINES:
        raise InputError("engine.name", name, f"one of {', '.join(ENGINES)}", "Choose one of them.")
    return ENGINES[name]


def engines_that(can: Callable[[EngineTraits], bool]) -> list[str]:
    """The names of the engines with a capability.

    Examples:
        >>> engines_that(lambda traits: traits.ranks)
        ['distributed']
    """
    return [name for name, traits in ENGINES.items() if can(traits)]


def describe_engines() -> str:
    """All engines in one line, for help texts.

    Examples:
        >>> describe_engines().split("; ")[0]
        'local (fast, on this machine)'
    """
    return "; ".join(f"{name} ({traits.description})" for name, traits in ENGINES.items())
