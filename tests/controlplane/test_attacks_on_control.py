"""Attackers on the management network while a job runs: no payload changes, and who tried is named.

The switch is a process with mutual TLS, the endpoints and the controller are real; rows: docs/explanation/threats.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from live_job import JOB, LiveJob
from running_controller import until

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller import certificates
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.operator import OperatorClient
from catchment.wire.generated import p4runtime_pb2, p4runtime_pb2_grpc
from catchment.wire.service import AUTHORITY_FILE, OPERATOR_NAME, credential_files, host_name

_TIMEOUT = 60.0


def credentials(folder: Path, name: str) -> grpc.ChannelCredentials:
    """Those of a party as they are now, with the authority's own certificate."""
    authority = (folder / AUTHORITY_FILE).read_bytes()
    certificate, key = ((folder / file).read_bytes() for file in credential_files(name))
    return grpc.ssl_channel_credentials(authority, key, certificate)


def attack(address: str, credential: grpc.ChannelCredentials) -> set[grpc.StatusCode]:
    """Ask to be the primary, delete, read and load a program: how each ended."""
    codes = set()
    with grpc.secure_channel(address, credential) as channel:
        stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        bid = p4runtime_pb2.StreamMessageRequest()
        bid.arbitration.device_id = 1
        bid.arbitration.election_id.high = (1 << 64) - 1
        deletion = p4runtime_pb2.WriteRequest(device_id=1)
        deletion.election_id.high = (1 << 64) - 1
        deletion.updates.add(type=p4runtime_pb2.Update.DELETE).entity.table_entry.table_id = 1
        query = p4runtime_pb2.ReadRequest(device_id=1)
        query.entities.add().table_entry.table_id = 0
        load = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1)
        calls: list[Callable[[], object]] = [
            lambda: next(stub.StreamChannel(iter([bid]), timeout=_TIMEOUT)),
            lambda: stub.Write(deletion, timeout=_TIMEOUT),
            lambda: next(stub.Read(query, timeout=_TIMEOUT)),
            lambda: stub.SetForwardingPipelineConfig(load, timeout=_TIMEOUT),
        ]
        for call in calls:
            with pytest.raises(grpc.RpcError) as caught:
                call()
            codes.add(caught.value.code())
    return codes


def test_nobody_on_the_management_network_changes_a_payload(seed: int, tmp_path: Path) -> None:
    with LiveJob(seed, tls=True) as live:
        live.until_exchanged(2)
        server, folder = live.address.rpartition("@")[2], live.controller.certificates
        server = server.replace("127.0.0.1", "localhost")
        # Another authority's operator, who knows ours.
        stranger = tmp_path / "stranger"
        certificates.make(stranger, [])
        (stranger / AUTHORITY_FILE).write_bytes((folder / AUTHORITY_FILE).read_bytes())
        assert attack(server, credentials(stranger, OPERATOR_NAME)) == {grpc.StatusCode.UNAVAILABLE}
        # A member's host, with the certificate that it has for the controller.
        assert attack(server, credentials(folder, host_name("w0"))) == {grpc.StatusCode.PERMISSION_DENIED}
        refusals = [line for line in live.log().splitlines() if "refused" in line and "host:w0" in line]
        assert len(refusals) == 4, "each attempt is in the switch's log, with the name"
        # Who took an operator's files before they were revoked.
        stolen = credentials(folder, OPERATOR_NAME)
        loot = tmp_path / "loot"
        loot.mkdir()
        for file in (AUTHORITY_FILE, *credential_files(OPERATOR_NAME)):
            (loot / file).write_bytes((folder / file).read_bytes())
        certificates.renew(folder, OPERATOR_NAME, revoke=True)
        assert attack(server, stolen) == {grpc.StatusCode.UNAVAILABLE}
        with (
            OperatorClient(live.controller.address, loot, timeout=_TIMEOUT) as thief,
            pytest.raises(ControllerError, match="was revoked"),
        ):
            thief.remove(JOB)
        audit = [json.loads(line) for line in live.audit().splitlines()]
        assert [deed for deed in audit if deed["action"] == "RemoveJob" and "revoked" in deed["outcome"]]
        live.until_exchanged(3)
        assert live.wrong() == []


def test_who_may_write_to_a_switch_changes_no_payload_and_is_put_right(seed: int) -> None:
    """An operator's certificate that nobody has revoked yet: what it deletes comes back, and the audit log says so."""
    with LiveJob(seed, tls=True) as live:
        for table in ("jobs", "receivers", "bindings"):
            live.until_exchanged(2)
            with SwitchClient.connect(live.address, name="s1", timeout=_TIMEOUT) as client:
                client.delete(*client.read(table))
        live.until_exchanged(3)
        assert live.wrong() == []
        until(lambda: live.audit().count("put right") >= 3, "each damage is in the audit log")
