"""The slow, obvious model of the switch program p4src/luwu.p4: frames in, frames out, every drop counted.

It is written from docs/protocol.md, not from the P4 code, and keeps whole contributions where P4 keeps sums, so
that a test that finds the two equal has compared two things.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from sim.golden import switch_frames as frames
from sim.golden.switch_jobs import Contribution, HeartbeatTable, SlotStore, Window
from sim.golden.switch_tables import Fault, Root, Tables, Worker
from wire.generated.constants import DEFAULT_LANES, DropReason, Flag, Header, Mode, PacketType

Output = list[tuple[int, bytes]]


def _never() -> int:
    return (1 << 32) - 1


class _Drop(Exception):  # noqa: N818 - not an error: it carries the reason to the one place that counts
    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason.name)
        self.reason = reason


class SwitchModel:
    """One switch.  `tables` may change at any time; `dice` gives the 32-bit random number of a fault entry."""

    def __init__(
        self,
        lanes: int = DEFAULT_LANES,
        slots: int = 1024,
        max_workers: int = 32,
        jobs: int = 64,
        dice: Callable[[], int] = _never,
    ) -> None:
        self.lanes = lanes
        self.max_workers = max_workers
        self.job_rows = jobs
        self.dice = dice
        self.tables = Tables()
        self.drops: Counter[DropReason] = Counter()
        self.job_packets: Counter[tuple[int, int]] = Counter()
        self.slots = SlotStore(slots)
        self.heartbeats = HeartbeatTable()

    def restart(self) -> None:
        """Lose all state, as a switch that comes back does; the tables are the control plane's to restore."""
        self.slots = SlotStore(len(self.slots.slots))
        self.heartbeats = HeartbeatTable()

    def inject(self, port: int, frame: bytes) -> Output:
        """Everything that leaves because `frame` came in on `port`: (egress port, frame), in order per port."""
        try:
            return self._ingress(port, frame)
        except _Drop as drop:
            self.drops[drop.reason] += 1
            return []

    def _ingress(self, port: int, frame: bytes) -> Output:
        if len(frame) < 14:
            raise _Drop(DropReason.PARSE_ERROR)
        self._maybe_lose(self.tables.ingress_faults, port, frames.packet_type(frame), DropReason.FAULT_INGRESS)
        asked = frames.arp_target(frame)
        if asked is not None and asked in self.tables.own_addresses:
            return self._leave([port], frames.arp_reply(frame, self.tables.own_addresses[asked]))
        ip = frames.ipv4(frame)
        if ip is not None and ip.dst in self.tables.own_addresses and frames.may_be_ours(frame, ip):
            fault = frames.fault_of(frame, ip, self.lanes)
            if fault != DropReason.NONE:
                raise _Drop(fault)
            return self._job_frame(port, frame)
        return self._bridge(port, frame)

    # --- plain traffic

    def _bridge(self, port: int, frame: bytes) -> Output:
        to = self.tables.l2.get(frames.number(frame, 0, 6))
        if to is not None:
            ports = [to]
        elif self.tables.flood_group is not None:
            ports = list(self.tables.groups.get(self.tables.flood_group, ()))
        else:
            raise _Drop(DropReason.NO_ROUTE)
        self.drops[DropReason.FLOOD_SOURCE] += ports.count(port)
        return self._leave([p for p in ports if p != port], frame)

    def _leave(self, ports: list[int], frame: bytes) -> Output:
        """Out of `ports` unchanged, past the faults."""
        out: Output = []
        for port in ports:
            try:
                self._maybe_lose(self.tables.egress_faults, port, frames.packet_type(frame), DropReason.FAULT_EGRESS)
                out.append((port, frame))
            except _Drop as drop:
                self.drops[drop.reason] += 1
        return out

    def _maybe_lose(self, faults: list[Fault], port: int, packet_type: int, reason: DropReason) -> None:
        matching = [f for f in faults if f.port == port and (f.type ^ packet_type) & f.type_mask == 0]
        if matching and self.dice() < max(matching, key=lambda f: f.priority).threshold:
            raise _Drop(reason)

    # --- job traffic

    def _job_frame(self, port: int, frame: bytes) -> Output:
        header = Header.unpack(frame, frames.HEADER_OFFSET)
        row = self.tables.jobs.get((header.gen, port))
        if row is None:
            raise _Drop(DropReason.UNKNOWN_JOB)
        self.job_packets[(header.gen, port)] += 1
        if isinstance(row, Root):
            return self._from_root(row, header, frame)
        self._check_row(row, header)
        if header.type == PacketType.PA and row.mode in (Mode.REDUCE, Mode.ALLREDUCE, Mode.LEAF):
            return self._vector(row, port, header, frame)
        if header.type == PacketType.HB and row.mode in (Mode.BCAST, Mode.ALLREDUCE, Mode.LEAF):
            return self._heartbeat(row, header, frame)
        raise _Drop(DropReason.WRONG_DIRECTION)

    def _check_row(self, row: Worker, header: Header) -> None:
        inside = (
            self._slot_index(row, header) < len(self.slots.slots)
            and row.job < self.job_rows
            and row.full >> self.max_workers == 0
            and row.own != 0
            and row.own & ~row.full == 0
        )
        if not inside:
            raise _Drop(DropReason.BAD_SLOT)

    @staticmethod
    def _slot_index(row: Worker, header: Header) -> int:
        return (row.base + (header.seq & row.mask)) % (1 << 32)

    def _from_root(self, row: Root, header: Header, frame: bytes) -> Output:
        """One copy from above to every worker."""
        if row.mode == Mode.REDUCE and header.type == PacketType.HB:
            header = header._replace(type=PacketType.MH)
        elif not (row.mode == Mode.BCAST and header.type == PacketType.PARAM) and not (
            row.mode == Mode.LEAF and header.type in (PacketType.PARAM, PacketType.FA, PacketType.MH)
        ):
            raise _Drop(DropReason.WRONG_DIRECTION)
        return self._send(self._workers(row.group), frames.with_header(frame, header._replace(wid=0)))

    def _workers(self, group: int) -> list[int]:
        return list(self.tables.groups.get(group, ()))

    def _heard(self, row: Worker, header: Header) -> Window | None:
        """Take the sender's (ack, credit) if it has one, and say the minimum over all workers if it is known."""
        if header.flags & Flag.ACKV and row.own.bit_count() == 1:
            self.heartbeats.hear(row.job, row.own, Window(header.gen, header.ack, header.credit))
        return self.heartbeats.minimum(row.job, header.gen, row.full)

    def _heartbeat(self, row: Worker, header: Header, frame: bytes) -> Output:
        minimum = self._heard(row, header)
        if minimum is None:
            return []
        names_a_frame = row.mode != Mode.ALLREDUCE and header.flags & Flag.RETX
        if not self.heartbeats.advance(row.job, minimum) and row.wid != 0 and not names_a_frame:
            return []
        header = _with_window(header._replace(wid=row.wid), minimum)
        if row.mode == Mode.LEAF:
            up = header._replace(type=PacketType.HB, wid=row.up_wid)
            return self._send([row.up_port], frames.with_header(frame, up))
        ports = [row.up_port] if row.mode == Mode.BCAST else self._workers(row.group)
        return self._send(ports, frames.with_header(frame, header._replace(type=PacketType.MH)))

    def _vector(self, row: Worker, port: int, header: Header, frame: bytes) -> Output:
        minimum = None if row.mode == Mode.REDUCE else self._heard(row, header)
        what = Contribution(
            values=frames.vector(frame, self.lanes),
            next_exp=header.next_exp,
            next_exp_valid=bool(header.flags & Flag.EXPV),
            saturated=bool(header.flags & Flag.SAT),
        )
        result = self.slots.add(self._slot_index(row, header), header.gen, header.seq, row.own, what)
        if result is None:
            raise _Drop(DropReason.OLD_SEQ)
        slot, again = result
        if slot.workers != row.full:
            return []
        header = _with_window(header, minimum)
        flags = header.flags & ~(Flag.EXPV | Flag.SAT)
        flags |= Flag.EXPV if slot.next_exp_valid() else 0
        flags |= Flag.SAT if slot.saturated() else 0
        header = header._replace(flags=flags, next_exp=slot.next_exp(), wid=row.wid)
        if row.mode == Mode.LEAF:
            up = header._replace(type=PacketType.PA, wid=row.up_wid)
            return self._send([row.up_port], frames.with_header(frame, up, slot.sums()))
        full = frames.with_header(frame, header._replace(type=PacketType.FA), slot.sums())
        if row.mode == Mode.REDUCE:
            return self._send([row.up_port], full)
        return self._send([port] if again else self._workers(row.group), full)

    def _send(self, ports: list[int], frame: bytes) -> Output:
        """To each port with its receiver's addresses."""
        gen = Header.unpack(frame, frames.HEADER_OFFSET).gen
        out: Output = []
        for port in ports:
            receiver = self.tables.receivers.get((gen, port))
            if receiver is None:
                self.drops[DropReason.NO_RECEIVER] += 1
            else:
                out += self._leave_job(port, frames.addressed(frame, receiver))
        return out

    def _leave_job(self, port: int, frame: bytes) -> Output:
        kind = Header.unpack(frame, frames.HEADER_OFFSET).type
        try:
            self._maybe_lose(self.tables.egress_faults, port, kind, DropReason.FAULT_EGRESS)
        except _Drop as drop:
            self.drops[drop.reason] += 1
            return []
        return [(port, frame)]


def _with_window(header: Header, minimum: Window | None) -> Header:
    if minimum is None:
        return header._replace(flags=header.flags & ~Flag.ACKV, ack=0, credit=0)
    return header._replace(flags=header.flags | Flag.ACKV, ack=minimum.ack, credit=minimum.credit)
