"""Find data sets in the user's folder, the cache or the system, or download and verify them."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from ssdfl.errors import InputError
from ssdfl.files import atomic_path

Progress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes received so far, and the total bytes."""

_CHUNK = 1 << 18


@dataclass(frozen=True)
class RemoteFile:
    """A file to download, by https.

    Attributes:
        sha256: the checksum of its content.
        size_bytes: its length; anything longer is refused.
    """

    url: str
    sha256: str
    size_bytes: int

    @property
    def name(self) -> str:
        """The file's name."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Source:
    """How to find a data set on disk, and where to download it.

    Attributes:
        folders: names that its folder may have below a data root.
        present: whether a folder holds the data set.
        files: the files to download.
        system: places where a system package puts it.
    """

    folders: tuple[str, ...]
    present: Callable[[Path], bool]
    files: tuple[RemoteFile, ...]
    system: tuple[Path, ...] = ()


def cache_folder() -> Path:
    """The folder for downloads."""
    return Path(platformdirs.user_cache_dir("ssdfl"))


def locate(source: Source, folder: Path | None = None) -> Path | None:
    """The first folder with the data set: the user's, the cache, the system's; or None.

    The user's folder is ``folder`` or else the environment variable ``SSDFL_DATA``.

    Raises:
        InputError: the user's folder does not exist.
    """
    named = folder or _folder_from_environment()
    if named is not None and not named.is_dir():
        raise InputError(
            "data folder", str(named), "an existing folder", "Check --data or SSDFL_DATA."
        )
    places = [] if named is None else _places_below(named, source)
    places += [*_places_below(cache_folder(), source), *source.system]
    return next((place for place in places if source.present(place)), None)


def _folder_from_environment() -> Path | None:
    text = os.environ.get("SSDFL_DATA")
    return Path(text) if text else None


def _places_below(root: Path, source: Source) -> list[Path]:
    """The folders below a root in which a data set may be, and the root itself."""
    return [*(root / name for name in source.folders), root]


def fetch(source: Source, folder: Path | None = None, progress: Progress | None = None) -> Path:
    """Download a data set into the cache (or a folder) and check it; files already there are kept.

    Raises:
        InputError: there is no connection, or a checksum is wrong. No partial file is left behind.
    """
    target = (folder or cache_folder()) / source.folders[0]
    for file in source.files:
        if not _is_whole(target / file.name, file.sha256):
            _download(file, target / file.name, progress)
    return target


def _is_whole(path: Path, sha256: str) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == sha256


_REMEDY = "Get the file another way and name its folder with --data or SSDFL_DATA."


def _download(file: RemoteFile, path: Path, progress: Progress | None) -> None:
    with atomic_path(path) as temporary:
        try:
            checksum = _receive(file, temporary, progress or _no_progress)
        except (urllib.error.URLError, OSError) as error:
            raise InputError(
                "download", file.url, "a reachable file", f"({error}) {_REMEDY}"
            ) from error
        if checksum != file.sha256:
            raise InputError(f"SHA-256 of {file.url}", checksum, file.sha256, _REMEDY)


def _receive(file: RemoteFile, path: Path, report: Progress) -> str:
    """Write a remote file to a path; returns its SHA-256."""
    _check_encrypted(file.url)
    digest, received = hashlib.sha256(), 0
    opener = urllib.request.build_opener(_EncryptedOnly)
    with opener.open(file.url, timeout=30) as response, path.open("wb") as out:
        while chunk := response.read(_CHUNK):
            received += len(chunk)
            if received > file.size_bytes:
                expected = f"{file.size_bytes:,} bytes, as published"
                raise InputError(f"size of {file.url}", "more", expected, _REMEDY)
            out.write(chunk)
            digest.update(chunk)
            report(file.name, received, file.size_bytes)
    return digest.hexdigest()


class _EncryptedOnly(urllib.request.HTTPRedirectHandler):
    """Refuses redirects to addresses without https."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """The request at the new address."""
        _check_encrypted(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_encrypted(url: str) -> None:
    """Refuse an address without https, since the content could be changed on the way."""
    if not url.startswith("https://"):
        raise InputError("download", url, "an address with https", _REMEDY)


def _no_progress(name: str, received: int, total: int) -> None:
    pass
