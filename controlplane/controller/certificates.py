"""A certificate authority for one topology: for development, and for labs without one of their own.

Everybody proves a name: the controller its own, people `operator`, each host `host:NAME`. What the peer may do follows
from it (controlplane/controller/identity.py).
"""

from __future__ import annotations

import datetime
import fcntl
import ipaddress
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.revocation_list import publish
from catchment.wire.service import (
    AUTHORITY_FILE,
    CONTROLLER_NAME,
    OPERATOR_NAME,
    REVOCATIONS_FOLDER,
    credential_files,
    host_name,
    switch_name,
)

REVOKED = "revoked"
"""The file that lists the serial numbers of certificates that count no more, in hexadecimal, one a line."""
_AUTHORITY_KEY = "ca.key"
_DAYS = 825


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one party needs for mutual TLS, PEM.

    Attributes:
        authority: certificate of the authority that everybody trusts.
        certificate: own certificate.
        key: own private key; never printed.
    """

    authority: bytes
    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Credentials(...)"


def load(folder: Path, name: str) -> Credentials:
    """The credentials of one party: NAME.crt, NAME.key and ca.crt of a folder.

    Raises:
        ControllerError: a file cannot be read.
    """
    try:
        parts = [(folder / file).read_bytes() for file in (AUTHORITY_FILE, *credential_files(name))]
    except OSError as error:
        raise ControllerError(
            f"cannot read {error.filename}: {error.strerror}; `catchment controller certificates {folder}` makes a set"
        ) from None
    return Credentials(*parts)


def make(
    folder: Path,
    hosts: Iterable[str],
    addresses: Sequence[str] = (),
    switches: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Write an authority and certificates for the controller, an operator, hosts and switches; keeps what is there.

    Waits until no other process makes or renews certificates in the folder.

    Args:
        folder: takes NAME.crt and NAME.key, the keys readable for their owner alone.
        hosts: host names.
        addresses: further IP addresses and DNS names of the controller, beside loopback.
        switches: switch name -> IP addresses and DNS names of its P4Runtime server, beside loopback.

    Returns:
        The certificates that were made.

    Raises:
        ControllerError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone_in(folder):
            authority = _authority(folder)
            served = {CONTROLLER_NAME: addresses, **{switch_name(name): at for name, at in (switches or {}).items()}}
            clients: dict[str, Sequence[str]] = {OPERATOR_NAME: (), **{host_name(host): () for host in hosts}}
            made = []
            if not (folder / REVOCATIONS_FOLDER).exists():
                _publish(folder, authority)
            for name, also in (served | clients).items():
                files = [folder / file for file in credential_files(name)]
                if not files[0].exists():
                    key = ec.generate_private_key(ec.SECP256R1())
                    _write(files[0], files[1], _issue(authority, name, key, also), key)
                    made.append(str(files[0]))
    except (OSError, ValueError) as error:
        raise ControllerError(f"cannot make certificates in {folder}: {error}") from None
    return made


def renew(folder: Path, name: str, addresses: Sequence[str] = (), *, revoke: bool = False) -> str:
    """Issue one party's certificate anew, with a new key; a controller that runs takes it over.

    Waits as `make`.

    Args:
        folder: with the authority.
        name: of the party, as in its certificate.
        addresses: as `make`.
        revoke: put the old one on the list of those that count no more.

    Returns:
        The certificate that was made.

    Raises:
        ControllerError: there is none of that name, or the folder cannot be written.
    """
    certificate, secret = (folder / file for file in credential_files(name))
    try:
        with _alone_in(folder):
            old = x509.load_pem_x509_certificate(certificate.read_bytes())
            if revoke:
                with (folder / REVOKED).open("a", encoding="ascii") as file:
                    file.write(f"{old.serial_number:x}\n")
                _publish(folder, _authority(folder))
            key = ec.generate_private_key(ec.SECP256R1())
            _write(certificate, secret, _issue(_authority(folder), name, key, addresses), key)
    except (OSError, ValueError) as error:
        raise ControllerError(f"cannot renew the certificate of {name} in {folder}: {error}") from None
    return str(certificate)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes from the folder's files: of two that make an authority, one would sign with a lost key."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def revoked(folder: Path) -> frozenset[int]:
    """Serial numbers of the certificates that count no more."""
    try:
        lines = (folder / REVOKED).read_text("ascii").split()
        return frozenset(int(line, 16) for line in lines)
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError) as error:
        raise ControllerError(f"cannot read {folder / REVOKED}: {error}; it has a serial number in each line") from None


def _publish(folder: Path, authority: _Authority) -> None:
    """Tell the switches: those of this machine read the folder, to others it is copied."""
    publish(folder / REVOCATIONS_FOLDER, authority.certificate, authority.key, revoked(folder), _DAYS)


def belong_together(credentials: Credentials) -> bool:
    """Whether a certificate is of its key: while one is replaced, the files may be of two."""
    try:
        certificate = x509.load_pem_x509_certificate(credentials.certificate)
        key = serialization.load_pem_private_key(credentials.key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return certificate.public_key() == key.public_key()


@dataclass(frozen=True, slots=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def _authority(folder: Path) -> _Authority:
    certificate, key = folder / AUTHORITY_FILE, folder / _AUTHORITY_KEY
    if certificate.exists():
        return _Authority(x509.load_pem_x509_certificate(certificate.read_bytes()), _key_in(key))
    new = ec.generate_private_key(ec.SECP256R1())
    name = _name("catchment-authority")
    built = (
        _builder(name, name, new)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(new, hashes.SHA256())
    )
    _write(certificate, key, built, new)
    return _Authority(built, new)


def _key_in(file: Path) -> ec.EllipticCurvePrivateKey:
    """The key of an authority. ValueError: it is none that can sign here, as one that somebody has brought along."""
    kind = "no key"
    with suppress(ValueError, UnsupportedAlgorithm):
        try:
            loaded = serialization.load_pem_private_key(file.read_bytes(), None)
        except TypeError:  # a password is missing
            kind = "an encrypted key"
        else:
            if isinstance(loaded, ec.EllipticCurvePrivateKey):
                return loaded
            kind = "another kind of key"
    raise ValueError(
        f"{file} has {kind}: the authority that signs here has one of an elliptic curve, without a password; make the "
        "set in another folder"
    )


def _issue(
    authority: _Authority, name: str, key: ec.EllipticCurvePrivateKey, addresses: Sequence[str]
) -> x509.Certificate:
    server = name == CONTROLLER_NAME or name.startswith(switch_name(""))
    # The controller is a client of the switches, too.
    usages = [ExtendedKeyUsageOID.SERVER_AUTH] if server else [ExtendedKeyUsageOID.CLIENT_AUTH]
    if name == CONTROLLER_NAME:
        usages.append(ExtendedKeyUsageOID.CLIENT_AUTH)
    builder = (
        _builder(_name(name), authority.certificate.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    )
    if server:
        names = [_general_name(a) for a in (name, "localhost", "127.0.0.1", *addresses)]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(authority.key, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _write(certificate: Path, secret: Path, issued: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for path, content in ((secret, pem), (certificate, issued.public_bytes(serialization.Encoding.PEM))):
        beside = path.with_name(f"{path.name}.new")
        beside.unlink(missing_ok=True)  # others may read one that is there, or it leads elsewhere
        mode = 0o600 if path == secret else 0o644
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            file.write(content)
        beside.rename(path)
