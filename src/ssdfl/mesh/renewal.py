"""New certificates for the devices of a mesh, before the old ones expire."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ssdfl.errors import InputError
from ssdfl.files import write_text
from ssdfl.mesh.certificates import Authority, write_secret
from ssdfl.mesh.folder import device_folders

RENEWED = ("certificate.pem", "authority.pem")


def renew_certificates(
    mesh: Path, names: Collection[str] = (), new_keys: bool = False, authority: Path | None = None
) -> list[Path]:
    """Write new certificates for devices and their authority, whose key stays; returns the folders.

    Old and new certificates are valid while they last, so devices may be restarted one by one.

    Args:
        names: of the devices, by default all whose folders are here.
        new_keys: make new keys for the devices, too.
        authority: the folder with ``authority.key`` and ``authority.pem``; by default ``ca``.

    Raises:
        InputError: no such device, or a key that cannot be read.
    """
    folders = _folders(mesh, names)
    place = authority or mesh / "ca"
    renewed = Authority.of_folder(place).renewed()
    for folder in folders:
        _renew(folder, renewed, new_keys)
    write_text(place / "authority.pem", renewed.certificate.decode())
    return folders


def _folders(mesh: Path, names: Collection[str]) -> list[Path]:
    found = {folder.name: folder for folder in device_folders(mesh)}
    _check_known(names, found)
    return [found[name] for name in names or found]


def _check_known(names: Collection[str], found: Collection[str]) -> None:
    for name in names:
        if name not in found:
            raise InputError("device", name, f"one of {', '.join(found)}", "Check its name.")


def _renew(folder: Path, authority: Authority, new_key: bool) -> None:
    if new_key:
        key, certificate = authority.issue(folder.name)
        write_secret(folder / "key.pem", key)
    else:
        certificate = _certificate_for_key(folder, authority)
    write_text(folder / "certificate.pem", certificate.decode())
    write_text(folder / "authority.pem", authority.certificate.decode())


def _certificate_for_key(folder: Path, authority: Authority) -> bytes:
    try:
        return authority.certify(folder.name, (folder / "key.pem").read_bytes())
    except (OSError, ValueError, TypeError) as error:
        remedy = f"Make a new one with --new-keys. ({error})"
        raise InputError("key", str(folder / "key.pem"), "the device's key", remedy) from None
