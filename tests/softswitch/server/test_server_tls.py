"""Mutual TLS: who gets in, with what certificate, and for how long."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from raw_client import RawClient
from server_programs import Program

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.controller import certificates
from catchment.sim.lab.switch_process import embedded_command
from catchment.softswitch.admin import SwitchAdmin
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2
from catchment.wire.service import (
    AUTHORITY_FILE,
    CONTROLLER_NAME,
    OPERATOR_NAME,
    REVOCATIONS_FOLDER,
    credential_files,
    host_name,
)

LOOPBACK = "127.0.0.1:0"  # any free port
TIMEOUT = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An authority's certificates: the controller, an operator, host w0 and switch s1."""
    made = tmp_path / "certificates"
    certificates.make(made, ["w0"], switches={"s1": ["10.0.0.254"]})
    return made


@pytest.fixture
def switch(folder: Path, start: Callable[..., SwitchProcess], kinds: Program) -> SwitchProcess:
    """A switch as `switch run` and `net up` start it at a tls: address."""
    options = embedded_command(f"tls:{folder}@127.0.0.1:1", 1, {}, "s1")
    return start(
        grpc=LOOPBACK,
        program=kinds.shared_object,
        p4info=kinds.p4info_file,
        extra=tuple(options[options.index("--tls-cert") :]),
    )


def credentials(folder: Path, name: str | None) -> grpc.ChannelCredentials:
    authority = (folder / AUTHORITY_FILE).read_bytes()
    if name is None:
        return grpc.ssl_channel_credentials(authority)
    certificate, key = ((folder / file).read_bytes() for file in credential_files(name))
    return grpc.ssl_channel_credentials(authority, key, certificate)


def code_for(address: str, credential: grpc.ChannelCredentials | None) -> grpc.StatusCode | None:
    """How a call ends; None: well."""
    with RawClient(address, credentials=credential) as client:
        try:
            client.stub.Capabilities(p4runtime_pb2.CapabilitiesRequest(), timeout=TIMEOUT)
        except grpc.RpcError as error:
            return error.code()  # type: ignore[no-any-return]
    return None


