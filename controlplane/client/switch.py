"""One switch through P4Runtime, whatever target it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import grpc

from catchment.controlplane.client import entries, pipeline
from catchment.controlplane.client.entries import TableEntry
from catchment.controlplane.client.errors import SwitchError, from_rpc, from_write
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.pipeline import PipelineConfig
from catchment.controlplane.client.session import Session
from catchment.controlplane.client.values import Value, from_data, to_data
from catchment.wire.generated import p4runtime_pb2

UpdateKind = Literal["insert", "modify", "delete"]
_BATCH = 64
"""Updates in a request: gRPC carries the refused ones in at most 16 KiB of metadata."""


@dataclass(frozen=True, slots=True)
class CounterValue:
    """One cell of an indirect counter."""

    index: int
    packets: int
    bytes: int


class SwitchClient:
    """Tables, groups, counters and registers of one switch, by the names of its P4Info.

    Use as a context manager; every request has a deadline and raises `SwitchError`.
    """

    def __init__(self, session: Session, p4info: P4Info | None) -> None:
        self._session = session
        self._p4info = p4info

    @classmethod
    def connect(
        cls,
        address: str,
        device_id: int = 1,
        *,
        name: str | None = None,
        p4info: P4Info | Path | None = None,
        timeout: float = 5.0,
        read_only: bool = False,
    ) -> Self:
        """Connect to a switch.

        Args:
            address: gRPC address, ``host:port``.
            device_id: P4Runtime device id.
            name: the switch's name, for messages; the address when left out.
            p4info: the program's P4Info; asked from the switch when left out.
            timeout: seconds for the connection and for each request.
            read_only: do not take the switch over from its controller; writes then fail.

        Raises:
            SwitchError: nothing answers there in time, or the switch refuses.
        """
        where = f"switch {name} ({address})" if name else f"switch at {address}"
        info = P4Info.load(p4info) if isinstance(p4info, Path) else p4info
        session = Session(where, device_id, address, timeout=timeout, primary=not read_only)
        return cls(session, info)

    def close(self) -> None:
        """Close the connection; the switch keeps its entries."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def where(self) -> str:
        """The switch in words, for messages."""
        return self._session.where

    @property
    def p4info(self) -> P4Info:
        """The P4Info of the program; asked from the switch on first use."""
        if self._p4info is None:
            try:
                message = self._session.p4info()
            except grpc.RpcError as error:
                raise from_rpc(self.where, "reading its P4Info", error) from None
            if not message.tables and not message.pkg_info.name:
                raise SwitchError(f"{self.where} has no program yet; push a pipeline first")
            self._p4info = P4Info(message, self.where)
        return self._p4info

    def push_pipeline(self, config: PipelineConfig) -> None:
        """Load a compiled program; everything on the switch starts empty (see `pipeline.push`)."""
        self._p4info = pipeline.push(self._session, config)

    def runs(self, config: PipelineConfig) -> bool:
        """Whether the switch runs this very program, as far as it was loaded by `push_pipeline`."""
        return pipeline.loaded_cookie(self._session) == config.cookie()

    def call_when_lost(self, callback: Callable[[], None]) -> None:
        """Call once, from another thread, when the switch ends its control stream: it died or was cut off."""
        self._session.call_at_end(callback)

    # Tables

    def insert(self, *new: TableEntry) -> None:
        """Insert entries; raises `SwitchError` with each refused one (the others stay)."""
        self._write_entries("insert", new)

    def modify(self, *changed: TableEntry) -> None:
        """Change the action of entries that exist."""
        self._write_entries("modify", changed)

    def delete(self, *old: TableEntry) -> None:
        """Delete entries by table, key and priority."""
        self._write_entries("delete", old)

    def set_default(self, table: str, action: str, params: Mapping[str, Value]) -> None:
        """Set the default action of a table."""
        self.modify(TableEntry(table, {}, action, params, is_default=True))

    def reset_default(self, table: str) -> None:
        """Give a table the default action of its program back."""
        query = self._table_query(table)
        query.table_entry.is_default_action = True
        self.write_entities([("modify", query, f"reset {table}[default]")])

    def key(self, entry: TableEntry) -> bytes:
        """What tells an entry from others of this switch, however its values are spelled."""
        message = entries.to_message(entry, self.p4info, with_action=False)
        return bytes(message.SerializeToString(deterministic=True))

    def value(self, entry: TableEntry) -> bytes:
        """Key, action and parameters, however they are spelled."""
        return bytes(entries.to_message(entry, self.p4info).SerializeToString(deterministic=True))

    def read(self, table: str | None = None) -> list[TableEntry]:
        """The entries of one table, or of all; direct counters where the table has them."""
        names = [table] if table is not None else self.p4info.names("table")
        return [entry for name in names for entry in self._read_table(name)]

    def read_own(self, table: str) -> list[TableEntry]:
        """The entries of a table that a control plane wrote: not those that the program itself fixes."""
        if self.p4info.find("table", table).is_const_table:
            return []  # not every target marks them
        return [entry for entry in self.read(table) if not entry.is_const]

    def read_default(self, table: str) -> TableEntry | None:
        """The default action of a table, or None when the target reports none."""
        query = self._table_query(table)
        query.table_entry.is_default_action = True
        for entity in self.read_entities(query, f"reading the default action of {table}"):
            return entries.from_message(entity.table_entry, self.p4info)
        return None

    def direct_counters(self, table: str) -> list[TableEntry]:
        """Keys of a table with the packets and bytes that hit each of them."""
        query = p4runtime_pb2.Entity()
        info = self.p4info.find("table", table)
        query.direct_counter_entry.table_entry.table_id = info.preamble.id
        found = []
        for entity in self.read_entities(query, f"reading the direct counters of {table}"):
            message = entity.direct_counter_entry.table_entry
            message.counter_data.CopyFrom(entity.direct_counter_entry.data)
            found.append(entries.from_message(message, self.p4info))
        return found

    def _table_query(self, table: str) -> Any:
        query = p4runtime_pb2.Entity()
        query.table_entry.table_id = self.p4info.find("table", table).preamble.id
        return query

    def _read_table(self, table: str) -> Iterator[TableEntry]:
        query = self._table_query(table)
        counted = any(
            self.p4info.message.direct_counters[i].direct_table_id == query.table_entry.table_id
            for i in range(len(self.p4info.message.direct_counters))
        )
        if counted:
            query.table_entry.counter_data.SetInParent()
        if any(meter.direct_table_id == query.table_entry.table_id for meter in self.p4info.message.direct_meters):
            query.table_entry.meter_config.SetInParent()
        for entity in self.read_entities(query, f"reading table {table}"):
            if not entity.table_entry.is_default_action:
                yield entries.from_message(entity.table_entry, self.p4info)

    def _write_entries(self, kind: UpdateKind, items: Sequence[TableEntry]) -> None:
        # Filled in place: a copy of a message costs as much as making it. All are made before the first is sent.
        number = p4runtime_pb2.Update.Type.Value(kind.upper())
        requests = []
        for start in range(0, len(items), _BATCH):
            batch = items[start : start + _BATCH]
            request = p4runtime_pb2.WriteRequest()
            for item in batch:
                update = request.updates.add(type=number)
                entries.to_message(item, self.p4info, with_action=kind != "delete", into=update.entity.table_entry)
            requests.append((request, [f"{kind} {item.key()}" for item in batch]))
        for request, words in requests:
            self._write_batch(request, words)

    # Multicast groups

    def set_group(self, group: int, ports: Iterable[int]) -> None:
        """Create or replace a multicast group.

        Args:
            group: group id, at least 1.
            ports: egress ports; a copy for each, replica instance 1.
        """
        self.set_groups({group: ports})

    def set_groups(self, groups: Mapping[int, Iterable[int]]) -> None:
        """Create or replace multicast groups, each with its egress ports."""
        if not groups:
            return
        existing = self.groups()
        updates: list[tuple[UpdateKind, Any, str]] = []
        for group, ports in groups.items():
            entity = p4runtime_pb2.Entity()
            message = entity.packet_replication_engine_entry.multicast_group_entry
            message.multicast_group_id = group
            for port in sorted(set(ports)):
                message.replicas.add(egress_port=port, instance=1)
            kind: UpdateKind = "modify" if group in existing else "insert"
            updates.append((kind, entity, f"{kind} multicast group {group}"))
        self.write_entities(updates)

    def delete_group(self, group: int) -> None:
        """Delete a multicast group."""
        self.delete_groups([group])

    def delete_groups(self, groups: Iterable[int]) -> None:
        """Delete multicast groups."""
        updates: list[tuple[UpdateKind, Any, str]] = []
        for group in sorted(groups):
            entity = p4runtime_pb2.Entity()
            entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = group
            updates.append(("delete", entity, f"delete multicast group {group}"))
        self.write_entities(updates)

    def groups(self) -> dict[int, list[int]]:
        """Multicast group id -> egress ports."""
        query = p4runtime_pb2.Entity()
        query.packet_replication_engine_entry.multicast_group_entry.SetInParent()
        found = {}
        for entity in self.read_entities(query, "reading the multicast groups"):
            message = entity.packet_replication_engine_entry.multicast_group_entry
            found[message.multicast_group_id] = [copy.egress_port for copy in message.replicas]
        return found

    # Counters and registers

    def counter(self, name: str, index: int | None = None) -> list[CounterValue]:
        """The cells of an indirect counter; all of them when `index` is left out."""
        query = p4runtime_pb2.Entity()
        query.counter_entry.counter_id = self.p4info.find("counter", name).preamble.id
        if index is not None:
            query.counter_entry.index.index = index
        return [
            CounterValue(
                entity.counter_entry.index.index,
                entity.counter_entry.data.packet_count,
                entity.counter_entry.data.byte_count,
            )
            for entity in self.read_entities(query, f"reading counter {name}")
        ]

    def register(self, name: str, index: int | None = None) -> dict[int, int]:
        """Cells of a register, index -> value.

        Raises:
            SwitchError: code UNIMPLEMENTED on targets without it (BMv2).
        """
        query = p4runtime_pb2.Entity()
        info = self.p4info.find("register", name)
        spec = info.type_spec
        query.register_entry.register_id = info.preamble.id
        if index is not None:
            query.register_entry.index.index = index
        return {
            entity.register_entry.index.index: from_data(entity.register_entry.data, spec)
            for entity in self.read_entities(query, f"reading register {name}")
        }

    def register_cells(self, name: str, indices: Iterable[int]) -> dict[int, int]:
        """Some cells of a register, in one request; errors as `register`."""
        identifier = self.p4info.find("register", name).preamble.id
        request = p4runtime_pb2.ReadRequest(device_id=self._session.device_id)
        for index in indices:
            entry = request.entities.add().register_entry
            entry.register_id = identifier
            entry.index.index = index
        try:
            return {
                entity.register_entry.index.index: int.from_bytes(entity.register_entry.data.bitstring, "big")
                for reply in self._session.stub.Read(request)
                for entity in reply.entities
            }
        except grpc.RpcError as error:
            raise from_rpc(self.where, f"reading register {name}", error) from None

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set one cell of a register; UNIMPLEMENTED on BMv2."""
        self.write_registers(name, {index: value})

    def write_registers(self, name: str, cells: Mapping[int, int]) -> None:
        """Set cells of a register, index -> value; UNIMPLEMENTED on BMv2."""
        register = self.p4info.find("register", name)
        updates: list[tuple[UpdateKind, Any, str]] = []
        for index, value in cells.items():
            entity = p4runtime_pb2.Entity()
            entity.register_entry.register_id = register.preamble.id
            entity.register_entry.index.index = index
            entity.register_entry.data.CopyFrom(to_data(value, register.type_spec, f"{name}[{index}]"))
            updates.append(("modify", entity, f"modify {name}[{index}]"))
        self.write_entities(updates)

    # Requests

    def read_entities(self, query: Any, what: str) -> Iterator[Any]:
        """The P4Runtime entities that a query selects; `what` says in errors what was tried."""
        try:
            yield from self._session.read(query)
        except grpc.RpcError as error:
            raise from_rpc(self.where, what, error) from None

    def write_entities(self, updates: Sequence[tuple[UpdateKind, Any, str]]) -> None:
        """Write P4Runtime entities, each with its kind of update and what errors call it."""
        for start in range(0, len(updates), _BATCH):
            batch = updates[start : start + _BATCH]
            request = p4runtime_pb2.WriteRequest()
            for kind, entity, _ in batch:
                update = request.updates.add(type=p4runtime_pb2.Update.Type.Value(kind.upper()))
                update.entity.CopyFrom(entity)
            self._write_batch(request, [word for _, _, word in batch])

    def _write_batch(self, request: Any, words: Sequence[str]) -> None:
        if not self._session.primary:
            raise SwitchError(f"{self.where} was opened for reading; connect without read_only")
        try:
            self._write_once(request)
        except grpc.RpcError as error:
            raise from_write(self.where, words, error) from None

    def _write_once(self, request: Any) -> None:
        try:
            self._session.write(request)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.PERMISSION_DENIED:
                raise
            # Another controller (a person's shell, say) has been here since: the newest wins.
            self._session.take_over()
            self._session.write(request)
