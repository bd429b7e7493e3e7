"""What devices with their own data exchange before there is a model.

Columns must become inputs in the same way everywhere, which depends on everyone's rows. So each
device floods a summary of its own, and all merge the same summaries in the same order.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError

from ssdfl.arrays import IntArray
from ssdfl.errors import InputError
from ssdfl.files import atomic_path
from ssdfl.learning import Summary, merged, read_summary
from ssdfl.mesh.gathering import ASK_S, gather
from ssdfl.mesh.mesh_pb2 import Holding, Holdings, HoldingsRequest, Request, Response
from ssdfl.mesh.node import Node
from ssdfl.mesh.signing import Signer
from ssdfl.mesh.transport import UnreachableError
from ssdfl.mesh.wire import BadMessageError
from ssdfl.records.sections import DataSection

HOLDINGS = "holdings.binpb"
MAX_SUMMARY = 1 << 22
MAX_SAMPLES = 1 << 48

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Holders:
    """Gathers what all devices tell of their data.

    Args:
        node: this device, its transport started.
        names: of all devices that were there at the start.
        own: this device's.
        signer: signs for this device.
        known: what is known already, by device.
    """

    node: Node
    names: Sequence[str]
    own: Holding
    signer: Signer
    known: dict[str, Holding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.node.answers["holdings"] = self._answer

    def tell(self) -> None:
        """Join the devices that must encode their data alike; later newcomers do not."""
        self.known.setdefault(self.node.name, self._signed(self.own))

    def gather(self, timeout_s: float) -> None:
        """Ask until everyone's are known.

        Raises:
            InputError: some have not come in time; it names them.
            StoppedError: the device was asked to stop.
        """
        gather(
            self.node, "summaries of devices' data", self._missing, self._ask_neighbours, timeout_s
        )

    def _signed(self, own: Holding) -> Holding:
        """What this device says of its data, with its signature."""
        if own.HasField("signature"):
            return own
        signed = Holding(signature=self.signer.sign(_statement(own)))
        signed.MergeFrom(own)
        return signed

    def summary(self) -> Summary:
        """Of all devices' data together.

        Raises:
            InputError: a device's columns are not like the others'.
        """
        return merged_summary(self.known, self.names)

    def sizes(self) -> IntArray:
        """(N,) how many training samples devices have."""
        return np.array([self.known[name].samples for name in self.names], dtype=np.int64)

    def _missing(self) -> list[str]:
        return [name for name in self.names if name not in self.known]

    def _ask_neighbours(self) -> None:
        for neighbour in self.node.neighbours.alive:
            request = Request(holdings=HoldingsRequest(known=list(self.known)))
            try:
                answer = self.node.transport.ask(neighbour, request, ASK_S)
            except UnreachableError:
                continue
            for holding in answer.held.devices:
                self._keep(neighbour, holding)

    def _keep(self, neighbour: str, holding: Holding) -> None:
        """Remember what a device told; the first that is heard of it holds."""
        try:
            self._check(holding)
        except (BadMessageError, ValueError) as error:
            self.node.bad_messages[neighbour] += 1
            log.warning("%s sent %s: dropped", neighbour, error)
            return
        self.known.setdefault(holding.device, holding)

    def _check(self, holding: Holding) -> None:
        if holding.device not in self.names:
            raise BadMessageError(f"a summary of no device, {holding.device!r}")
        if len(holding.summary) > MAX_SUMMARY or holding.samples > MAX_SAMPLES:
            raise BadMessageError(f"too large a summary of {holding.device}")
        if _kind(holding) != _kind(self.own):
            raise BadMessageError(f"another kind of summary of {holding.device}")
        if not self.signer.has_signed(holding.device, _statement(holding), holding.signature):
            raise BadMessageError(f"a summary of {holding.device}, which has not signed it")
        if holding.summary:
            Summary.from_json(holding.summary)

    def _answer(self, request: Request) -> Response:
        known = set(request.holdings.known)
        lacking = [holding for name, holding in list(self.known.items()) if name not in known]
        return Response(held=Holdings(devices=lacking))


def _statement(holding: Holding) -> bytes:
    """What is signed: for this purpose, by this device, all that it says."""
    parts = ("ssdfl holding", holding.device, str(holding.samples), holding.summary)
    return "\0".join(parts).encode()


def _kind(holding: Holding) -> tuple[bool, bool]:
    """What it has: a summary, a number of samples."""
    return bool(holding.summary), holding.samples > 0


def merged_summary(known: Mapping[str, Holding], names: Sequence[str]) -> Summary:
    """Of all devices' data together, merged in their order.

    Raises:
        InputError: a device's columns are not like the others'.
    """
    found = Summary.from_json(known[names[0]].summary)
    for name in names[1:]:
        try:
            found = merged([found, Summary.from_json(known[name].summary)])
        except InputError as error:
            what = f"data of {name}: {error.what}"
            raise InputError(what, error.got, error.expected, error.remedy) from None
    return found


def known_summary(folder: Path, config: DataSection, names: Sequence[str]) -> Summary | None:
    """How a device's data are encoded: by a file, or by what was gathered; None if neither."""
    if config.encoding:
        return read_summary(Path(config.encoding))
    known = saved_holdings(folder)
    told = {name for name, holding in known.items() if holding.summary}
    return merged_summary(known, names) if told >= set(names) else None


def save_holdings(holders: Holders, folder: Path) -> None:
    """Keep what was gathered, so that a device that starts again need not ask, and can tell."""
    with atomic_path(folder / HOLDINGS) as temporary:
        temporary.write_bytes(Holdings(devices=list(holders.known.values())).SerializeToString())


def saved_holdings(folder: Path) -> dict[str, Holding]:
    """What was gathered before, by device; nothing if the file is not there or is damaged."""
    try:
        found = Holdings.FromString((folder / HOLDINGS).read_bytes())
    except OSError:
        return {}
    except DecodeError:
        log.error("%s is damaged: asking neighbours again", folder / HOLDINGS)
        return {}
    return {holding.device: holding for holding in found.devices}
