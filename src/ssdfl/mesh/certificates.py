"""A mesh's own certificate authority, and a key and certificate for every device.

The common name of its certificate identifies a device. The authority's key only makes certificates:
keep it off the devices.
"""

from __future__ import annotations

import datetime
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from ssdfl.errors import InputError
from ssdfl.files import atomic_path
from ssdfl.mesh.names import certificate_name

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

VALID_FOR = datetime.timedelta(days=825)
CLOCK_TOLERANCE = datetime.timedelta(days=1)


class Authority:
    """Makes certificates that only this mesh trusts."""

    def __init__(self, name: str = "ssdfl mesh") -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = _certificate(self._key, name, self._key, name, authority=True)

    @classmethod
    def of_folder(cls, folder: Path) -> Authority:
        """The authority whose ``authority.key`` and ``authority.pem`` are in a folder.

        Raises:
            InputError: they are not there, cannot be read, or do not belong together.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        paths = folder / "authority.key", folder / "authority.pem"
        found = cls.__new__(cls)
        try:
            check_private(paths[0])
            key = load_pem_private_key(paths[0].read_bytes(), password=None)
            found._certificate = x509.load_pem_x509_certificate(paths[1].read_bytes())
            found._key = _matching(key, found._certificate)
        except (OSError, ValueError, TypeError) as error:
            expected = "authority.key and authority.pem, as ssdfl mesh init wrote them"
            raise InputError("authority", str(folder), expected, f"({error})") from None
        names = found._certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        found._name = str(names[0].value)
        return found

    @property
    def certificate(self) -> bytes:
        """What devices check their neighbours with, as PEM."""
        return _pem(self._certificate)

    def key(self) -> bytes:
        """The authority's secret, as PEM."""
        return _key_pem(self._key)

    def issue(self, device: str) -> tuple[bytes, bytes]:
        """A new key and certificate of a device, as PEM."""
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        return _key_pem(key), self._certified(device, key)

    def certify(self, device: str, key: bytes) -> bytes:
        """A new certificate of a device for the key that it has, both as PEM.

        Raises:
            ValueError: no key, or one of another kind.
        """
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        found = load_pem_private_key(key, password=None)
        if not isinstance(found, ec.EllipticCurvePrivateKey):
            raise ValueError("the key is of another kind")
        return self._certified(device, found)

    def _certified(self, device: str, key: ec.EllipticCurvePrivateKey) -> bytes:
        return _pem(_certificate(key, device, self._key, self._name, authority=False))

    def renewed(self) -> Authority:
        """The same authority, its key and name, with a certificate that is valid from now on."""
        found = Authority.__new__(Authority)
        found._name, found._key = self._name, self._key
        found._certificate = _certificate(
            self._key, self._name, self._key, self._name, authority=True
        )
        return found


def _matching(key: object, certificate: x509.Certificate) -> ec.EllipticCurvePrivateKey:
    """A private key, if it is the one of a certificate.

    Raises:
        ValueError: it is not.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    if (
        not isinstance(key, ec.EllipticCurvePrivateKey)
        or key.public_key() != certificate.public_key()
    ):
        raise ValueError("the key is not that of the certificate")
    return key


def check_certificate(device: str, key: bytes, certificate: bytes, authority: bytes) -> None:
    """Refuse PEM files that do not belong together; neighbours would only refuse the connection.

    Raises:
        InputError: a file that is no PEM, of another device, key or authority, or out of date.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        shown = x509.load_pem_x509_certificate(certificate)
        signer = x509.load_pem_x509_certificate(authority)
        public_key = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError) as error:
        reason = str(error).split("\n", 1)[0][:80]
        raise _unfit(device, "credentials", reason, "PEM files, the key unencrypted") from None
    names = [
        str(part.value) for part in shown.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    ]
    if names != [device]:
        raise _unfit(device, "certificate.pem", ", ".join(names), f"one of {device}")
    if not isinstance(public_key, ec.EllipticCurvePublicKey):
        raise _unfit(device, "key.pem", "a key of another kind", "one on an elliptic curve")
    if public_key != shown.public_key():
        raise _unfit(device, "key.pem", "another key", "the key of certificate.pem")
    if not _is_signed_by(shown, signer):
        raise _unfit(
            device, "certificate.pem", "of another authority", "one that authority.pem signed"
        )
    _check_dates(device, "certificate.pem", shown)
    _check_dates(device, "authority.pem", signer)


