"""Mutual TLS: who gets in, with what certificate, and for how long."""

from __future__ import annotations

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
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2
from catchment.wire.service import AUTHORITY_FILE, CONTROLLER_NAME, OPERATOR_NAME, credential_files, host_name

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
    for file in fresh.iterdir():
        file.replace(folder / file.name)
    while code_for(switch.address, credentials(folder, OPERATOR_NAME)) is not None:
        assert switch.is_alive()
    assert code_for(switch.address, stolen) == grpc.StatusCode.UNAVAILABLE


def test_a_revoked_certificate_is_refused(start: Callable[..., SwitchProcess], folder: Path, tmp_path: Path) -> None:
    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=tmp_path)

    (tmp_path / "index.txt").touch()
    (tmp_path / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=a\n[a]\ndatabase={tmp_path}/index.txt\ndefault_md=sha256\ndefault_crl_days=30\n"
        f"certificate={folder}/ca.crt\nprivate_key={folder}/ca.key\n"
    )
    revoked = tmp_path / "revoked"
    revoked.mkdir()
    openssl("ca", "-config", "ca.cnf", "-revoke", f"{folder}/{credential_files(OPERATOR_NAME)[0]}")
    openssl("ca", "-config", "ca.cnf", "-gencrl", "-out", f"{revoked}/catchment.crl.pem")
    openssl("rehash", str(revoked))
    options = embedded_command(f"tls:{folder}@127.0.0.1:1", 1, {}, "s1")
    switch = start(grpc=LOOPBACK, extra=(*options[options.index("--tls-cert") :], "--tls-crl-dir", str(revoked)))
    assert code_for(switch.address, credentials(folder, CONTROLLER_NAME)) is None
    assert code_for(switch.address, credentials(folder, OPERATOR_NAME)) == grpc.StatusCode.UNAVAILABLE
