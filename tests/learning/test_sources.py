"""Look-up order, and downloads from a server on loopback."""

import hashlib
import ssl
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ssdfl.errors import InputError
from ssdfl.learning.datasets import DATASETS
from ssdfl.learning.sources import RemoteFile, Source, cache_folder, fetch, locate
from ssdfl.mesh.certificates import Authority

CONTENT = b"some data" * 100_000


def encrypted(socket, folder, monkeypatch):
    """A socket that shows a certificate of localhost, which this process trusts."""
    authority = Authority()
    key, certificate = authority.issue("localhost")
    (folder / "own.pem").write_bytes(key + certificate)
    (folder / "trusted.pem").write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "trusted.pem"))
    monkeypatch.setenv("no_proxy", "*")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem")
    return context.wrap_socket(socket, server_side=True)


@pytest.fixture
def server(tmp_path, monkeypatch):
    root = tmp_path / "served"
    root.mkdir()
    (root / "a.gz").write_bytes(CONTENT)

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(root))

        def log_message(self, *args):
            pass

        def do_GET(self):
            if self.path != "/plain.gz":
                super().do_GET()
                return
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/a.gz")
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as running:
        running.socket = encrypted(running.socket, tmp_path, monkeypatch)
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"https://localhost:{running.server_port}"
        running.shutdown()
        thread.join()


def source(*files, system=()):
    return Source(("thing",), lambda folder: (folder / "a.gz").exists(), files, system)


def test_download_is_checked_reported_and_not_repeated(server, tmp_path):
    file = RemoteFile(f"{server}/a.gz", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    seen = []
    place = fetch(source(file), tmp_path / "to", lambda *step: seen.append(step))
    assert (place / "a.gz").read_bytes() == CONTENT
    assert seen[-1] == ("a.gz", len(CONTENT), len(CONTENT))
    assert len(seen) > 1
    seen.clear()
    fetch(source(file), tmp_path / "to", lambda *step: seen.append(step))
    assert seen == []


def test_a_damaged_file_is_fetched_again(server, tmp_path):
    file = RemoteFile(f"{server}/a.gz", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing" / "a.gz").write_bytes(CONTENT[:50])
    fetch(source(file), tmp_path)
    assert (tmp_path / "thing" / "a.gz").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.gz", "SHA-256 of"),
        ("missing.gz", "a reachable file"),
        ("plain.gz", "expected an address with https"),
    ],
)
def test_bad_downloads_leave_nothing(server, tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        fetch(source(RemoteFile(f"{server}/{name}", "0" * 64, len(CONTENT))), tmp_path)
    assert list((tmp_path / "thing").iterdir()) == []


def test_more_than_was_published_is_not_received(server, tmp_path):
    seen = []
    with pytest.raises(InputError, match="size of .* = more: expected 300,000 bytes"):
        fetch(
            source(RemoteFile(f"{server}/a.gz", "0" * 64, 300_000)),
            tmp_path,
            lambda *_: seen.append(_),
        )
    assert [received for _, received, _ in seen] == [1 << 18]
    assert list((tmp_path / "thing").iterdir()) == []


def test_only_encrypted_addresses_are_asked(tmp_path):
    with pytest.raises(InputError, match="http://localhost/a.gz: expected an address with https"):
        fetch(source(RemoteFile("http://localhost/a.gz", "0" * 64, 9)), tmp_path)
    files = [file for info in DATASETS.values() if info.source for file in info.source.files]
    assert files
    for file in files:
        assert file.url.startswith("https://")
        assert len(bytes.fromhex(file.sha256)) == 32


def test_no_connection(tmp_path):
    with pytest.raises(InputError, match="--data or SSDFL_DATA"):
        fetch(source(RemoteFile("https://127.0.0.1:9/a.gz", "0" * 64, 9)), tmp_path)


def put(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "a.gz").write_bytes(b"")
    return folder


def test_look_up_order(tmp_path, monkeypatch):
    system = put(tmp_path / "system")
    thing = source(system=(system,))
    assert locate(source()) is None
    assert locate(thing) == system
    cached = put(cache_folder() / "thing")
    assert locate(thing) == cached
    from_environment = put(tmp_path / "environment" / "thing")
    monkeypatch.setenv("SSDFL_DATA", str(tmp_path / "environment"))
    assert locate(thing) == from_environment
    named = put(tmp_path / "named")
    assert locate(thing, named) == named
    assert locate(thing, tmp_path) == cached  # the named folder does not have it


def test_a_named_folder_must_exist(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="expected an existing folder"):
        locate(source(), tmp_path / "typo")
    monkeypatch.setenv("SSDFL_DATA", str(tmp_path / "typo"))
    with pytest.raises(InputError, match="SSDFL_DATA"):
        locate(source())
