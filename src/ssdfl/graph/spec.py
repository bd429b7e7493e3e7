"""Load a network from one line of text: a spec such as ``er:n=30,p=0.1,seed=0``, or a path."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ssdfl.errors import InputError, check_range
from ssdfl.files import is_there
from ssdfl.graph.conversion import from_networkx
from ssdfl.graph.files import FORMATS, check_connected, read_network
from ssdfl.graph.network import Graph, Network
from ssdfl.graph.topologies import TOPOLOGIES
from ssdfl.lazy import LazyModule
from ssdfl.mappings import without
from ssdfl.specs import whole_number

if TYPE_CHECKING:
    import networkx as nx
else:
    nx = LazyModule("networkx")

COSTS = ("latency_s", "bandwidth_Bps", "compute_s", "uplink_Bps", "downlink_Bps")

NetworkLike: TypeAlias = str | Path | Graph | Network
"""A spec, a file, a NetworkX graph, or a network."""


def load_network(spec: NetworkLike, default_seed: int = 0) -> Network:
    """The network of a spec, a file path, or a NetworkX graph.

    A spec is ``kind:key=value,…``. Every kind also takes ``latency_s``, ``bandwidth_Bps``,
    ``compute_s``, ``uplink_Bps`` and ``downlink_Bps`` to set one cost for all links or devices. A
    random kind without ``seed=`` is drawn with ``default_seed``. The costs of a graph are read by
    `from_networkx`. A `Network` is returned unchanged.

    Raises:
        InputError: a kind or key is unknown, a value is not valid, or a file or graph is unreadable
            or not connected.

    Examples:
        >>> load_network("ring:n=5").num_links
        5
        >>> load_network("er:n=30,p=0.1,seed=0").title
        'er:n=30,p=0.1,seed=0'
        >>> load_network(nx.karate_club_graph()).num_devices
        34
    """
    if isinstance(spec, Network):
        return spec
    if not isinstance(spec, str | Path):
        return _from_graph(spec)
    text = str(spec)
    kind = text.partition(":")[0]
    return _from_spec(text, default_seed) if kind in TOPOLOGIES else _from_file(text)


def _from_graph(graph: Graph) -> Network:
    network = from_networkx(graph, title=graph.name or "graph")
    check_connected(network, "graph")
    return network


def _from_spec(spec: str, default_seed: int) -> Network:
    """A network of a known kind, with one cost for all links or devices if the spec gives it."""
    kind, values = _parse(spec)
    costs = {key: _convert(key, values.pop(key), float) for key in COSTS if key in values}
    builder = TOPOLOGIES[kind]
    network = builder(**_arguments(kind, builder, values, default_seed))
    uniform = {key: np.full_like(getattr(network, key), value) for key, value in costs.items()}
    return replace(network, title=spec, **uniform)


def _parse(spec: str) -> tuple[str, dict[str, str]]:
    """The kind of a spec, and its keys and values."""
    kind, _, text = spec.partition(":")
    pairs = [_pair(part, spec) for part in text.split(",") if part]
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InputError("network", spec, "each key once", "Remove the repeated one.")
    return kind, values


def _from_file(spec: str) -> Network:
    path = Path(spec)
    if path.suffix.lower() in FORMATS or is_there(path):
        return read_network(path)
    raise InputError(
        "network",
        spec,
        f"a kind ({', '.join(TOPOLOGIES)}) or a file ({', '.join(FORMATS)})",
        "Write it like er:n=30,p=0.1,seed=0.",
    )


def _pair(part: str, spec: str) -> tuple[str, str]:
    key, equals, value = part.partition("=")
    if not equals:
        raise InputError("network", spec, "key=value pairs after the colon", f"Correct {part!r}.")
    return key.strip(), value.strip()


def _arguments(
    kind: str, builder: Callable[..., Network], values: dict[str, str], default_seed: int
) -> dict[str, Any]:
    known = inspect.signature(builder, eval_str=True).parameters
    _check_keys(kind, known, values)
    arguments = {key: _convert(key, value, known[key].annotation) for key, value in values.items()}
    if "seed" in known:
        arguments.setdefault("seed", default_seed)
        check_range("seed", arguments["seed"], 0, 2**63 - 1)
    return arguments


def _check_keys(kind: str, known: Mapping[str, inspect.Parameter], values: dict[str, str]) -> None:
    """Refuse unknown keys and missing required ones."""
    for key, value in without(values, known).items():
        choices = f"one of the keys {', '.join([*known, *COSTS])}"
        raise InputError(f"{kind}:{key}", value, choices, "Correct the key.")
    for name, parameter in without(known, values).items():
        if parameter.default is parameter.empty:
            raise InputError("network", f"{kind}:…", f"the key {name}", f"Add {name}=….")


def _convert(key: str, value: str, kind: type) -> Any:
    try:
        return whole_number(value) if kind is int else kind(value)
    except ValueError:
        noun = {"int": "a whole number", "float": "a number"}[kind.__name__]
        raise InputError(key, value, noun, f"Write it like {key}={kind(1)}.") from None
