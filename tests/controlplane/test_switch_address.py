"""How switches' addresses are spelt, in topology files and elsewhere."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from catchment.controlplane.networks.address import SwitchAddress
from catchment.controlplane.topology import Topology, TopologyError
from catchment.wire.service import CONTROLLER_NAME, OPERATOR_NAME, credential_files

TOPOLOGY = """
switches:
  s1: {{program: luwu.p4, ip: 10.0.0.254, mac: 02:00:00:00:fe:01, grpc: "{address}", target: {target}}}
hosts: {{}}
"""


@pytest.mark.parametrize(
    ("text", "target", "folder"),
    [
        ("127.0.0.1:9559", "127.0.0.1:9559", None),
        ("[::1]:9559", "[::1]:9559", None),
        ("unix:/run/s1.sock", "unix:/run/s1.sock", None),
        ("tls:/etc/certificates@s1.example:9559", "s1.example:9559", Path("/etc/certificates")),
        ("tls:/home/a@b/certs@10.0.0.1:1", "10.0.0.1:1", Path("/home/a@b/certs")),
    ],
)
def test_addresses_and_their_parts(text: str, target: str, folder: Path | None) -> None:
    address = SwitchAddress.parse(text)
    assert address is not None
    assert (address.target, address.certificates) == (target, folder)
    assert str(address) == text


@pytest.mark.parametrize(
    "text", ["", "s1", "s1:", "s1:0", "s1:65536", "s1:x", ":9559", "unix:", "tls:s1:9559", "tls:@s1:9559", "a@s1"]
)
def test_what_is_no_address(text: str) -> None:
    assert SwitchAddress.parse(text) is None


def load(folder: Path, address: str, target: str = "embedded") -> Topology:
    path = folder / "net.yaml"
    path.write_text(TOPOLOGY.format(address=address, target=target))
    return Topology.load(path)


def test_certificates_are_relative_to_the_topology_file(tmp_path: Path) -> None:
    assert load(tmp_path, "unix:/run/s1.sock").switch("s1").grpc == "unix:/run/s1.sock"
    assert load(tmp_path, "tls:certs@10.0.0.1:9559").switch("s1").grpc == f"tls:{tmp_path}/certs@10.0.0.1:9559"
    with pytest.raises(TopologyError, match=r"net.yaml:3: switches.s1.grpc: .*tls:FOLDER@host:port"):
        load(tmp_path, "tls:10.0.0.1:9559")
    with pytest.raises(TopologyError, match="BMv2 speaks no TLS"):
        load(tmp_path, "tls:certs@10.0.0.1:9559", "bmv2")


def test_who_we_are_is_the_operator_or_else_the_controller(tmp_path: Path) -> None:
    address = SwitchAddress("s1:1", tmp_path)
    for name in (CONTROLLER_NAME, OPERATOR_NAME):
        certificate, key = (tmp_path / file for file in credential_files(name))
        certificate.touch()
        files = address.files()
        assert files is not None
        assert (files.certificate, files.key) == (certificate, key)
    assert SwitchAddress("s1:1").files() is None


def test_whether_somebody_listens(tmp_path: Path) -> None:
    path = tmp_path / "s"
    unix = SwitchAddress(f"unix:{path}")
    assert not unix.is_listening()
    with socket.create_server(str(path), family=socket.AF_UNIX):
        assert unix.is_listening()
    with socket.create_server(("127.0.0.1", 0)) as server:
        tcp = SwitchAddress(f"127.0.0.1:{server.getsockname()[1]}")
        assert tcp.is_listening()
    assert not tcp.is_listening()
    assert not unix.is_listening()
