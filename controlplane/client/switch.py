"""One switch through P4Runtime, whatever target it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import grpc

from catchment.controlplane.client.cells import CounterCell, DirectCounterCell, RegisterCell
from catchment.controlplane.client.election import Candidate, ElectionId, above
from catchment.controlplane.client.entity import Entity, Update
from catchment.controlplane.client.entries import TableEntry, to_message
from catchment.controlplane.client.exchanges import Exchanges
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.replication import MulticastGroup
from catchment.controlplane.client.requests import Selection
from catchment.controlplane.client.session import Session
from catchment.controlplane.client.values import Value
from catchment.controlplane.programs.pipeline_config import PipelineConfig

_E = TypeVar("_E", bound=Entity)


class SwitchClient:
    """Tables, groups, counters and registers of one switch, by the names of its P4Info.

    Use as a context manager; every request has a deadline and raises `SwitchError`.
    """

    def __init__(self, session: Session, exchanges: Exchanges) -> None:
        self._session = session
        self._exchanges = exchanges

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
            address: gRPC address: ``host:port``, ``unix:PATH`` or ``tls:FOLDER@host:port``.
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
        exchanges = Exchanges(where, Candidate(device_id), read_only, info)
        session = Session(where, address, exchanges.candidate, timeout=timeout, primary=not read_only)
        return cls(session, exchanges)

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
        return self._session.carry_out(self._exchanges.p4info())

    def push_pipeline(self, config: PipelineConfig) -> None:
        """Load a compiled program; everything on the switch starts empty (see `Exchanges.push`)."""
        self._session.carry_out(self._exchanges.push(config))

    def runs(self, config: PipelineConfig) -> bool:
        """Whether the switch runs this very program, as far as it was loaded by `push_pipeline`."""
        return self._session.carry_out(self._exchanges.runs(config))

    def call_when_lost(self, callback: Callable[[], None]) -> None:
        """Call once, from another thread, when the switch ends its control stream: it died or was cut off."""
        self._session.call_at_end(callback)

    def call_when_demoted(self, callback: Callable[[], None]) -> None:
        """Call each time, from another thread, when another client takes the switch over, or such a one leaves."""
        self._session.call_when_demoted(callback)

    @property
    def rival(self) -> str:
        """The client that has taken the switch over from this one, in words; empty while this one is the primary."""
        held = self._exchanges.candidate.rival
        return "" if held is None else f"another client, with election id {held[0]}:{held[1]}, is its primary"

    @property
    def term(self) -> int:
        """A number that is another one once another client may have written."""
        return self._exchanges.candidate.term

    @property
    def next_election_id(self) -> ElectionId:
        """An id that is above that of this client."""
        return above(self._exchanges.candidate.election_id)

    # Any entity

    def write(self, *updates: Update) -> None:
        """Make changes in their order: `client.write(+entry, ~group, -member)`.

        All are checked against the program before the first is sent.

        Raises:
            SwitchError: a name or value that the program does not have, or, in `failures`, each update that the switch
                refuses (the others stay).
        """
        self._session.carry_out(self._exchanges.write(updates))

    def insert(self, *new: Entity) -> None:
        """Insert entities; errors as `write`."""
        self.write(*(+entity for entity in new))

    def modify(self, *changed: Entity) -> None:
        """Change entities that exist: an entry's action, a group's ports, a cell's value; errors as `write`."""
        self.write(*(~entity for entity in changed))

    def delete(self, *old: Entity) -> None:
        """Delete entities: entries by table, key and priority, others by number; errors as `write`."""
        self.write(*(-entity for entity in old))

    def each(self, *patterns: _E) -> Iterator[_E]:
        """What the switch has, as it arrives: `client.each(TableEntry("l2"))`, `client.each(MulticastGroup())`.

        Several patterns of one kind are one request.

        Raises:
            SwitchError: the program has no such name, or the switch refuses.
        """
        selection = Selection(self._exchanges.device_id, self.p4info, *patterns)
        try:
            for reply in self._session.read(selection.request):
                yield from selection.found(reply)
        except grpc.RpcError as error:
            raise selection.failed(self.where, error) from None

    # Tables

    def set_default(self, table: str, action: str, params: Mapping[str, Value]) -> None:
        """Set the default action of a table."""
        self.modify(TableEntry(table, {}, action, params, is_default=True))

    def reset_default(self, table: str) -> None:
        """Give a table the default action of its program back."""
        self.modify(TableEntry(table, is_default=True))

    def key(self, entry: TableEntry) -> bytes:
        """What tells an entry from others of this switch, however its values are spelled."""
        message = to_message(entry, self.p4info, with_action=False)
        return bytes(message.SerializeToString(deterministic=True))

    def value(self, entry: TableEntry) -> bytes:
        """Key, action and parameters, however they are spelled."""
        message = to_message(entry, self.p4info)
        message.ClearField("metadata")
        return bytes(message.SerializeToString(deterministic=True))

    def read(self, table: str | None = None) -> list[TableEntry]:
        """The entries of one table, or of all; direct counters where the table has them."""
        names = [table] if table is not None else self.p4info.names("table")
        return [entry for name in names for entry in self.each(TableEntry(name))]

    def read_own(self, table: str) -> list[TableEntry]:
        """The entries of a table that a control plane wrote: not those that the program itself fixes."""
        if self.p4info.find("table", table).is_const_table:
            return []  # not every target marks them
        return [entry for entry in self.read(table) if not entry.is_const]

    def read_default(self, table: str) -> TableEntry | None:
        """The default action of a table, or None when the target reports none."""
        return next(self.each(TableEntry(table, is_default=True)), None)

    def direct_counters(self, table: str) -> list[TableEntry]:
        """Keys of a table with the packets and bytes that hit each of them."""
        return [cell.entry for cell in self.each(DirectCounterCell(TableEntry(table)))]

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
        wanted = (MulticastGroup.of_ports(number, ports) for number, ports in groups.items())
        self.write(*(~group if group.number in existing else +group for group in wanted))

    def delete_groups(self, groups: Iterable[int]) -> None:
        """Delete multicast groups."""
        self.delete(*(MulticastGroup(number) for number in sorted(groups)))

    def groups(self) -> dict[int, list[int]]:
        """Multicast group id -> egress ports."""
        return {group.number: [copy.port for copy in group.replicas] for group in self.each(MulticastGroup())}

    # Counters and registers

    def counter(self, name: str, index: int | None = None) -> list[CounterCell]:
        """The cells of an indirect counter; all of them when `index` is left out."""
        return list(self.each(CounterCell(name, index)))

    def register(self, name: str, index: int | None = None) -> dict[int, int]:
        """Cells of a register, index -> value.

        Raises:
            SwitchError: code UNIMPLEMENTED on targets without it (BMv2).
        """
        return {cell.index or 0: cell.value for cell in self.each(RegisterCell(name, index))}

    def register_cells(self, name: str, indices: Iterable[int]) -> dict[int, int]:
        """Some cells of a register, in one request; errors as `register`."""
        cells = [RegisterCell(name, index) for index in indices]
        return {cell.index or 0: cell.value for cell in self.each(*cells)} if cells else {}

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set one cell of a register; UNIMPLEMENTED on BMv2."""
        self.write_registers(name, {index: value})

    def write_registers(self, name: str, cells: Mapping[int, int]) -> None:
        """Set cells of a register, index -> value; UNIMPLEMENTED on BMv2."""
        self.modify(*(RegisterCell(name, index, value) for index, value in cells.items()))
