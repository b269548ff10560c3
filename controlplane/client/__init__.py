"""P4Runtime client: names and readable values on any target (see docs/explanation/p4runtime-client.md)."""

from catchment.controlplane.client.aio import AsyncSwitchClient
from catchment.controlplane.client.cells import CounterCell, DirectCounterCell, MeterCell, RegisterCell
from catchment.controlplane.client.digests import Digest, DigestList
from catchment.controlplane.client.entity import Entity, Update
from catchment.controlplane.client.entries import Choice, TableEntry
from catchment.controlplane.client.errors import SwitchError, UpdateFailure
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.packets import PacketIn, PacketOut
from catchment.controlplane.client.profiles import GroupMember, Member, MemberGroup
from catchment.controlplane.client.replication import CloneSession, MulticastGroup, Replica
from catchment.controlplane.client.switch import SwitchClient
from catchment.controlplane.client.value_sets import ValueSet

__all__ = [
    "AsyncSwitchClient",
    "Choice",
    "CloneSession",
    "CounterCell",
    "Digest",
    "DigestList",
    "DirectCounterCell",
    "Entity",
    "GroupMember",
    "Member",
    "MemberGroup",
    "MeterCell",
    "MulticastGroup",
    "P4Info",
    "PacketIn",
    "PacketOut",
    "RegisterCell",
    "Replica",
    "SwitchClient",
    "SwitchError",
    "TableEntry",
    "Update",
    "UpdateFailure",
    "ValueSet",
]