def _unfit(device: str, name: str, got: str, expected: str) -> InputError:
    return InputError(
        name, got, expected, f"Put {device}'s own key.pem, certificate.pem and authority.pem."
    )


def _is_signed_by(shown: x509.Certificate, signer: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        shown.verify_directly_issued_by(signer)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def certified_key(
    certificate: bytes, authority: bytes
) -> tuple[str, ec.EllipticCurvePublicKey] | None:
    """The device a certificate names and its public key; None if the authority did not sign it."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        shown = x509.load_pem_x509_certificate(certificate)
        key = shown.public_key()
    except (ValueError, TypeError):
        return None
    names = shown.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    is_signed = _is_signed_by(shown, x509.load_pem_x509_certificate(authority))
    if not (is_signed and len(names) == 1 and isinstance(key, ec.EllipticCurvePublicKey)):
        return None
    return str(names[0].value), key


def authority_key(authority: bytes) -> ec.EllipticCurvePublicKey | None:
    """The public key of an authority's certificate in PEM; None if it is of another kind."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    key = x509.load_pem_x509_certificate(authority).public_key()
    return key if isinstance(key, ec.EllipticCurvePublicKey) else None


def sign(key: bytes, statement: bytes) -> bytes:
    """A statement's signature by a key in PEM."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    private = load_pem_private_key(key, password=None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    return private.sign(statement, ec.ECDSA(hashes.SHA256()))


def signed(key: ec.EllipticCurvePublicKey, statement: bytes, signature: bytes) -> bool:
    """Whether a signature of a statement is by the owner of a key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key.verify(signature, statement, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _check_dates(device: str, name: str, certificate: x509.Certificate) -> None:
    now = datetime.datetime.now(datetime.UTC)
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not first <= now <= last:
        validity = f"valid {first:%Y-%m-%d} to {last:%Y-%m-%d}"
        raise _unfit(device, name, validity, f"one valid today, {now:%Y-%m-%d}")


def write_secret(path: Path, secret: bytes) -> None:
    """Write a file that only its owner can read."""
    with atomic_path(path) as temporary:
        temporary.touch(mode=0o600)
        temporary.chmod(0o600)
        temporary.write_bytes(secret)


def check_private(path: Path) -> None:
    """Refuse a secret that others can read: with it, they could pose as the device.

    A file of root may be open to the device's group, as PostgreSQL has it.

    Raises:
        InputError: its permissions are too wide.
    """
    found = path.stat()
    if os.name == "posix" and _open_to_others(found.st_mode, found.st_uid, os.geteuid()):
        got = f"permissions {stat.S_IMODE(found.st_mode):03o}"
        raise InputError(str(path), got, "600, for its owner alone", f"Run: chmod 600 {path}")


def _open_to_others(mode: int, owner: int, user: int) -> bool:
    """Whether anyone but the user can read or change a file.

    Examples:
        >>> [_open_to_others(0o640, owner, user=1000) for owner in (1000, 0)]
        [True, False]
    """
    of_root = owner == 0 and user != 0
    return bool(mode & (0o027 if of_root else 0o077))


def _certificate(
    key: ec.EllipticCurvePrivateKey,
    name: str,
    signer: ec.EllipticCurvePrivateKey,
    signer_name: str,
    authority: bool,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = datetime.datetime.now(datetime.UTC)
    usage = {
        "digital_signature": not authority,
        "content_commitment": False,
        "key_encipherment": False,
        "data_encipherment": False,
        "key_agreement": False,
        "key_cert_sign": authority,
        "crl_sign": authority,
        "encipher_only": False,
        "decipher_only": False,
    }
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, signer_name)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_TOLERANCE)
        .not_valid_after(now + VALID_FOR)
        .add_extension(
            x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True
        )
        .add_extension(x509.KeyUsage(**usage), critical=True)
    )
    if not authority:
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(certificate_name(name))]), critical=False
        )
        builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
