"""Files of a certificate authority: a private key is its owner's alone, whatever lay there before."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509 import load_pem_x509_certificate

from catchment.controlplane.controller import certificates
from catchment.controlplane.controller.certificates import belong_together, load, make, renew
from catchment.controlplane.controller.errors import ControllerError
from catchment.wire.service import CONTROLLER_NAME, credential_files


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Names that new keys have until they are whole, of one authority with a host."""
    make(tmp_path / "first", ["w0"])
    found = [f"{path.name}.new" for path in sorted((tmp_path / "first").glob("*.key"))]
    assert len(found) == 4
    return found


def test_who_has_a_file_open_reads_no_key(tmp_path: Path, names: list[str]) -> None:
    folder = tmp_path / "certificates"
    folder.mkdir()
    watched = []
    for name in names:
        (folder / name).write_text("left by another process")
        (folder / name).chmod(0o666)
        watched.append((folder / name).open("rb"))
    make(folder, ["w0"])
    renew(folder, "operator")
    for file in watched:
        with file:
            assert file.read() == b"left by another process"
            assert os.fstat(file.fileno()).st_nlink == 0
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.glob("*.key"))
    assert not list(folder.glob("*.new"))
    assert belong_together(load(folder, "operator"))


def test_a_key_is_not_written_where_a_link_leads(tmp_path: Path, names: list[str]) -> None:
    folder, elsewhere = tmp_path / "certificates", tmp_path / "elsewhere"
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(elsewhere)
    make(folder, ["w0"])
    assert not elsewhere.exists()
    assert not any(path.is_symlink() for path in folder.iterdir())


def _is_held(folder: Path) -> bool:
    """Whether nobody else may make certificates in the folder now."""
    other = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(other)
    return False


def test_one_process_at_a_time_makes_and_renews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[str, bool]] = []

    def watched(name: str) -> None:
        step: Callable[..., Any] = getattr(certificates, name)

        def call(*given: Any) -> Any:
            steps.append((name, _is_held(tmp_path)))
            return step(*given)

        monkeypatch.setattr(certificates, name, call)

    for name in ("_authority", "_issue", "_write", "publish"):
        watched(name)
    make(tmp_path, ["w0"])
    assert {name for name, _ in steps} == {"_authority", "_issue", "_write", "publish"}
    renew(tmp_path, "host:w0", revoke=True)
    assert all(held for _, held in steps)
    assert not _is_held(tmp_path)


def test_all_who_make_a_folder_at_once_find_one_authority(tmp_path: Path) -> None:
    hosts = [f"w{number}" for number in range(8)]
    folder, together = tmp_path / "certificates", threading.Barrier(len(hosts))

    def make_one(host: str) -> None:
        together.wait()
        make(folder, [host])

    with ThreadPoolExecutor(len(hosts)) as threads:
        list(threads.map(make_one, hosts))
    authority = load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    made = sorted(folder.glob("*.crt"))
    assert len(made) == len(hosts) + 3
    for path in made:
        load_pem_x509_certificate(path.read_bytes()).verify_directly_issued_by(authority)


def _pem(key: Any, password: bytes | None = None) -> bytes:
    hidden = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    pem: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)
    return pem


@pytest.mark.parametrize(
    ("kind", "pem"),
    [
        ("another kind of key", _pem(ed25519.Ed25519PrivateKey.generate())),
        ("an encrypted key", _pem(ec.generate_private_key(ec.SECP256R1()), b"secret")),
        ("no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
    ],
    ids=["another", "encrypted", "none"],
)
def test_an_authority_that_cannot_sign_here_is_an_error(tmp_path: Path, kind: str, pem: bytes) -> None:
    make(tmp_path, [])
    (tmp_path / "ca.key").write_bytes(pem)
    for sign in (lambda: make(tmp_path, ["w0"]), lambda: renew(tmp_path, "operator")):
        with pytest.raises(ControllerError, match=f"ca.key has {kind}: .*elliptic curve"):
            sign()
    _, secret = credential_files(CONTROLLER_NAME)
    (tmp_path / secret).write_bytes(pem)
    assert not belong_together(load(tmp_path, CONTROLLER_NAME))
