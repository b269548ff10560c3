"""Putting a program on a switch: P4Info plus the target's own device configuration."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import grpc

from catchment.controlplane.client.errors import SwitchError, from_rpc
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.session import Session
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.wire.generated import p4runtime_pb2

_NO_GROUPS = (
    grpc.StatusCode.FAILED_PRECONDITION,  # no pipeline yet
    grpc.StatusCode.UNIMPLEMENTED,  # BMv2 has no read of clone sessions
    grpc.StatusCode.NOT_FOUND,
)


def push(session: Session, config: PipelineConfig) -> P4Info:
    """Replace the program of a switch; tables, groups and registers start empty.

    BMv2 keeps its replication engine over a new pipeline (every packet would then be copied twice),
    so groups and clone sessions are removed first.

    Raises:
        SwitchError: a file is missing, or the switch refuses the program.
    """
    info = _loaded(config.p4info, config.p4info.stat().st_mtime_ns if config.p4info.exists() else 0)
    if not config.device_config.is_file():
        raise SwitchError(f"no compiled program at {config.device_config}; run `catchment p4 compile` first")
    clear_replication(session)
    request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
        device_id=session.device_id,
        action=p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
    )
    request.election_id.high, request.election_id.low = session.election_id
    request.config.p4info.CopyFrom(info.message)
    request.config.p4_device_config = config.device_config.read_bytes()
    request.config.cookie.cookie = config.cookie()
    try:
        session.stub.SetForwardingPipelineConfig(request)
    except grpc.RpcError as error:
        raise from_rpc(session.where, f"loading {config.device_config.name}", error) from None
    return info


@lru_cache(maxsize=16)
def _loaded(path: Path, _modified: int) -> P4Info:
    """Reading P4Info takes longer than loading the program: a switch that restarts gets it from here."""
    return P4Info.load(path)


def loaded_cookie(session: Session) -> int | None:
    """The cookie of the program that a switch runs; None when it has no program.

    Raises:
        SwitchError: it does not answer.
    """
    request = p4runtime_pb2.GetForwardingPipelineConfigRequest(
        device_id=session.device_id,
        response_type=p4runtime_pb2.GetForwardingPipelineConfigRequest.COOKIE_ONLY,
    )
    try:
        reply = session.stub.GetForwardingPipelineConfig(request)
    except grpc.RpcError as error:
        if error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND):
            return None
        raise from_rpc(session.where, "reading which program it runs", error) from None
    return int(reply.config.cookie.cookie) or None


def clear_replication(session: Session) -> None:
    """Delete every multicast group and clone session; a switch without a pipeline has none."""
    updates = []
    for kind in ("multicast_group_entry", "clone_session_entry"):
        entity = p4runtime_pb2.Entity()
        getattr(entity.packet_replication_engine_entry, kind).SetInParent()
        try:
            updates += [
                p4runtime_pb2.Update(type=p4runtime_pb2.Update.DELETE, entity=found) for found in session.read(entity)
            ]
        except grpc.RpcError as error:
            if error.code() not in _NO_GROUPS:
                raise from_rpc(session.where, "reading the replication engine", error) from None
    if not updates:
        return
    try:
        session.write(p4runtime_pb2.WriteRequest(updates=updates).SerializeToString())
    except grpc.RpcError as error:
        raise from_rpc(session.where, "clearing the replication engine", error) from None
