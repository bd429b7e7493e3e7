"""``ssdfl graph``: facts and a picture of a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ssdfl.cli.options import check_choice, check_picture

MOST_SHOWN = 60
MOST_LINKS = 20
MOST_DRAWN = 5000
_UNLIMITED = ("uplink_Bps", "downlink_Bps")


def graph(
    spec: Annotated[
        str, typer.Argument(help="A spec such as er:n=30,p=0.1,seed=0, or a network file.")
    ],
    mixing: Annotated[
        str, typer.Option(help="Weights for the spectrum: metropolis, lazy or fastest.")
    ] = "metropolis",
    clusters: Annotated[
        int, typer.Option(help="Number of clusters to colour (spectral bisection).")
    ] = 1,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Picture to write, .png or .pdf; by default NAME.png, up to 5,000 devices."
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Also write the network: .graphml, .gml, .csv, .json, .npy or .npz."),
    ] = None,
    certify: Annotated[
        Path | None, typer.Option(help="Certify the conductance and write the proof here, as JSON.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="Time limit of --certify's search, on one core.")
    ] = 60.0,
    check: Annotated[
        Path | None,
        typer.Option(help="Check a file from --certify for this network; print what it proves."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the facts as JSON; draw only with --picture.")
    ] = False,
) -> None:
    """Look at a network: its size, spectrum, link costs, and a picture.

    Specs: `er:n=,p=` Erdős–Rényi · `ba:n=,m=` Barabási–Albert · `rgeo:n=,radius=` random geometric
    · `ws:n=,k=,p=` Watts–Strogatz · `complete:n=` · `ring:n=` · `path:n=` · `star:n=` ·
    `grid:rows=,cols=` · `torus:rows=,cols=` · `sbm:blocks=,size=,p_in=,p_out=` stochastic block
    model · `barbell:size=` · `cliques:cliques=,size=` ring of cliques ·
    `sites:sites=,size=,links=,slowdown=` two-tier sites · `gaia` eleven cities of the world.

    Random ones take `seed=`; all take `latency_s=`, `bandwidth_Bps=`, `compute_s=`, `uplink_Bps=`,
    `downlink_Bps=`.

    Files: `.graphml`, `.gml`, `.csv` (source,target,latency_s,bandwidth_Bps), node-link `.json`,
    adjacency `.npy` and `.npz`.
    """
    from ssdfl.cli.certificates import conductance_of_file
    from ssdfl.clusters import plan_clusters
    from ssdfl.graph import MIXINGS, describe, load_network, write_network

    check_choice("--mixing", mixing, MIXINGS)
    check_picture("--picture", picture)
    network = load_network(spec)
    plan = plan_clusters(network, clusters, MIXINGS[mixing])
    known = conductance_of_file(MIXINGS[mixing](network.adjacency), certify, seconds, check)
    facts = {
        **describe(network, mixing, known),
        "clusters": [list(cluster) for cluster in plan.clusters],
    }
    if save is not None:
        write_network(network, save)
    picture = picture or _default_picture(spec, network.num_devices, as_json)
    if picture is not None:
        _plot(network, plan.clusters, picture)
        facts["picture"] = str(picture)
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
    else:
        _print(facts)


def _default_picture(spec: str, num_devices: int, as_json: bool) -> Path | None:
    """The default picture; None for JSON output, or if drawing would take long."""
    too_many = num_devices > MOST_DRAWN
    return None if as_json or too_many else Path(f"{_file_name(spec)}.png")


def _file_name(spec: str) -> str:
    """A file name that identifies the network.

    Examples:
        >>> _file_name("er:n=30,p=0.1")
        'er-n30-p0.1'
    """
    from ssdfl.graph import TOPOLOGIES

    if spec.partition(":")[0] not in TOPOLOGIES:
        return Path(spec).stem
    return spec.replace(":", "-").replace(",", "-").replace("=", "")


def _plot(network: Any, clusters: Any, path: Path) -> None:
    from ssdfl.report import plot_network, save

    save(plot_network(network, clusters), path)


def _print(facts: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None)
    for key, value in facts.items():
        table.add_row(key.replace("_", " "), escape(_readable(key, value)))
    Console().print(table, highlight=False)


def _readable(key: str, value: Any) -> str:
    special: dict[str, Callable[[Any], str]] = {"added_links": _added_links, "clusters": _clusters}
    if value is None:
        return "unlimited" if key in _UNLIMITED else "not computed for a network this large"
    if key in special:
        return special[key](value)
    if isinstance(value, list):
        low, high = value
        return f"{low:g}" if low == high else f"{low:g} … {high:g}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _added_links(links: list[tuple[int, int]]) -> str:
    if not links:
        return "none needed"
    pairs = ", ".join(f"{i}–{j}" for i, j in links[:MOST_LINKS])
    more = ", …" if len(links) > MOST_LINKS else ""
    return f"{len(links)} to make it connected: {pairs}{more}"


def _clusters(clusters: list[list[int]]) -> str:
    """The devices of all clusters, or only the sizes of the clusters if there are many devices."""
    sizes = [len(cluster) for cluster in clusters]
    if sum(sizes) <= MOST_SHOWN:
        return str(clusters)
    return f"{len(clusters)} of {', '.join(map(str, sizes))} devices"
