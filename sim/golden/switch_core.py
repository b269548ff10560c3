"""What the switch programs share, as a slow and obvious model: everything but what a job's frame does to the slots.

It is written from docs/explanation/protocol.md, not from P4 code, and keeps whole contributions where P4 keeps sums, so
that a test that finds the two equal has compared two things.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable

from catchment.sim.golden import switch_frames as frames
from catchment.sim.golden.switch_jobs import Contribution, Slot, SlotStore, newer
from catchment.sim.golden.switch_tables import Fault, Root, Tables, TagKey, Worker
from catchment.sim.golden.tags import opened, tagged
from catchment.wire.generated.constants import (
    DEFAULT_LANES,
    HEADER_OFFSET,
    MAX_WORKERS,
    TAG_BYTES,
    TAGGED_VERSION,
    DropReason,
    Flag,
    Header,
)

Output = list[tuple[int, bytes]]

REFUSALS = frozenset(
    {
        DropReason.UNKNOWN_JOB,
        DropReason.WRONG_DIRECTION,
        DropReason.FORGED_ARP,
        DropReason.OTHER_SWITCH,
        DropReason.FORGED_SOURCE,
        DropReason.WRONG_UDP_PORT,
        DropReason.BEYOND_WINDOW,
        DropReason.NOT_PACKED,
        DropReason.BAD_TAG,
    }
)
"""What is wrong with the sender and not with the frame: counted by ingress port, too."""


def _never() -> int:
    return (1 << 32) - 1


class Drop(Exception):  # noqa: N818 - not an error: it carries the reason to the one place that counts
    """The frame is lost for `reason`."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason.name)
        self.reason = reason


