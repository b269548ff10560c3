"""Random tables and random frames, good and bad, for comparing implementations of the switch program."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from frame_builder import SWITCH_IP, SWITCH_MAC, arp, host_ip, host_mac, job_frame, pack_values, udp_frame

from catchment.checkout import ROOT
from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_core import SwitchCore
from catchment.sim.golden.switch_frames import PAYLOAD_OFFSET
from catchment.sim.golden.switch_model import SwitchModel
from catchment.sim.golden.switch_tables import Binding, Fault, Receiver, Root, Tables, Worker
from catchment.wire.generated.constants import HEADER_OFFSET, UDP_PORT, Flag, Header, Mode, PacketType
from catchment.wire.udp_frame import internet_checksum

PORTS = tuple(range(1, 13))
FLOOD_GROUP = 900
SECOND_IP, SECOND_MAC = SWITCH_IP + 1, SWITCH_MAC + 1
PARENT_IP = SWITCH_IP + 256
ALWAYS = 0xFFFFFFFF


@dataclass(frozen=True)
class Build:
    """One compiled program and its macros."""

    lanes: int = 8
    slots: int = 16
    max_workers: int = 8
    jobs: int = 4
    program: str = "luwu"
    tags: bool = False

    @property
    def source(self) -> Path:
        return ROOT / f"p4src/{self.program}.p4"

    def model(self, dice: Callable[[], int] | None = None) -> SwitchCore:
        """The slow model of the same program and sizes."""
        sizes = (self.lanes, self.slots, self.max_workers, self.jobs)
        model = SlotModel if self.program == "p4sgd" else SwitchModel
        return model(*sizes, dice, tags=self.tags)

    @property
    def defines(self) -> dict[str, int]:
        sizes = {"LANES": self.lanes, "SLOTS": self.slots, "MAX_WORKERS": self.max_workers, "JOBS": self.jobs}
        return {**sizes, "TAGS": 1} if self.tags else sizes


@dataclass(frozen=True)
class Stream:
    """One job's stream in the scenario."""

    gen: int
    mode: Mode
    base: int
    slots: int
    row: int
    workers: tuple[int, ...]  # ports
    up: int | None


STREAMS = (
    Stream(10, Mode.REDUCE, 0, 4, 0, (1, 2, 3), 4),
    Stream(11, Mode.BCAST, 0, 1, 1, (1, 2, 3), 4),
    Stream(0xFFFE, Mode.ALLREDUCE, 4, 2, 2, (5, 6), None),
    Stream(30, Mode.LEAF, 6, 4, 3, (7, 8, 1, 2, 3, 4, 5, 6), 9),
    Stream(31, Mode.REDUCE, 10, 4, 0, (10,), 11),
)
# p4sgd.p4 serves all-reduces and their leaves, and nothing else.
SLOT_STREAMS = (
    Stream(10, Mode.ALLREDUCE, 0, 4, 0, (1, 2, 3), None),
    Stream(11, Mode.ALLREDUCE, 4, 1, 1, (1, 2), None),
    Stream(0xFFFE, Mode.ALLREDUCE, 6, 2, 2, (5, 6), None),
    Stream(12, Mode.ALLREDUCE, 8, 2, 2, (10,), 12),  # a root that the program must not serve
    Stream(30, Mode.LEAF, 10, 4, 3, (7, 8), 9),
    Stream(31, Mode.REDUCE, 14, 1, 0, (10,), 11),
)
MISPLACED = {
    (70, 1): Worker(Mode.REDUCE, 0, 1, 15, 3, 1, 0, 10, 4, 0, host_ip(1)),  # slots 15..18 of 16
    (71, 1): Worker(Mode.REDUCE, 0, 1, 0, 3, 1, 4, 10, 4, 0, host_ip(1)),  # job row 4 of 4
    (72, 1): Worker(Mode.ALLREDUCE, 0, 1, 0, 3, 0x1FF, 0, 10, 4, 0, host_ip(1)),  # nine workers of eight
    (73, 1): Worker(Mode.REDUCE, 0, 4, 0, 3, 3, 0, 10, 4, 0, host_ip(1)),  # own bit is no member
    (74, 1): Worker(Mode.REDUCE, 0, 0, 0, 3, 3, 0, 10, 4, 0, host_ip(1)),  # no bit
    (75, 1): Worker(Mode.REDUCE, 0, 1, 0xFFFFFFFF, 3, 1, 0, 10, 4, 0, host_ip(1)),  # wraps into slot 0..2
}


