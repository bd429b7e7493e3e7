"""What a device checks of its folder before it talks to anyone."""

from __future__ import annotations

from pathlib import Path

from ssdfl.errors import InputError
from ssdfl.graph import Network
from ssdfl.mesh.certificates import check_certificate, check_private
from ssdfl.mesh.folder import DeviceConfig
from ssdfl.mesh.member import Member
from ssdfl.mesh.transport import MAX_MESSAGE_BYTES, Credentials

SLACK_BYTES = 4 << 20
FACT_BYTES = 4 << 10


def check_neighbours(config: DeviceConfig, network: Network) -> None:
    """Refuse neighbours that are not those of the network.

    Raises:
        InputError: it names both.
    """
    linked = [config.names[j] for j in network.neighbours(config.index)]
    if sorted(linked) != sorted(config.neighbours):
        expected = f"{', '.join(linked)}, as in network.json"
        remedy = "Write the folders again: ssdfl mesh init."
        raise InputError(
            "neighbours in device.json", ", ".join(config.neighbours), expected, remedy
        )


def largest_message_bytes(member: Member) -> int:
    """The size limit of an honest message: four vectors of eight-byte numbers, or all facts.

    Devices that have not yet agreed on how to encode their data do not know their models.
    """
    if member.has_own_data or member.config.joins:
        return MAX_MESSAGE_BYTES
    facts = len(member.config.names) + len(member.network.links)
    return SLACK_BYTES + 4 * 8 * member.task.num_parameters + FACT_BYTES * facts


def credentials_of(folder: Path, name: str) -> Credentials:
    """A device's key and certificates.

    Raises:
        InputError: they are not there, not its own, or can be read by others.
    """
    try:
        files = [
            (folder / pem).read_bytes() for pem in ("key.pem", "certificate.pem", "authority.pem")
        ]
    except OSError as error:
        expected = "key.pem, certificate.pem and authority.pem"
        raise InputError("credentials", str(folder), expected, f"({error.strerror})") from None
    check_private(folder / "key.pem")
    check_certificate(name, *files)
    return Credentials(*files)
