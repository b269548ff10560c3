"""A slow, obvious switch over UDP on loopback: REDUCE, BCAST and ALLREDUCE, a member's address standing for its port.

It loses, duplicates and reorders frames on both sides from a seed.
"""

from __future__ import annotations

import bisect
import select
import socket
import threading
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from catchment.sim.world import Faults, FaultStream
from catchment.wire.generated.constants import HEADER_BYTES, Flag, Header, Mode, PacketType

Address = tuple[str, int]
_M32 = 1 << 32
MOST_OVERTAKING = 8
"""Frames that pass one that is held back."""


def newer(a: int, b: int) -> bool:
    """`a` comes after `b` on the 32-bit circle."""
    ahead = (a - b) % _M32
    return 0 < ahead < 1 << 31


def _lowest(values: list[int]) -> int:
    lowest = values[0]
    for value in values[1:]:
        if newer(lowest, value):
            lowest = value
    return lowest


@dataclass
class Slot:
    """One entry: the sequence number it belongs to, who is in, and their sum."""

    seq: int | None = None
    workers: set[int] = field(default_factory=set)
    lanes: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    saturated: bool = False
    packed: set[bool] = field(default_factory=set)


@dataclass
class Job:
    """What the control plane would install for one gen."""

    gen: int
    mode: Mode
    slots: int
    workers: int
    members: dict[Address, int | None] = field(default_factory=dict)  # None: the root
    table: dict[int, Slot] = field(default_factory=dict)
    beats: dict[int, tuple[int, int]] = field(default_factory=dict)
    last: tuple[int, int] | None = None

    def everyone(self) -> list[Address]:
        """All workers."""
        return [address for address, wid in self.members.items() if wid is not None]

    def root(self) -> list[Address]:
        """The root, if it is there."""
        return [address for address, wid in self.members.items() if wid is None]


