"""Certificates of conductance as files, for ``ssdfl graph``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdfl.errors import InputError, check_range
from ssdfl.files import write_text

if TYPE_CHECKING:
    from ssdfl.graph import Conductance
    from ssdfl.graph.mixing import MixingMatrix


def conductance_of_file(
    W: MixingMatrix, certify: Path | None, seconds: float, check: Path | None
) -> Conductance | None:
    """Write or check a certificate; returns what it proves, or None if neither is requested."""
    if certify is not None and check is not None:
        both = f"{certify}, {check}"
        raise InputError("--certify and --check", both, "one of them", "Certify first, then check.")
    if certify is not None:
        return _write(W, certify, seconds)
    return None if check is None else _check(W, check)


def _write(W: MixingMatrix, path: Path, seconds: float) -> Conductance:
    from ssdfl.graph import certify

    check_range("--seconds", seconds, 0, remedy="For example, choose 60.")
    found = certify(W, seconds)
    write_text(path, json.dumps(found.as_json()) + "\n")
    return found.conductance


def _check(W: MixingMatrix, path: Path) -> Conductance:
    from ssdfl.graph import Conductance, check_certificate
    from ssdfl.graph.certified import Refused

    certificate = _read(path)
    try:
        check_certificate(W.toarray(), certificate)
    except Refused as error:
        expected = "a proof for this network and its mixing weights"
        raise InputError(f"--check {path}", str(error), expected, "Certify it again.") from error
    return Conductance(certificate["lower"], certificate["upper"], tuple(certificate["cut"]))


def _read(path: Path) -> dict[str, Any]:
    try:
        read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        expected = "a file written by --certify"
        raise InputError(f"--check {path}", str(error), expected, "Correct the path.") from error
    return read
