"""Certificates that neighbours would refuse are refused with a reason."""

import re
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from ssdfl.errors import InputError
from ssdfl.mesh import certificates
from ssdfl.mesh.certificates import Authority, check_certificate, check_private, write_secret
from ssdfl.mesh.mesh_pb2 import Ping, Request, Response, Status
from ssdfl.mesh.set_up import credentials_of
from ssdfl.mesh.transport import GrpcTransport

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
DAY = timedelta(days=1)


def test_a_certificate_is_good_today():
    authority = Authority()
    check_certificate("a", *authority.issue("a"), authority.certificate)


@pytest.mark.parametrize(
    ("tolerance", "valid_for"), [(2 * DAY, -DAY), (-DAY, 2 * DAY)], ids=["expired", "not yet valid"]
)
def test_a_certificate_out_of_date_is_refused(tolerance, valid_for, monkeypatch):
    authority = Authority()
    monkeypatch.setattr(certificates, "CLOCK_TOLERANCE", tolerance)
    monkeypatch.setattr(certificates, "VALID_FOR", valid_for)
    with pytest.raises(InputError, match="^certificate.pem = valid .* expected one valid today"):
        check_certificate("a", *authority.issue("a"), authority.certificate)


def test_an_authority_that_expired_is_refused(monkeypatch):
    with monkeypatch.context() as past:
        past.setattr(certificates, "VALID_FOR", -DAY / 2)
        authority = Authority()
    with pytest.raises(InputError, match="^authority.pem = valid .* expected one valid today"):
        check_certificate("a", *authority.issue("a"), authority.certificate)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o666, 0o777])
def test_a_key_that_others_can_read_is_refused(tmp_path, mode):
    path = tmp_path / "key.pem"
    write_secret(path, b"secret")
    check_private(path)
    path.chmod(mode)
    with pytest.raises(
        InputError, match=f"key.pem = permissions {mode:o}: expected 600.* chmod 600 {path}"
    ):
        check_private(path)
    path.chmod(0o400)
    check_private(path)


def of_openssl(folder, name, commands):
    """Run the page's commands, for a device of some name."""
    shown = name.replace(" ", "-x20")
    commands = commands.replace("New York", name).replace("New-x20York", shown)
    subprocess.run(["sh", "-ec", commands], cwd=folder, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_certificates_by_the_page_connect_two_devices(tmp_path):
    commands = re.search(r"^openssl.*?(?=^```)", PAGE.read_text(encoding="utf-8"), re.M | re.S)[0]
    folders = {name: tmp_path / name for name in ("New York", "Rome")}
    authority = commands.index("openssl ecparam", 1)
    for name, folder in folders.items():
        folder.mkdir()
        if name == "Rome":  # the same authority
            for file in ("ca.key", "authority.pem"):
                shutil.copy(folders["New York"] / file, folder)
        of_openssl(folder, name, commands if name != "Rome" else commands[authority:])
    own = {name: credentials_of(folder, name) for name, folder in folders.items()}
    rome = GrpcTransport("127.0.0.1:0", {"New York": ""}, own["Rome"])
    rome.start(lambda name, _: Response(status=Status(plan_digest=name)))
    york = GrpcTransport("", {"Rome": f"127.0.0.1:{rome.port}"}, own["New York"])
    york.start(lambda *_: Response())
    try:
        assert york.ask("Rome", Request(ping=Ping()), 20).status.plan_digest == "New York"
    finally:
        york.stop()
        rome.stop()


def test_a_key_that_cannot_sign_for_the_mesh_is_refused():
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    authority = Authority()
    _, certificate = authority.issue("a")
    key = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with pytest.raises(InputError, match="key.pem = a key of another kind: .* elliptic curve"):
        check_certificate("a", key, certificate, authority.certificate)
