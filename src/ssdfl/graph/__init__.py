"""Networks, mixing matrices, their spectra and their costs."""

from ssdfl.graph.attributes import DEVICE_UNITS, read_costs
from ssdfl.graph.blocks import Blocks, links_inside, make_blocks
from ssdfl.graph.certified import Certificate, certify, check_certificate
from ssdfl.graph.components import component_labels, num_components
from ssdfl.graph.conductance import (
    STATE_LIMIT,
    Conductance,
    ConductanceSearch,
    conductance,
    cut_conductance,
    prefix_conductance,
    sweep_cut,
)
from ssdfl.graph.conversion import from_networkx
from ssdfl.graph.costs import Clock, CycleCost
from ssdfl.graph.critical import Cycle, Part, Upgrade, best_upgrade, critical_parts, faster
from ssdfl.graph.facts import describe
from ssdfl.graph.files import from_json, read_network, to_json, write_network
from ssdfl.graph.joining import joined, without
from ssdfl.graph.matchings import colour_links, random_matching
from ssdfl.graph.mixing import (
    MIXINGS,
    MixingMatrix,
    Weights,
    averaging,
    averaging_within,
    check_mixing,
    fastest,
    lazy,
    links_of,
    links_within,
    metropolis,
    on_links,
    scaled,
    without_links,
)
from ssdfl.graph.nested_modes import NestedModes
from ssdfl.graph.network import Network, make_network
from ssdfl.graph.robustness import robustness, survived_liars
from ssdfl.graph.small_cuts import small_conductances
from ssdfl.graph.sparsest_cut import ENUMERATION_LIMIT
from ssdfl.graph.spec import NetworkLike, load_network
from ssdfl.graph.spectrum import DENSE_LIMIT, Spectrum, slowest_mode, smallest_eigenvalue, spectrum
from ssdfl.graph.topologies import TOPOLOGIES

__all__ = [
    "DENSE_LIMIT",
    "DEVICE_UNITS",
    "ENUMERATION_LIMIT",
    "MIXINGS",
    "STATE_LIMIT",
    "TOPOLOGIES",
    "Blocks",
    "Certificate",
    "Clock",
    "Conductance",
    "ConductanceSearch",
    "Cycle",
    "CycleCost",
    "MixingMatrix",
    "NestedModes",
    "Network",
    "NetworkLike",
    "Part",
    "Spectrum",
    "Upgrade",
    "Weights",
    "averaging",
    "averaging_within",
    "best_upgrade",
    "certify",
    "check_certificate",
    "check_mixing",
    "colour_links",
    "component_labels",
    "conductance",
    "critical_parts",
    "cut_conductance",
    "describe",
    "faster",
    "fastest",
    "from_json",
    "from_networkx",
    "joined",
    "lazy",
    "links_inside",
    "links_of",
    "links_within",
    "load_network",
    "make_blocks",
    "make_network",
    "metropolis",
    "num_components",
    "on_links",
    "prefix_conductance",
    "random_matching",
    "read_costs",
    "read_network",
    "robustness",
    "scaled",
    "slowest_mode",
    "small_conductances",
    "smallest_eigenvalue",
    "spectrum",
    "survived_liars",
    "sweep_cut",
    "to_json",
    "without",
    "without_links",
    "write_network",
]