def base_tables(streams: tuple[Stream, ...] = STREAMS) -> Tables:
    """All of `streams`, two own addresses, some known hosts, a flood group, broken rows."""
    tables = Tables(jobs=dict(MISPLACED))
    tables.own_addresses = {SWITCH_IP: SWITCH_MAC, SECOND_IP: SECOND_MAC}
    tables.switch_addresses = {SWITCH_IP: True, SECOND_IP: True, PARENT_IP: False}
    tables.bindings = {port: Binding(host_mac(port), host_ip(port)) for port in PORTS[:8]} | {9: None, 11: None}
    tables.groups[FLOOD_GROUP] = PORTS
    tables.flood_group = FLOOD_GROUP
    tables.l2 = {host_mac(p): p for p in PORTS[:9]}
    for group, s in enumerate(streams, start=1):
        tables.groups[group] = s.workers
        full = (1 << len(s.workers)) - 1
        for wid, port in enumerate(s.workers):
            tables.jobs[(s.gen, port)] = Worker(
                s.mode, wid, 1 << wid, s.base, s.slots - 1, full, s.row, group, s.up or 0, 17, host_ip(port)
            )
        if s.up is not None:
            tables.jobs[(s.gen, s.up)] = Root(s.mode, s.row, group, host_ip(s.up))
        for port in (*s.workers, *([s.up] if s.up is not None else [])):
            tables.receivers[(s.gen, port)] = Receiver(
                host_mac(port), host_ip(port), UDP_PORT + port, SWITCH_MAC, SWITCH_IP
            )
    return tables


def random_tables(rng: random.Random, streams: tuple[Stream, ...] = STREAMS) -> Tables:
    """The base tables with some rows missing and some faults that always or never strike."""
    tables = base_tables(streams)
    for row in rng.sample(sorted(tables.receivers), rng.randrange(3)):
        del tables.receivers[row]
    tables.strangers = rng.random() < 0.5
    tables.packed = {stream.gen for stream in streams if rng.random() < 0.5}
    if rng.random() < 0.4:
        tables.flood_group = None
    for faults in (tables.ingress_faults, tables.egress_faults):
        for priority in range(1, rng.randrange(1, 4)):
            mask = rng.choice([0, 0xF])
            kind = rng.randrange(8) & mask
            faults.append(Fault(rng.choice(PORTS), kind, mask, rng.choice([0, ALWAYS]), priority))
    return tables


# What a worker usually sends.
WORKER_TYPES: dict[Mode, tuple[PacketType, ...]] = {
    Mode.REDUCE: (PacketType.PA,),
    Mode.BCAST: (PacketType.HB,),
    Mode.LEAF: (PacketType.PA, PacketType.PA, PacketType.HB),
    Mode.ALLREDUCE: (PacketType.PA, PacketType.HB),
}
SLOT_TYPES = dict.fromkeys(Mode, (PacketType.PA, PacketType.ACK))


