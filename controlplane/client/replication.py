"""Multicast groups and clone sessions, with every field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from catchment.controlplane.client.entity import Entity, UpdateKind
from catchment.controlplane.client.p4info import P4Info


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy: the port it leaves by, and what the program sees as `egress_rid`."""

    port: int
    instance: int = 0


@dataclass(frozen=True, slots=True)
class MulticastGroup(Entity):
    """What the replication engine does with a frame of this `mcast_grp`; as a pattern: that group, or (0) all.

    Attributes:
        metadata: bytes of the controller's own.
    """

    number: int = 0
    replicas: tuple[Replica, ...] = ()
    metadata: bytes = b""

    @classmethod
    def of_ports(cls, number: int, ports: Iterable[int]) -> MulticastGroup:
        """A group with one copy for each port, replica instance 1."""
        return cls(number, tuple(Replica(port, 1) for port in sorted(set(ports))))

    def key(self) -> str:
        return f"multicast group {self.number}"

    def subject(self) -> str:
        return "the multicast groups"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        self.select(message, p4info)
        if kind != "delete":
            out = message.packet_replication_engine_entry.multicast_group_entry
            out.metadata = self.metadata
            _add(out, self.replicas)

    def select(self, message: Any, p4info: P4Info) -> None:
        message.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = self.number

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> MulticastGroup:
        found = message.packet_replication_engine_entry.multicast_group_entry
        return cls(found.multicast_group_id, _replicas(found), found.metadata)


@dataclass(frozen=True, slots=True)
class CloneSession(Entity):
    """What becomes of a clone: copies, and how many bytes of it (0: all); as a pattern: that session, or (0) all."""

    number: int = 0
    replicas: tuple[Replica, ...] = ()
    packet_length: int = 0
    class_of_service: int = 0

    def key(self) -> str:
        return f"clone session {self.number}"

    def subject(self) -> str:
        return "the clone sessions"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        self.select(message, p4info)
        out = message.packet_replication_engine_entry.clone_session_entry
        out.packet_length_bytes, out.class_of_service = self.packet_length, self.class_of_service
        _add(out, self.replicas)

    def select(self, message: Any, p4info: P4Info) -> None:
        message.packet_replication_engine_entry.clone_session_entry.session_id = self.number

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> CloneSession:
        found = message.packet_replication_engine_entry.clone_session_entry
        return cls(found.session_id, _replicas(found), found.packet_length_bytes, found.class_of_service)


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