class Relay:
    """The switch, in a thread of its own.  `loss`, `duplicate`, `reorder`: probability per frame and direction."""

    def __init__(self, *, loss: float = 0, duplicate: float = 0, reorder: float = 0, seed: int = 0) -> None:
        self._seed, self._faults = seed, Faults(loss=loss, duplicate=duplicate, reorder=reorder)
        self._lines: dict[tuple[bool, Address], FaultStream] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.bind(("127.0.0.1", 0))
        self._stop, self._stopped = socket.socketpair()
        self._overtaken: list[tuple[int, Address, bytes]] = []  # how many frames pass before this one
        self._emitted = 0
        self._jobs: dict[int, Job] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.address: Address = self._socket.getsockname()
        self.error: BaseException | None = None
        self.silent = False  # hears, but says nothing more
        # These get no merged heartbeat, and sums without its fields, until so many old PAs have come.
        self.without_acks: set[Address] = set()
        self.without_acks_for = 0

    def add(self, job: Job) -> Job:
        """Install a job; its members may join later."""
        self._jobs[job.gen] = job
        return job

    def send_as_switch(self, to: Address, frame: bytes) -> None:
        """A frame of the test's making, from the switch's address."""
        self._socket.sendto(frame, to)

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.send(b"x")
        self._thread.join()
        self._socket.close()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            while True:
                ready, _, _ = select.select([self._socket, self._stopped], [], [], 0.002)
                if self._stopped in ready:
                    return
                if self._socket in ready:
                    frame, source = self._socket.recvfrom(65536)
                    for _ in self._line(False, source).next(self._faults).copies:
                        self._switch(frame, source)
                elif self._overtaken:
                    self._release(len(self._overtaken))
        except BaseException as error:
            self.error = error

    def _line(self, outward: bool, address: Address) -> FaultStream:
        """One direction of the link to a member."""
        if (outward, address) not in self._lines:
            self._lines[outward, address] = FaultStream(self._seed, len(self._lines))
        return self._lines[outward, address]

    def _emit(self, to: list[Address], header: Header, payload: bytes = b"") -> None:
        for address in to:
            if address in self.without_acks:
                if header.type == PacketType.MH:
                    continue
                header = header._replace(flags=header.flags & ~Flag.ACKV)
            if self.silent:
                continue
            for copy in self._line(True, address).next(self._faults).copies:
                if copy.reordered:
                    due = self._emitted + 1 + copy.hold(MOST_OVERTAKING - 1)
                    bisect.insort(self._overtaken, (due, address, header.pack() + payload))
                else:
                    self._emitted += 1
                    self._socket.sendto(header.pack() + payload, address)
        self._release(bisect.bisect_right(self._overtaken, self._emitted, key=lambda one: one[0]))

    def _release(self, count: int) -> None:
        """The first of those that were held back."""
        for _, address, frame in self._overtaken[:count]:
            self._socket.sendto(frame, address)
        del self._overtaken[:count]

    def _switch(self, frame: bytes, source: Address) -> None:
        header = Header.unpack(frame)
        job = self._jobs.get(header.gen)
        if job is None or source not in job.members:
            return
        wid = job.members[source]
        payload = frame[HEADER_BYTES:]
        if header.type == PacketType.PARAM and wid is None:
            self._emit(job.everyone(), header, payload)
        elif header.type == PacketType.HB and wid is None:
            self._emit(job.everyone(), header._replace(type=PacketType.MH))
        elif header.type == PacketType.HB and wid is not None:
            self._merge(job, header, wid)
        elif header.type == PacketType.PA and wid is not None:
            self._add(job, header, payload, source, wid)

    def _merge(self, job: Job, header: Header, wid: int) -> None:
        low = self._beat(job, header, wid)
        if low is None:
            return
        advanced = job.last is None or newer(low[0], job.last[0]) or newer(low[1], job.last[1])
        if advanced:
            job.last = low
        asks = job.mode == Mode.BCAST and header.flags & Flag.RETX
        if advanced or wid == 0 or asks:
            to = job.everyone() if job.mode == Mode.ALLREDUCE else job.root()
            self._emit(to, header._replace(type=PacketType.MH, ack=low[0], credit=low[1]))

    @staticmethod
    def _beat(job: Job, header: Header, wid: int) -> tuple[int, int] | None:
        ack, credit = job.beats.get(wid, (header.ack, header.credit))
        job.beats[wid] = (
            header.ack if newer(header.ack, ack) else ack,
            header.credit if newer(header.credit, credit) else credit,
        )
        if len(job.beats) < job.workers:
            return None
        return _lowest([beat[0] for beat in job.beats.values()]), _lowest([beat[1] for beat in job.beats.values()])

    def _add(self, job: Job, header: Header, payload: bytes, source: Address, wid: int) -> None:
        low = self._beat(job, header, wid) if job.mode == Mode.ALLREDUCE else None
        slot = job.table.setdefault(header.seq % job.slots, Slot())
        lanes = np.frombuffer(payload, ">u4").astype(np.uint32)
        if slot.seq is None or newer(header.seq, slot.seq):
            slot.seq, slot.workers, slot.lanes, slot.saturated = header.seq, set(), np.zeros_like(lanes), False
            slot.packed = set()
        elif slot.seq != header.seq:
            self.without_acks_for -= 1
            if self.without_acks_for == 0:
                self.without_acks.clear()
            return
        again = wid in slot.workers
        if not again:
            slot.workers.add(wid)
            held = slot.lanes.astype(">u4").tobytes()
            step = ">u2" if header.flags & Flag.PACKED else ">u4"
            total = np.frombuffer(held, step) + np.frombuffer(payload, step)
            slot.lanes = np.frombuffer(total.astype(step).tobytes(), ">u4").astype(np.uint32)
            slot.saturated |= bool(header.flags & Flag.SAT)
            slot.packed.add(bool(header.flags & Flag.PACKED))
        if len(slot.workers) < job.workers:
            return
        flags = header.flags & ~(Flag.ACKV | Flag.SAT | Flag.PACKED) | (Flag.SAT if slot.saturated else 0)
        flags |= (Flag.PACKED if True in slot.packed else 0) | (Flag.MIXED if len(slot.packed) > 1 else 0)
        full = header._replace(type=PacketType.FA, flags=flags)
        if low is not None:
            full = full._replace(flags=flags | Flag.ACKV, ack=low[0], credit=low[1])
        to_all = [source] if again else job.everyone()
        self._emit(job.root() if job.mode == Mode.REDUCE else to_all, full, slot.lanes.astype(">u4").tobytes())
