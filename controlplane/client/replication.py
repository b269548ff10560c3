"""Multicast groups and clone sessions, with every field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from catchment.controlplane.client.switch import SwitchClient, UpdateKind
from catchment.wire.generated import p4runtime_pb2


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy: the port it leaves by, and what the program sees as `egress_rid`."""

    port: int
    instance: int = 0


@dataclass(frozen=True, slots=True)
class MulticastGroup:
    """What the replication engine does with a frame of this `mcast_grp`."""

    number: int
    replicas: tuple[Replica, ...] = ()


@dataclass(frozen=True, slots=True)
class CloneSession:
    """What becomes of a clone: its copies, and how many bytes of it (0: all)."""

    number: int
    replicas: tuple[Replica, ...] = ()
    packet_length: int = 0
    class_of_service: int = 0


def read_groups(client: SwitchClient, number: int = 0) -> list[MulticastGroup]:
    """One group, or (0) all of them, by number."""
    query = p4runtime_pb2.Entity()
    query.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = number
    found = []
    for entity in client.read_entities(query, "reading the multicast groups"):
        message = entity.packet_replication_engine_entry.multicast_group_entry
        found.append(MulticastGroup(message.multicast_group_id, _replicas(message)))
    return sorted(found, key=lambda group: group.number)


def write_groups(client: SwitchClient, kind: UpdateKind, groups: Iterable[MulticastGroup]) -> None:
    """Insert, modify or delete groups.

    Raises:
        SwitchError: with each group that the switch refuses.
    """
    updates = []
    for group in groups:
        entity = p4runtime_pb2.Entity()
        message = entity.packet_replication_engine_entry.multicast_group_entry
        message.multicast_group_id = group.number
        _add(message, group.replicas)
        updates.append((kind, entity, f"{kind} multicast group {group.number}"))
    client.write_entities(updates)


def read_sessions(client: SwitchClient, number: int = 0) -> list[CloneSession]:
    """One clone session, or (0) all of them, by number."""
    query = p4runtime_pb2.Entity()
    query.packet_replication_engine_entry.clone_session_entry.session_id = number
    found = []
    for entity in client.read_entities(query, "reading the clone sessions"):
        message = entity.packet_replication_engine_entry.clone_session_entry
        found.append(
            CloneSession(message.session_id, _replicas(message), message.packet_length_bytes, message.class_of_service)
        )
    return sorted(found, key=lambda session: session.number)


def write_sessions(client: SwitchClient, kind: UpdateKind, sessions: Iterable[CloneSession]) -> None:
    """Insert, modify or delete clone sessions.

    Raises:
        SwitchError: with each session that the switch refuses.
    """
    updates = []
    for session in sessions:
        entity = p4runtime_pb2.Entity()
        message = entity.packet_replication_engine_entry.clone_session_entry
        message.session_id = session.number
        message.packet_length_bytes, message.class_of_service = session.packet_length, session.class_of_service
        _add(message, session.replicas)
        updates.append((kind, entity, f"{kind} clone session {session.number}"))
    client.write_entities(updates)


def _replicas(message: Any) -> tuple[Replica, ...]:
    # A switch gives a port back as it was written: a number or a byte string.
    return tuple(
        sorted(
            (
                Replica(int.from_bytes(one.port, "big") if one.HasField("port") else one.egress_port, one.instance)
                for one in message.replicas
            ),
            key=lambda replica: (replica.port, replica.instance),
        )
    )


def _add(message: Any, replicas: Iterable[Replica]) -> None:
    for replica in replicas:
        message.replicas.add(egress_port=replica.port, instance=replica.instance)
