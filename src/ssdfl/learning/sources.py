"""Where data sets lie and come from: the user's folder, the cache, the system, or a checked download."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ssdfl.errors import InputError
from ssdfl.files import atomic_path

Progress = Callable[[str, int, int], None]
"""Called with a file's name, the bytes so far, and the bytes in all."""

_CHUNK = 1 << 18


@dataclass(frozen=True)
class RemoteFile:
    """A file to download and the publisher's MD5 of it."""

    url: str
    md5: str

    @property
    def name(self) -> str:
        """The file's name."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Source:
    """How to find a data set on disk and where to get it.

    Attributes:
        folders: names that its folder may have below a data root.
        present: whether a folder holds the data set.
        files: what to download.
        system: places where a system package puts it.
    """

    folders: tuple[str, ...]
    present: Callable[[Path], bool]
    files: tuple[RemoteFile, ...]
    system: tuple[Path, ...] = ()


def cache_folder() -> Path:
    """Where downloads are kept."""
    return Path(platformdirs.user_cache_dir("ssdfl"))


def locate(source: Source, folder: Path | None = None) -> Path | None:
    """The first folder that holds the data set: the user's, the cache, the system's; None if none does.

    The user's folder is ``folder`` or else the environment variable ``SSDFL_DATA``.

    Raises:
        InputError: the user's folder does not exist.
    """
    named = folder or _folder_from_environment()
    if named is not None and not named.is_dir():
        raise InputError("data folder", str(named), "an existing folder", "Check --data or SSDFL_DATA.")
    places = [] if named is None else _places_below(named, source)
    places += [*_places_below(cache_folder(), source), *source.system]
    return next((place for place in places if source.present(place)), None)


def _folder_from_environment() -> Path | None:
    text = os.environ.get("SSDFL_DATA")
    return Path(text) if text else None


def _places_below(root: Path, source: Source) -> list[Path]:
    """Where a data set may lie below a root, or in it."""
    return [*(root / name for name in source.folders), root]


def fetch(source: Source, folder: Path | None = None, progress: Progress | None = None) -> Path:
    """Download a data set into the cache (or a folder) and check it; files already there are kept.

    Raises:
        InputError: no connection, or a file whose checksum is wrong; nothing partial is left behind.
    """
    target = (folder or cache_folder()) / source.folders[0]
    for file in source.files:
        if not _is_whole(target / file.name, file.md5):
            _download(file, target / file.name, progress)
    return target


def _is_whole(path: Path, md5: str) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "md5").hexdigest() == md5


def _download(file: RemoteFile, path: Path, progress: Progress | None) -> None:
    remedy = "Get the file another way and name its folder with --data or SSDFL_DATA."
    report = progress or _no_progress
    digest, received = hashlib.md5(usedforsecurity=False), 0
    with atomic_path(path) as temporary:
        try:
            with urllib.request.urlopen(file.url, timeout=30) as response, temporary.open("wb") as out:
                total = int(response.headers.get("Content-Length") or 0)
                while chunk := response.read(_CHUNK):
                    out.write(chunk)
                    digest.update(chunk)
                    received += len(chunk)
                    report(file.name, received, total)
        except (urllib.error.URLError, OSError) as error:
            raise InputError("download", file.url, "a reachable file", f"({error}) {remedy}") from error
        if digest.hexdigest() != file.md5:
            raise InputError(f"MD5 of {file.url}", digest.hexdigest(), file.md5, remedy)


def _no_progress(name: str, received: int, total: int) -> None:
    pass
