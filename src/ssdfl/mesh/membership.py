"""The changes of membership that a device knows: from its folder and from its neighbours.

A change may be put into any one device's folder and floods from there. Pings carry the version of
the last change a device knows, and neighbours ask for the changes they lack.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.graph import Network
from ssdfl.mesh.change import (
    MAX_CHANGE_BYTES,
    BadChangeError,
    SignedChange,
    check_follows,
    read_change,
    text_digest,
)
from ssdfl.mesh.folder import DeviceConfig
from ssdfl.mesh.gathering import ASK_S
from ssdfl.mesh.mesh_pb2 import Changes, ChangesRequest, Request, Response
from ssdfl.mesh.node import Node
from ssdfl.mesh.transport import UnreachableError

CHANGES = "changes"
POLL_S = 0.5
MOST_SENT_BYTES = 1 << 21
"""Size limit of several changes in one answer; a device that lacks more asks again."""

log = logging.getLogger(__name__)


class Membership:
    """The chain of changes, as far as it is known.

    Args:
        folder: of the device.
        authority: the certificate of the mesh's authority, in PEM.
        network_text: of ``network.json``, which the first change follows.
    """

    def __init__(self, folder: Path, authority: bytes, network_text: str) -> None:
        self._folder, self._authority = folder / CHANGES, authority
        self._base = text_digest(network_text)
        self._known: list[SignedChange] = []
        self._refused: set[str] = set()
        self._lock = threading.Lock()
        self.read_folder()

    @property
    def changes(self) -> tuple[SignedChange, ...]:
        """All that are known, in order."""
        return tuple(self._known)

    @property
    def version(self) -> int:
        """Of the last change."""
        return len(self._known)

    def names_after(self, cycle: int) -> tuple[str, ...] | None:
        """The members after a cycle; None before the first change."""
        made = [one.change.devices.names for one in self._known if one.change.cycle <= cycle]
        return made[-1] if made else None

    def take(self, text: str) -> bool:
        """Keep a change, if it comes next; whether it does.

        Raises:
            BadChangeError: it is not the authority's, or of another chain.
        """
        with self._lock:
            found = read_change(text, self._authority)
            if found.change.version <= self.version:
                self._check_known(found)
                return False
            check_follows(found, self._known, self._base)
            self._known.append(found)
        self._write(found)
        change = found.change
        log.info(
            "membership %d from cycle %d: %s",
            change.version,
            change.cycle,
            _named(change.devices.names),
        )
        return True

    def _check_known(self, found: SignedChange) -> None:
        """Refuse an older change unless it is the one that is known."""
        version = found.change.version
        if found.digest != self._known[version - 1].digest:
            raise BadChangeError(f"another change {version} than the one known, which stays")

    def _write(self, found: SignedChange) -> None:
        """Keep it for when the device starts again; on a full disk, neighbours tell it then."""
        path = self._folder / f"{found.change.version}.json"
        if path.exists() and _text_of(path) == found.text:
            return
        try:
            write_text(path, found.text)
        except OSError as error:
            log.error("%s not written: %s", path.name, error)

    def read_folder(self) -> None:
        """Take changes from the folder; an incomplete file is read again later."""
        for text in self._texts():
            try:
                self.take(text)
            except BadChangeError as error:
                self._complain(text, str(error))

    def _texts(self) -> Iterator[str]:
        """The texts of files whose version is not known yet, in order of versions."""
        numbered = filter(lambda path: path.stem.isdecimal(), self._folder.glob("*.json"))
        for path in sorted(numbered, key=lambda path: int(path.stem)):
            if int(path.stem) > self.version:
                yield _text_of(path)

    def _complain(self, text: str, reason: str) -> None:
        """Say why a file is not used, once."""
        digest = text_digest(text)
        if digest not in self._refused:
            self._refused.add(digest)
            log.warning("a file in %s holds %s: not used", self._folder.name, reason)

    def answer(self, request: Request) -> Response:
        """The changes that a neighbour lacks, as many as fit into one answer."""
        texts: list[str] = []
        for found in self._known[request.changes.after :]:
            texts.append(found.text)
            if sum(map(len, texts)) > MOST_SENT_BYTES:
                break
        return Response(changed=Changes(texts=texts))

    def ask(self, node: Node) -> None:
        """Ask neighbours that know more."""
        for name in node.neighbours.alive:
            if node.neighbours[name].membership > self.version:
                self._ask(node, name)

    def _ask(self, node: Node, name: str) -> None:
        request = Request(changes=ChangesRequest(after=self.version))
        try:
            for text in node.transport.ask(name, request, ASK_S).changed.texts:
                self.take(text)
        except UnreachableError:
            return
        except BadChangeError as error:
            node.bad_messages[name] += 1
            log.warning("%s sent %s: dropped", name, error)

    def watch(self, node: Node, news: Callable[[], None], ended: Callable[[float], bool]) -> None:
        """Look for changes repeatedly, and report each.

        Args:
            ended: waits for some seconds; whether to stop.
        """
        while not ended(POLL_S):
            self.poll(node, news)

    def poll(self, node: Node, news: Callable[[], None]) -> None:
        """Look for changes once."""
        before = self.version
        self.read_folder()
        self.ask(node)
        if self.version > before:
            news()


def _text_of(path: Path) -> str:
    """A file's text; nothing if it cannot be read, or is too large for a change."""
    try:
        if path.stat().st_size > MAX_CHANGE_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _named(names: tuple[str, ...]) -> str:
    """A few names of many."""
    return f"{len(names)} devices, {', '.join(names[:8])}{', …' * (len(names) > 8)}"


def network_at_entry(config: DeviceConfig, start: Network, membership: Membership) -> Network:
    """The network a device entered first: the mesh's first, or that of the change that adds it.

    Args:
        start: the network as the mesh began.

    Raises:
        InputError: that change is not in its folder.
    """
    if not config.joins:
        return start
    if membership.version < config.joins:
        expected = f"changes to {config.joins}, by which {config.name} joins"
        remedy = "Copy the files in changes/ of the folder that ssdfl mesh add made."
        raise InputError("last change of membership", membership.version, expected, remedy)
    return membership.changes[config.joins - 1].change.devices