class SwitchCore(ABC):
    """One switch.  `tables` may change at any time; `dice` gives the 32-bit random number of a fault entry.

    `tags`: the program was built with -DTAGS.
    """

    def __init__(
        self,
        lanes: int = DEFAULT_LANES,
        slots: int = 1024,
        max_workers: int = MAX_WORKERS,
        jobs: int = 64,
        dice: Callable[[], int] | None = None,
        *,
        tags: bool = False,
    ) -> None:
        self.lanes = lanes
        self.max_workers = max_workers
        self.job_rows = jobs
        self.dice = dice or _never
        self.has_tags = tags
        self._sign: TagKey | None = None  # the keys for what leaves because of the frame that is looked at
        self.tables = Tables()
        self.drops: Counter[DropReason] = Counter()
        self.refused: Counter[tuple[int, DropReason]] = Counter()
        self.job_packets: Counter[tuple[int, int]] = Counter()
        self._slot_count = slots
        self.restart()

    def restart(self) -> None:
        """Lose all state, as a switch that comes back does; the tables are the control plane's to restore."""
        self.slots = SlotStore(self._slot_count)

    def inject(self, port: int, frame: bytes) -> Output:
        """Everything that leaves because `frame` came in on `port`: (egress port, frame), in order per port."""
        try:
            return self._ingress(port, frame)
        except Drop as drop:
            self.drops[drop.reason] += 1
            if drop.reason in REFUSALS:
                self.refused[port, drop.reason] += 1
            return []

    def _ingress(self, port: int, frame: bytes) -> Output:
        if len(frame) < 14:
            raise Drop(DropReason.PARSE_ERROR)
        self._maybe_lose(self.tables.ingress_faults, port, frames.packet_type(frame), DropReason.FAULT_INGRESS)
        ip = frames.ipv4(frame)
        if ip is not None and ip.dst in self.tables.own_addresses and frames.may_be_ours(frame, ip):
            fault = frames.fault_of(frame, ip, self.lanes, self.type_fault, tags=self.has_tags)
            if fault != DropReason.NONE:
                raise Drop(fault)
            return self._admit(port, frame)
        self._guard(port, frame)
        asked = frames.arp_target(frame)
        if asked is not None and asked in self.tables.own_addresses:
            return self._leave([port], frames.arp_reply(frame, self.tables.own_addresses[asked]))
        return self._bridge(port, frame)

    # --- plain traffic

    def _bridge(self, port: int, frame: bytes) -> Output:
        to = self.tables.l2.get(frames.number(frame, 0, 6))
        if to is not None:
            ports = [to]
        elif self.tables.flood_group is not None:
            ports = list(self.tables.groups.get(self.tables.flood_group, ()))
        else:
            raise Drop(DropReason.NO_ROUTE)
        self.drops[DropReason.FLOOD_SOURCE] += ports.count(port)
        return self._leave([p for p in ports if p != port], frame)

    def _guard(self, port: int, frame: bytes) -> None:
        """No host speaks as another one, or to another switch than its own."""
        switches, bindings = self.tables.switch_addresses, self.tables.bindings
        bound = bindings.get(port)
        from_host = port not in bindings or bound is not None
        if port not in bindings and not self.tables.strangers:
            raise Drop(DropReason.FORGED_SOURCE)
        if bound is not None and frames.number(frame, 6, 6) != bound.mac:
            raise Drop(DropReason.FORGED_SOURCE)
        claimed = frames.arp_sender(frame)
        if claimed is not None:
            mac, address = claimed
            if bound is not None and (mac != bound.mac or address not in (bound.ip, 0)):
                raise Drop(DropReason.FORGED_ARP)
            if address in switches and (switches[address] or from_host):
                raise Drop(DropReason.FORGED_ARP)
        ip = frames.ipv4(frame)
        if ip is not None and bound is not None and ip.src != bound.ip:
            raise Drop(DropReason.FORGED_SOURCE)
        if ip is not None and ip.dst in switches and not switches[ip.dst] and from_host:
            raise Drop(DropReason.OTHER_SWITCH)

    def _leave(self, ports: list[int], frame: bytes) -> Output:
        """Give a copy of the frame to each of `ports`, unchanged, past the faults."""
        out: Output = []
        for port in ports:
            try:
                self._maybe_lose(self.tables.egress_faults, port, frames.packet_type(frame), DropReason.FAULT_EGRESS)
                out.append((port, frame))
            except Drop as drop:
                self.drops[drop.reason] += 1
        return out

    def _maybe_lose(self, faults: list[Fault], port: int, packet_type: int, reason: DropReason) -> None:
        matching = [f for f in faults if f.port == port and (f.type ^ packet_type) & f.type_mask == 0]
        if matching and self.dice() < max(matching, key=lambda f: f.priority).threshold:
            raise Drop(reason)

    # --- job traffic

    @abstractmethod
    def type_fault(self, header: Header, payload: int) -> DropReason:
        """What is wrong with a well-formed header that is neither PA nor FA; `payload`: bytes after it."""

    @abstractmethod
    def job_frame(self, row: Worker | Root, port: int, header: Header, frame: bytes) -> Output:
        """What the program does with an admitted frame.  Raises Drop."""

    def _admit(self, port: int, frame: bytes) -> Output:
        header = Header.unpack(frame, HEADER_OFFSET)
        row = self.tables.jobs.get((header.gen, port))
        if row is None:
            raise Drop(DropReason.UNKNOWN_JOB)
        self.job_packets[(header.gen, port)] += 1
        if frames.number(frame, frames.UDP_OFFSET - 8, 4) != row.src_ip:
            raise Drop(DropReason.FORGED_SOURCE)
        if frames.number(frame, frames.UDP_OFFSET, 2) != row.src_udp:
            raise Drop(DropReason.WRONG_UDP_PORT)
        if row.job >= self.job_rows or (isinstance(row, Worker) and not self._is_inside(row, header)):
            raise Drop(DropReason.BAD_SLOT)
        if self.has_tags:
            frame = self._untagged(row, port, header, frame)
        if header.flags & Flag.PACKED and header.gen not in self.tables.packed:
            raise Drop(DropReason.NOT_PACKED)
        return self.job_frame(row, port, header, frame)

    def _untagged(self, row: Worker | Root, port: int, header: Header, frame: bytes) -> bytes:
        """The frame without its tag, where the switch sees that, once it is right."""
        self._sign = None
        said = self.tables.tags.get((header.gen, port))
        if (said is None) == (header.version == TAGGED_VERSION):
            raise Drop(DropReason.BAD_TAG)
        if said is None or not frames.shows_tag(header, self.lanes):
            return frame
        if isinstance(row, Worker) and header.wid != said.wid:
            raise Drop(DropReason.BAD_TAG)
        if opened(said.of(header), frame[HEADER_OFFSET:]) is None:
            raise Drop(DropReason.BAD_TAG)
        self._sign = said
        return frame[:-TAG_BYTES]

    def _is_inside(self, row: Worker, header: Header) -> bool:
        return (
            self.slot_index(row, header) < len(self.slots.slots)
            and row.full >> self.max_workers == 0
            and row.own != 0
            and row.own & ~row.full == 0
        )

    @staticmethod
    def slot_index(row: Worker, header: Header) -> int:
        """The slot of a packet; may lie outside the slots that were built."""
        return (row.base + (header.seq & row.mask)) % (1 << 32)

    def add_vector(self, row: Worker, header: Header, frame: bytes, furthest: int | None = None) -> tuple[Slot, bool]:
        """Put a PA into its slot; the flag says that it was already in.

        Raises Drop if the slot has gone on, or if the PA is beyond `furthest` and the slot does not hold its number.
        """
        what = Contribution(
            values=frames.vector(frame, self.lanes),
            next_exp=header.next_exp,
            next_exp_valid=bool(header.flags & Flag.EXPV),
            saturated=bool(header.flags & Flag.SAT),
            packed=bool(header.flags & Flag.PACKED),
            mixed=bool(header.flags & Flag.MIXED),
        )
        index = self.slot_index(row, header)
        held = self.slots.slots[index]
        if furthest is not None and (held.gen, held.seq) != (header.gen, header.seq):
            if newer(header.seq, furthest):
                raise Drop(DropReason.BEYOND_WINDOW)
            if held.gen == header.gen and newer(held.seq, furthest):
                self.slots.slots[index] = Slot()  # it was never rightly taken
        result = self.slots.add(index, header.gen, header.seq, row.own, what)
        if result is None:
            raise Drop(DropReason.OLD_SEQ)
        return result

    @staticmethod
    def merged(header: Header, slot: Slot) -> Header:
        """`header` with what a full slot says of exponents and saturation."""
        flags = header.flags & ~(Flag.EXPV | Flag.SAT | Flag.PACKED | Flag.MIXED)
        flags |= Flag.EXPV if slot.next_exp_valid() else 0
        flags |= Flag.SAT if slot.saturated() else 0
        flags |= Flag.PACKED if slot.packed() else 0
        flags |= Flag.MIXED if slot.mixed() else 0
        return header._replace(flags=flags, next_exp=slot.next_exp())

    def workers(self, group: int) -> list[int]:
        """The ports of a multicast group."""
        return list(self.tables.groups.get(group, ()))

    def send(self, ports: list[int], frame: bytes) -> Output:
        """Send to each port with its receiver's addresses."""
        header = Header.unpack(frame, HEADER_OFFSET)
        gen = header.gen
        if self._sign is not None:
            frame = frame[:HEADER_OFFSET] + tagged(self._sign.of(header), header, frame[frames.PAYLOAD_OFFSET :])
        out: Output = []
        for port in ports:
            receiver = self.tables.receivers.get((gen, port))
            if receiver is None:
                self.drops[DropReason.NO_RECEIVER] += 1
            else:
                out += self._leave_job(port, frames.addressed(frame, receiver))
        return out

    def _leave_job(self, port: int, frame: bytes) -> Output:
        kind = Header.unpack(frame, HEADER_OFFSET).type
        try:
            self._maybe_lose(self.tables.egress_faults, port, kind, DropReason.FAULT_EGRESS)
        except Drop as drop:
            self.drops[drop.reason] += 1
            return []
        return [(port, frame)]
