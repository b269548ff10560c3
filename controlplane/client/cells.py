"""Cells of counters, registers and meters: each takes `modify` alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catchment.controlplane.client.encoding import fill_entry
from catchment.controlplane.client.entity import Entity, UpdateKind
from catchment.controlplane.client.entries import TableEntry, from_message, meter_values
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.values import from_data, to_data
from catchment.wire.generated import p4runtime_pb2


@dataclass(frozen=True, slots=True)
class CounterCell(Entity):
    """A cell of a counter, with what it counted; as a pattern: that cell, or (None) all of the counter."""

    counter: str
    index: int | None = None
    packets: int = 0
    bytes: int = 0

    def key(self) -> str:
        return f"counter {self.counter}[{self.index}]"

    def subject(self) -> str:
        return f"counter {self.counter}"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        self.select(message, p4info)
        data = message.counter_entry.data
        data.packet_count, data.byte_count = self.packets, self.bytes
        data.SetInParent()

    def select(self, message: Any, p4info: P4Info) -> None:
        message.counter_entry.counter_id = p4info.find("counter", self.counter).preamble.id
        if self.index is not None:
            message.counter_entry.index.index = self.index

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> CounterCell:
        found = message.counter_entry
        name = p4info.short_name("counter", p4info.by_id(found.counter_id).preamble.name)
        return cls(name, found.index.index, found.data.packet_count, found.data.byte_count)


@dataclass(frozen=True, slots=True)
class DirectCounterCell(Entity):
    """The counter of one table entry; as a pattern: of that entry, or (no key) of all of the table."""

    entry: TableEntry
    packets: int = 0
    bytes: int = 0

    def key(self) -> str:
        return f"the counter of {self.entry.key()}"

    def subject(self) -> str:
        return f"the direct counters of {self.entry.table}"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        out = message.direct_counter_entry
        fill_entry(self.entry, out.table_entry, p4info, with_action=False)
        out.data.packet_count, out.data.byte_count = self.packets, self.bytes
        out.data.SetInParent()

    def select(self, message: Any, p4info: P4Info) -> None:
        out = message.direct_counter_entry.table_entry
        if self.entry.match:
            fill_entry(self.entry, out, p4info, with_action=False)
        out.table_id = p4info.find("table", self.entry.table).preamble.id

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> DirectCounterCell:
        found = message.direct_counter_entry
        entry = p4runtime_pb2.TableEntry()
        entry.CopyFrom(found.table_entry)
        entry.counter_data.CopyFrom(found.data)
        return cls(from_message(entry, p4info), found.data.packet_count, found.data.byte_count)


@dataclass(frozen=True, slots=True)
class RegisterCell(Entity):
    """A cell of a register; as a pattern: that cell, or (None) all of the register. Not over BMv2's P4Runtime."""

    register: str
    index: int | None = None
    value: int = 0

    def key(self) -> str:
        return f"{self.register}[{self.index}]"

    def subject(self) -> str:
        return f"register {self.register}"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        self.select(message, p4info)
        spec = p4info.plain_type(p4info.find("register", self.register).type_spec)
        message.register_entry.data.CopyFrom(to_data(self.value, spec, self.key()))

    def select(self, message: Any, p4info: P4Info) -> None:
        message.register_entry.register_id = p4info.find("register", self.register).preamble.id
        if self.index is not None:
            message.register_entry.index.index = self.index

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> RegisterCell:
        found = message.register_entry
        info = p4info.by_id(found.register_id)
        value = from_data(found.data, p4info.plain_type(info.type_spec))
        return cls(p4info.short_name("register", info.preamble.name), found.index.index, value)


@dataclass(frozen=True, slots=True)
class MeterCell(Entity):
    """A cell of a meter; as a pattern: that cell, or (None) all of the meter.

    Attributes:
        meter: name of the meter.
        index: which cell.
        config: cir, cburst, pir, pburst; empty: the cell marks everything green.
    """

    meter: str
    index: int | None = None
    config: Mapping[str, int] = field(default_factory=dict)

    def key(self) -> str:
        return f"meter {self.meter}[{self.index}]"

    def subject(self) -> str:
        return f"meter {self.meter}"

    def fill(self, message: Any, p4info: P4Info, kind: UpdateKind) -> None:
        self.select(message, p4info)
        if self.config:
            message.meter_entry.config.CopyFrom(p4runtime_pb2.MeterConfig(**self.config))

    def select(self, message: Any, p4info: P4Info) -> None:
        message.meter_entry.meter_id = p4info.find("meter", self.meter).preamble.id
        if self.index is not None:
            message.meter_entry.index.index = self.index

    @classmethod
    def decode(cls, message: Any, p4info: P4Info) -> MeterCell:
        found = message.meter_entry
        name = p4info.short_name("meter", p4info.by_id(found.meter_id).preamble.name)
        return cls(name, found.index.index, meter_values(found.config) if found.HasField("config") else {})
