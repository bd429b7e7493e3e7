"""One line of text names any network: ``er:n=30,p=0.1,seed=0``, or a file's path."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import networkx as nx
import numpy as np

from ssdfl.errors import InputError, check_range
from ssdfl.graph.conversion import from_networkx
from ssdfl.graph.files import FORMATS, check_connected, read_network
from ssdfl.graph.network import Graph, Network
from ssdfl.graph.topologies import TOPOLOGIES

COSTS = ("latency_s", "bandwidth_Bps", "compute_s")

NetworkLike: TypeAlias = str | Path | Graph | Network
"""What names or is a network: a spec, a file, a NetworkX graph, or the network itself."""


def load_network(spec: NetworkLike, default_seed: int = 0) -> Network:
    """The network that a spec or a file path names, or that a NetworkX graph is.

    A spec is ``kind:key=value,…``. Every kind also takes ``latency_s``, ``bandwidth_Bps`` and ``compute_s``
    to set one cost for all links or devices. A random kind without ``seed=`` is drawn with ``default_seed``.
    Of a graph, costs are read as `from_networkx` does. A `Network` is returned as it is.

    Raises:
        InputError: unknown kind or key, a value that cannot be used, an unreadable file, or a file or graph
            that is not connected.

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
    if isinstance(spec, nx.Graph):
        network = from_networkx(spec, title=spec.name or "graph")
        check_connected(network, "graph")
        return network
    spec = str(spec)
    kind, _, text = spec.partition(":")
    if kind not in TOPOLOGIES:
        return _from_file(spec)
    pairs = [_pair(part, spec) for part in text.split(",") if part]
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InputError("network", spec, "each key once", "Remove the repeated one.")
    costs = {key: _convert(key, values.pop(key), float) for key in COSTS if key in values}
    builder = TOPOLOGIES[kind]
    arguments = _arguments(kind, builder, values, default_seed)
    network = builder(**arguments)
    uniform = {key: np.full_like(getattr(network, key), value) for key, value in costs.items()}
    return replace(network, title=spec, **uniform)


def _from_file(spec: str) -> Network:
    path = Path(spec)
    if path.suffix.lower() in FORMATS or path.exists():
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
        raise InputError("network", spec, "key=value pairs after the colon", f"Mend {part!r}.")
    return key.strip(), value.strip()


def _arguments(
    kind: str, builder: Callable[..., Network], values: dict[str, str], default_seed: int
) -> dict[str, Any]:
    known = inspect.signature(builder, eval_str=True).parameters
    for key in values:
        if key not in known:
            choices = ", ".join([*known, *COSTS])
            raise InputError(f"{kind}:{key}", values[key], f"one of the keys {choices}", "Mend the key.")
    missing = [name for name, p in known.items() if p.default is p.empty and name not in values]
    if missing:
        raise InputError("network", f"{kind}:…", f"the key {missing[0]}", f"Add {missing[0]}=….")
    arguments = {key: _convert(key, value, known[key].annotation) for key, value in values.items()}
    if "seed" in known:
        arguments.setdefault("seed", default_seed)
        check_range("seed", arguments["seed"], 0, 2**63 - 1)
    return arguments


def _convert(key: str, value: str, kind: type) -> Any:
    try:
        return kind(value)
    except ValueError:
        noun = {"int": "a whole number", "float": "a number"}[kind.__name__]
        raise InputError(key, value, noun, f"Write it like {key}={kind(1)}.") from None
