"""The versions of packages that a run's numbers may depend on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import ssdfl

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "networkx", "pyarrow")


def current_versions() -> dict[str, str]:
    """The versions of ssdfl, Python, the system and the packages that compute.

    Examples:
        >>> current_versions()["ssdfl"] == ssdfl.__version__
        True
    """
    own = {
        "ssdfl": ssdfl.__version__,
        "Python": platform.python_version(),
        "system": platform.platform(),
    }
    return own | {name: _installed(name) for name in PACKAGES}


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
