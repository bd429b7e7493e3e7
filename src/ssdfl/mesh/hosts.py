"""Where the devices of a mesh listen: from a file, or free ports of this machine."""

from __future__ import annotations

import csv
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ssdfl.errors import InputError

_MOST_DIGITS = 9


@dataclass(frozen=True)
class Host:
    """Where a device is.

    Attributes:
        device: its name.
        address: ``host:port`` where it listens, or empty if nobody can dial it.
    """

    device: str
    address: str


def read_hosts(path: Path, names: Sequence[str]) -> list[Host]:
    """Hosts from a CSV file ``device,address``; without an address a device cannot be dialled.

    Args:
        names: of all devices; unless they are numbers, the file may also name a device by its
            index.

    Raises:
        InputError: a missing, unknown or repeated device, or a malformed address.
    """
    found: dict[str, Host] = {}
    for line, row in enumerate(_read_rows(path), start=2):
        where = f"{path} line {line}"
        name = _device_name(_text(row, "device"), names)
        if name not in names or name in found:
            expected = f"each of {names[0]} … {names[-1]} once"
            raise InputError(f"{where}: device", name, expected, "Fix the line.")
        address = _text(row, "address")
        if address and not _is_address(address):
            raise InputError(f"{where}: address", address, "host:port, or nothing", "Fix the line.")
        found[name] = Host(name, address)
    return [_find(found, name, path) for name in names]


def _find(found: Mapping[str, Host], name: str, path: Path) -> Host:
    if name not in found:
        raise InputError(f"{path}: device", name, "a line for each device", "Add its line.")
    return found[name]


def _text(row: Mapping[str, str | None], column: str) -> str:
    """A cell without spaces around it; empty if the line is too short or has no such column."""
    return (row.get(column) or "").strip()


def _read_rows(path: Path) -> list[dict[str, str | None]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            return list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("hosts", str(path), "a CSV file", f"The reader says: {error}.") from None


def _device_name(text: str, names: Sequence[str]) -> str:
    """A device's name from its name or index; other text as it is.

    Where some names are numbers, a number is a name and never an index.
    """
    by_index = _is_below(text, len(names)) and not any(map(str.isdecimal, names))
    return names[int(text)] if by_index else text


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and _is_below(port, 1 << 16)


def _is_below(text: str, limit: int) -> bool:
    """Whether a text is a whole number below a limit; too many digits cannot be converted."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) < limit


def loopback_hosts(names: Sequence[str]) -> list[Host]:
    """Free ports of this machine."""
    with ExitStack() as open_sockets:  # all open at once, so that no port is given twice
        return [Host(name, _bind(open_sockets.enter_context(socket.socket()))) for name in names]


def _bind(one: socket.socket) -> str:
    """The address that the system chooses for a socket."""
    one.bind(("127.0.0.1", 0))
    _, port = one.getsockname()
    return f"127.0.0.1:{port}"
