"""Certificates that neighbours would refuse are refused with a reason."""

from datetime import timedelta

import pytest

from ssdfl.errors import InputError
from ssdfl.mesh import certificates
from ssdfl.mesh.certificates import Authority, check_certificate, check_private, write_secret

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