def test_who_gets_in(switch: SwitchProcess, folder: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    certificates.make(stranger, [])
    (stranger / AUTHORITY_FILE).write_bytes((folder / AUTHORITY_FILE).read_bytes())
    assert code_for(switch.address, credentials(folder, OPERATOR_NAME)) is None
    assert code_for(switch.address, credentials(folder, CONTROLLER_NAME)) is None
    for nobody in (None, credentials(folder, None), credentials(stranger, OPERATOR_NAME)):
        assert code_for(switch.address, nobody) == grpc.StatusCode.UNAVAILABLE


def test_a_members_certificate_opens_no_switch(switch: SwitchProcess, folder: Path) -> None:
    """The hosts' certificates are of the same authority, for the controller alone."""
    member = credentials(folder, host_name("w0"))
    assert code_for(switch.address, member) == grpc.StatusCode.PERMISSION_DENIED
    with RawClient(switch.address, credentials=member) as client:
        for call in (client.read, client.write, client.get_pipeline, client.arbitrate):
            with pytest.raises(grpc.RpcError) as caught:
                call()
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
            assert "host:w0" in caught.value.details()


def test_the_control_plane_speaks_tls(switch: SwitchProcess, folder: Path, kinds: Program, tmp_path: Path) -> None:
    port = switch.address.rpartition(":")[2]
    with SwitchClient.connect(f"tls:{folder}@127.0.0.1:{port}", name="s1", timeout=TIMEOUT) as client:
        assert {table.preamble.id for table in kinds.p4info.tables} == {
            table.preamble.id for table in client.p4info.message.tables
        }
    with pytest.raises(SwitchError, match="cannot read"):
        SwitchClient.connect(f"tls:{tmp_path}@127.0.0.1:{port}", timeout=TIMEOUT)
    with pytest.raises(SwitchError, match="is no switch's address"):
        SwitchClient.connect(f"tls:127.0.0.1:{port}", timeout=TIMEOUT)


def test_a_switch_proves_its_name(start: Callable[..., SwitchProcess], folder: Path) -> None:
    """A member's certificate does not make its host a switch."""
    certificate, key = (str(folder / file) for file in credential_files(host_name("w0")))
    fake = start(grpc=LOOPBACK, extra=("--tls-cert", certificate, "--tls-key", key))
    with pytest.raises(SwitchError, match="no P4Runtime server answers"):
        SwitchClient.connect(f"tls:{folder}@{fake.address}", timeout=2.0)


def test_a_stolen_old_certificate_is_worthless_after_a_rotation(
    switch: SwitchProcess, folder: Path, tmp_path: Path
) -> None:
    """The switch reads the files again by itself."""
    stolen = credentials(folder, OPERATOR_NAME)
    assert code_for(switch.address, stolen) is None
    fresh = tmp_path / "fresh"
    certificates.make(fresh, ["w0"], switches={"s1": ["10.0.0.254"]})
    shutil.rmtree(folder / REVOCATIONS_FOLDER)  # lists of the old authority
    for file in fresh.iterdir():
        file.replace(folder / file.name)
    while code_for(switch.address, credentials(folder, OPERATOR_NAME)) is not None:
        assert switch.is_alive()
    assert code_for(switch.address, stolen) == grpc.StatusCode.UNAVAILABLE


def test_a_certificate_that_the_controller_revokes_opens_no_switch(switch: SwitchProcess, folder: Path) -> None:
    """`controller certificates --renew operator --revoke`, twice, while the switch runs."""
    for _ in range(2):
        stolen = credentials(folder, OPERATOR_NAME)
        assert code_for(switch.address, stolen) is None
        certificates.renew(folder, OPERATOR_NAME, revoke=True)
        assert code_for(switch.address, stolen) == grpc.StatusCode.UNAVAILABLE
        assert code_for(switch.address, credentials(folder, OPERATOR_NAME)) is None
    assert code_for(switch.address, credentials(folder, CONTROLLER_NAME)) is None


def test_revocation_lists_lie_where_openssl_looks(folder: Path) -> None:
    lists = folder / REVOCATIONS_FOLDER
    certificates.renew(folder, OPERATOR_NAME, revoke=True)
    names = {path.name for path in lists.iterdir()}
    said = subprocess.run(
        ["openssl", "x509", "-in", str(folder / AUTHORITY_FILE), "-noout", "-subject_hash"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    assert names == {f"{said}.r0", f"{said}.r1"}


def test_each_failed_handshake_is_counted_and_named(
    folder: Path, start: Callable[..., SwitchProcess], tmp_path: Path
) -> None:
    options = embedded_command(f"tls:{folder}@127.0.0.1:1", 1, {}, "s1")
    admin = tmp_path / "admin"
    switch = start(grpc=LOOPBACK, extra=("--admin", str(admin), *options[options.index("--tls-cert") :]))
    other = tmp_path / "other"
    certificates.make(other, [])
    (other / AUTHORITY_FILE).write_bytes((folder / AUTHORITY_FILE).read_bytes())
    stolen = credentials(folder, OPERATOR_NAME)
    assert code_for(switch.address, stolen) is None
    certificates.renew(folder, OPERATOR_NAME, revoke=True)
    attempts = {
        "certificate revoked": stolen,
        "certificate signature failure": credentials(other, OPERATOR_NAME),
        "peer did not return a certificate": credentials(folder, None),
        "wrong version number": None,  # no TLS at all
    }
    with SwitchAdmin(admin) as asked:
        for number, credential in enumerate(attempts.values(), 1):
            assert code_for(switch.address, credential) == grpc.StatusCode.UNAVAILABLE
            assert asked.clients()["failed_handshakes"] == number
        assert code_for(switch.address, credentials(folder, OPERATOR_NAME)) is None
        assert asked.clients()["failed_handshakes"] == len(attempts)
    switch.stop(grace=60)
    lines = [line for line in switch.output.splitlines() if "failed the TLS handshake" in line]
    assert len(lines) == len(attempts)
    for why, line in zip(attempts, lines, strict=True):
        assert f"({why})" in line and "127.0.0.1 port" in line
    assert "BEGIN" not in switch.output, "no certificate and no key is logged"
