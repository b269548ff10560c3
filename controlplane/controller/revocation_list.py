"""Certificate revocation lists (X.509), for those who read nothing else: the switches.

They lie as OpenSSL looks for them: HASH.rNUMBER, the hash of the authority's name. A server that runs finds a list of a
larger number by itself, and reads none of the same name again.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_HASH_BYTES = 4


def publish(
    folder: Path, authority: x509.Certificate, key: ec.EllipticCurvePrivateKey, serials: Iterable[int], days: int
) -> Path:
    """Write the list of an authority's certificates that count no more, beside the earlier ones.

    Args:
        folder: takes the list.
        authority: whose certificates they are.
        key: its private key.
        serials: their serial numbers.
        days: for which it counts.

    Returns:
        The file.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(mode=0o755, exist_ok=True)
    stem = _name_hash(authority.subject)
    number = sum(1 for _ in folder.glob(f"{stem}.r*"))
    now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)
    if number:  # OpenSSL takes a list only for one that is newer by a second at least
        last = x509.load_pem_x509_crl((folder / f"{stem}.r{number - 1}").read_bytes())
        now = max(now, last.last_update_utc + datetime.timedelta(seconds=1))
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.subject)
        .last_update(now)
        .next_update(now + datetime.timedelta(days=days))
        .add_extension(x509.CRLNumber(number + 1), critical=False)
    )
    for serial in sorted(serials):
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
        builder = builder.add_revoked_certificate(entry)
    path = folder / f"{stem}.r{number}"
    beside = folder / f"new-{path.name}"
    beside.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return beside.rename(path)


def _name_hash(name: x509.Name) -> str:
    """X509_NAME_hash of a name that is one common name: of its canonical form, which is in lower case."""
    (common,) = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    canonical = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, " ".join(str(common.value).lower().split()))])
    relative = canonical.public_bytes()[2:]  # without the head of the sequence, whose length takes one byte
    digest = hashlib.sha1(relative, usedforsecurity=False).digest()
    return digest[:_HASH_BYTES][::-1].hex()
