"""Networks, mixing matrices, their spectra and their costs."""

from ssdfl.graph.conductance import Conductance, conductance, cut_conductance, sweep_cut
from ssdfl.graph.costs import Clock
from ssdfl.graph.facts import describe
from ssdfl.graph.files import read_network, to_json, write_network
from ssdfl.graph.mixing import (
    MIXINGS,
    MixingMatrix,
    Weights,
    averaging,
    check_mixing,
    fastest,
    lazy,
    links_of,
    links_within,
    metropolis,
    without_links,
)
from ssdfl.graph.network import Network, from_networkx, make_network
from ssdfl.graph.spec import load_network
from ssdfl.graph.spectrum import Spectrum, slowest_mode, spectrum
from ssdfl.graph.topologies import TOPOLOGIES

__all__ = [
    "MIXINGS",
    "TOPOLOGIES",
    "Clock",
    "Conductance",
    "MixingMatrix",
    "Network",
    "Spectrum",
    "Weights",
    "averaging",
    "check_mixing",
    "conductance",
    "cut_conductance",
    "describe",
    "fastest",
    "from_networkx",
    "lazy",
    "links_of",
    "links_within",
    "load_network",
    "make_network",
    "metropolis",
    "read_network",
    "slowest_mode",
    "spectrum",
    "sweep_cut",
    "to_json",
    "without_links",
    "write_network",
]