@dataclass
class Traffic:
    """An endless mix of frames; `near` keeps sequence numbers close so that slots collide."""

    rng: random.Random
    lanes: int
    streams: tuple[Stream, ...] = STREAMS
    types: dict[Mode, tuple[PacketType, ...]] = field(default_factory=lambda: WORKER_TYPES)
    near: dict[int, int] = field(default_factory=dict)

    def next(self) -> tuple[int, bytes]:
        """(port, frame)."""
        kind = self.rng.random()
        if kind < 0.10:
            return self._plain()
        port, frame = self._job()
        if kind < 0.30:
            frame = self._mutated(frame)
        if kind > 0.97:
            port = self.rng.choice(PORTS)
        return port, frame

    def _sequence(self, gen: int) -> int:
        start = self.near.setdefault(gen, self.rng.choice([0, 5, (1 << 32) - 12, 1 << 31]))
        if self.rng.random() < 0.02:
            return self.rng.randrange(1 << 32)
        if self.rng.random() < 0.05:
            self.near[gen] = (start + 1) % (1 << 32)
        return (start + self.rng.randrange(6)) % (1 << 32)

    def _job(self) -> tuple[int, bytes]:
        rng = self.rng
        if rng.random() < 0.03:
            gen, port = rng.choice([*sorted(MISPLACED), (0, 1), (9999, 2)])
            return port, self._frame(PacketType.PA, gen, port)
        stream = rng.choice(self.streams)
        if stream.up is not None and rng.random() < 0.2:
            types = {
                Mode.REDUCE: (PacketType.HB,),
                Mode.BCAST: (PacketType.PARAM,),
                Mode.LEAF: (PacketType.PARAM, PacketType.FA, PacketType.MH, PacketType.CNF),
                Mode.ALLREDUCE: (PacketType.PA, PacketType.ACK),
            }[stream.mode]
            return stream.up, self._frame(self._typed(types), stream.gen, stream.up)
        port = rng.choice(stream.workers)
        return port, self._frame(self._typed(self.types[stream.mode]), stream.gen, port)

    def _typed(self, usual: tuple[PacketType, ...]) -> PacketType:
        return self.rng.choice(usual if self.rng.random() < 0.95 else tuple(PacketType))

    def _frame(self, kind: PacketType, gen: int, port: int) -> bytes:
        rng = self.rng
        payload = b""
        lanes = 0
        if kind in (PacketType.PA, PacketType.FA):
            lanes = self.lanes if rng.random() < 0.97 else rng.randrange(300)
            payload = pack_values([rng.randrange(1 << 32) for _ in range(lanes)])
        elif kind == PacketType.PARAM:
            payload = rng.randbytes(rng.choice([0, 1, 3, 32, 999, 1400]))
            lanes = len(payload)
        elif kind == PacketType.ACK and rng.random() < 0.1:
            payload = rng.randbytes(rng.randrange(1, 40))
        flags = Flag(rng.randrange(32))
        if rng.random() < 0.9:
            flags |= Flag.ACKV
        if rng.random() < (0.3 if kind in (PacketType.PA, PacketType.FA) else 0.02):
            flags |= Flag.PACKED
        if rng.random() < 0.02:
            flags |= Flag.MIXED
        seq = self._sequence(gen)
        header = Header(
            type=kind,
            flags=flags,
            gen=gen,
            wid=rng.randrange(256),
            dtype=rng.randrange(6),
            lanes=lanes,
            exp=rng.randrange(-128, 128),
            next_exp=rng.randrange(-128, 128),
            seq=seq,
            ack=(seq + rng.randrange(-9, 3)) % (1 << 32),
            credit=(seq + rng.randrange(-1, 9)) % (1 << 32),
        )
        to = {"dst_mac": SECOND_MAC, "dst_ip": SECOND_IP} if rng.random() < 0.1 else {}
        return job_frame(header, payload, port=port, **to, **self._source(port))

    def _source(self, port: int) -> dict[str, int]:
        """Mostly the host itself; sometimes another program on it, or somebody else's address."""
        if self.rng.random() < 0.95:
            return {}
        return self.rng.choice(
            [
                {"src_udp": 40000},
                {"src_ip": SWITCH_IP},
                {"src_ip": PARENT_IP},
                {"src_ip": host_ip(port + 1)},
                {"src_mac": host_mac(port + 1)},
            ]
        )

    def _plain(self) -> tuple[int, bytes]:
        rng = self.rng
        port = rng.choice(PORTS)
        what = rng.randrange(8)
        known = host_mac(rng.choice(PORTS))
        if what == 0:
            target = rng.choice([SWITCH_IP, SECOND_IP, host_ip(3)])
            sender = rng.choice([None, None, SWITCH_IP, PARENT_IP, host_ip(4), 0])
            forged = [{}, {}, {"sender_mac": host_mac(4)}]
            operation, pad = rng.choice([1, 1, 1, 2]), rng.choice([0, 18])
            return port, arp(operation, port=port, target_ip=target, pad=pad, sender_ip=sender, **rng.choice(forged))
        if what == 1:
            return port, rng.randbytes(rng.randrange(1, 80))
        if what == 2:
            ether_type = rng.choice([0x0800, 0x0806, 0x86DD, 0x8100])
            source = rng.choice([0, host_mac(port)])
            head = known.to_bytes(6, "big") + source.to_bytes(6, "big") + ether_type.to_bytes(2, "big")
            return port, head + rng.randbytes(rng.randrange(120))
        if what == 3:  # the protocol's port, somebody else's address
            frame = self._frame(PacketType.PA, 10, port)[34:]
            return port, udp_frame(frame[8:], port=port, dst_ip=host_ip(5), dst_mac=known, **self._source(port))
        address = rng.choice([host_ip(5), SWITCH_IP, PARENT_IP])
        dst_udp = rng.choice([53, UDP_PORT - 1, UDP_PORT])
        return port, udp_frame(
            rng.randbytes(rng.randrange(99)),
            port=port,
            dst_ip=address,
            dst_mac=known,
            dst_udp=dst_udp,
            **self._source(port),
        )

    def _mutated(self, frame: bytes) -> bytes:
        rng = self.rng
        data = bytearray(frame)
        how = rng.randrange(8)
        if how == 0:
            return bytes(data[: rng.randrange(1, len(data))])
        if how == 1:
            return bytes(data) + rng.randbytes(rng.randrange(1, 9))
        if how == 2:  # our header: a bit
            data[rng.randrange(HEADER_OFFSET, PAYLOAD_OFFSET)] ^= 1 << rng.randrange(8)
            return bytes(data)
        if how == 3:  # UDP: a bit
            data[rng.randrange(34, HEADER_OFFSET)] ^= 1 << rng.randrange(8)
            return bytes(data)
        if how == 4:  # a byte anywhere
            data[rng.randrange(len(data))] = rng.randrange(256)
            return bytes(data)
        if how == 5:
            data[HEADER_OFFSET] = rng.randrange(256)
            return bytes(data)
        if how == 6:  # options, fragments, protocol, lengths ...
            offset, value = rng.choice([(14, 0x46), (14, 0x44), (14, 0x65), (20, 0x20), (21, 1), (20, 0x80), (23, 6)])
            data[offset] = value
        else:  # IPv4: a bit
            data[rng.randrange(14, 34)] ^= 1 << rng.randrange(8)
        if rng.random() < 0.8:
            data[24:26] = b"\x00\x00"
            data[24:26] = internet_checksum(bytes(data[14:34])).to_bytes(2, "big")
        return bytes(data)
