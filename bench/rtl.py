"""`make bench-rtl`: clocks of whole NICs in simulation: per packet each way, and where a message's time goes.

A WorkerNIC and an AggNIC back to back: with one worker, what a switch does is to change the packet's type.  Memory
answers after LATENCY clocks, without gaps.  Line rate allows 6.75 clocks of 4 ns for a 256 B vector's frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bench.report import Figure, publish
from catchment.rtl.driver.memory import PAGE, PinnedMemory
from catchment.rtl.driver.nic import Nic
from catchment.rtl.driver.request import Request
from catchment.rtl.driver.settings import NicSettings, StreamSettings
from catchment.rtl.generated.nic_regs import Role
from catchment.rtl.harness.verilated_nic import Pace, VerilatedNic
from catchment.wire.generated.constants import HEADER_OFFSET, DataType, Flag, PacketType

LATENCY = 20
FRAMES = 512
VECTOR = 256
LINE_RATE = 6.75  # clocks that 100 Gb/s leaves for a frame of 64 + 256 bytes with FCS, preamble and gap
PER_PACKET, OUT, BACK = 5.0, 25.0, 30.0
# Both ends begin with the whole window as credit.
UP, DOWN = StreamSettings(1, slots=1 << 20), StreamSettings(2, slots=1 << 20)
_ADDRESSES = (0x02_00_00_00_00_01, 0x0A_00_00_01, 0x02_00_00_00_00_02, 0x0A_00_00_02)
_BECOMES = {PacketType.PA: PacketType.FA, PacketType.HB: PacketType.MH}


Timed = tuple[bytes, int, int]


@dataclass(frozen=True)
class Machine:
    """A NIC, its driver and its memory."""

    nic: VerilatedNic
    driver: Nic
    memory: PinnedMemory

    def start(self, *, root: bool) -> None:
        mac, ip, peer_mac, peer_ip = _ADDRESSES if not root else (*_ADDRESSES[2:], *_ADDRESSES[:2])
        tx, rx = (DOWN, UP) if root else (UP, DOWN)
        self.driver.soft_reset()
        self.driver.configure(
            NicSettings(tx, rx, 1, mac, ip, peer_mac, peer_ip, rto=1 << 24, heartbeat_interval=1 << 20)
        )
        self.driver.start()
        self.nic.run(300)
        self.nic.frames()
        self.nic.marks()

    def push(self, size: int, dtype: DataType) -> Request:
        return self.driver.push(self.memory.allocate(size), dtype, 0)

    def pull(self, size: int, dtype: DataType) -> Request:
        return self.driver.pull(self.memory.allocate(size), dtype)

    def finish(self, requests: Iterable[Request]) -> None:
        for request in requests:
            self.driver.wait(request)
            request.check()
            self.memory.release(request.buffer)
            self.driver.release(request)
        self.nic.run(200)

    def data_frames(self) -> list[Timed]:
        """(bytes as the other end must get them, clock of the first beat, of the last) of what is no heartbeat."""
        return [(through(f.data), f.first, f.last) for f in self.nic.frames() if len(f.data) > 64]


def machine(role: Role) -> Machine:
    array = np.zeros(4 * PAGE, np.uint8)
    array.view(np.float32)[:] = np.random.default_rng(1).normal(size=array.size // 4) / 8
    memory = PinnedMemory(array, 1 << 40, tuple(range(0, array.size, PAGE)))
    nic = VerilatedNic(role, array, relax=4)
    nic.pace(Pace(latency=LATENCY))
    return Machine(nic, Nic(nic, memory), memory)


def through(frame: bytes) -> bytes:
    """What a switch of one worker makes of a frame."""
    version, kind = divmod(frame[HEADER_OFFSET], 16)
    changed = version << 4 | _BECOMES.get(PacketType(kind), kind)
    return frame[:HEADER_OFFSET] + bytes([changed]) + frame[HEADER_OFFSET + 1 :]


def per_packet(clocks: list[int]) -> float:
    return (clocks[-1] - clocks[0]) / (len(clocks) - 1)


@dataclass(frozen=True)
class Rate:
    """Clocks per packet out and back."""

    out: float
    back: float


def sustained(sender: Machine, receiver: Machine, pushed: DataType, pulled: DataType, bytes_each: int) -> Rate:
    """FRAMES vectors of `bytes_each` bytes in the sender's memory."""
    sender.start(root=sender.driver.root)
    receiver.start(root=receiver.driver.root)
    size = FRAMES * bytes_each
    sender.finish([sender.push(size, pushed)])
    sender.nic.run(2 * FRAMES)  # a push is complete when the transport has its data, which leave more slowly
    frames = sender.data_frames()
    assert len(frames) == FRAMES
    out = per_packet([first for _, first, _ in frames])
    first = into_memory(receiver, frames[:1], bytes_each, pulled, last=True)
    receiver.start(root=receiver.driver.root)
    return Rate(out, (into_memory(receiver, frames, size, pulled) - first) / (FRAMES - 1))


def into_memory(receiver: Machine, frames: list[Timed], size: int, pulled: DataType, *, last: bool = False) -> int:
    """Clocks from the first beat on the wire to the completion record; `last`: the last frame ends the message."""
    pull = receiver.pull(size, pulled)
    receiver.nic.marks()
    for frame, *_ in frames:
        flags = frame[HEADER_OFFSET + 1] | (Flag.LAST if last else 0)
        receiver.nic.receive(frame[: HEADER_OFFSET + 1] + bytes([flags]) + frame[HEADER_OFFSET + 2 :])
    receiver.finish([pull])
    marks = receiver.nic.marks()
    return marks["write_last"] - marks["rx_first"]


@dataclass(frozen=True)
class Journey:
    """Clocks of one message of `size` bytes, stage by stage."""

    to_ask: int  # request to memory's first address
    memory: int  # to its first beat
    to_frame: int  # to the first beat of the first frame
    out: int  # request to the last beat of the last frame
    into_memory: int  # first beat of the first frame on the wire to the first beat written
    all_written: int  # last beat of the last frame to the last beat written, the record included
    push: int  # request to completion record, as the record says
    frames: int


def journey(worker: Machine, root: Machine, size: int) -> Journey:
    worker.start(root=False)
    root.start(root=True)
    buffer = worker.memory.allocate(size)
    push = worker.driver.push(buffer, DataType.FP32, 0)
    asked = worker.nic.now
    worker.driver.wait(push)
    latency = push.check().latency
    worker.finish([push])
    out = worker.nic.marks()
    frames = worker.data_frames()
    pull = root.pull(size, DataType.FP32)
    root.nic.run(200)
    root.nic.marks()
    for frame, *_ in frames:
        root.nic.receive(frame)
    root.finish([pull])
    back = root.nic.marks()
    return Journey(
        out["ask_first"] - asked, out["read_first"] - out["ask_first"], frames[0][1] - out["read_first"],
        frames[-1][2] - asked, back["write_first"] - back["rx_first"], back["write_last"] - back["rx_last"], latency,
        len(frames),
    )  # fmt: skip


def small_pushes(worker: Machine) -> float:
    """Clocks per push of one vector, of a queue that is never empty."""
    worker.start(root=False)
    worker.nic.pace(Pace(latency=LATENCY, address_stall=255))
    requests = [worker.push(VECTOR, DataType.FP32) for _ in range(16)]
    worker.nic.frames()
    worker.nic.pace(Pace(latency=LATENCY))
    worker.finish(requests)
    return per_packet([first for _, first, _ in worker.data_frames()][1:])


def main() -> None:
    worker, root = machine(Role.WORKER), machine(Role.ROOT)
    gradients = sustained(worker, root, DataType.FP32, DataType.FP32, VECTOR)
    halves = sustained(worker, root, DataType.BF16, DataType.BF16, VECTOR // 2)
    parameters = sustained(root, worker, DataType.BYTES, DataType.BYTES, VECTOR)
    page, one = journey(worker, root, 4096), journey(worker, root, VECTOR)
    each = small_pushes(worker)
    limit = "line rate, 100 Gb/s"
    figures = [
        Figure("gradients out, fp32", gradients.out, "clocks/packet", limit, LINE_RATE, PER_PACKET / LINE_RATE),
        Figure("sums back, fp32", gradients.back, "clocks/packet", limit, LINE_RATE, PER_PACKET / LINE_RATE),
        Figure("gradients out, bf16", halves.out, "clocks/packet", limit, LINE_RATE, PER_PACKET / LINE_RATE),
        Figure("sums back, bf16", halves.back, "clocks/packet", limit, LINE_RATE, PER_PACKET / LINE_RATE),
        Figure("parameters out", parameters.out, "clocks/packet", limit, LINE_RATE, PER_PACKET / LINE_RATE),
        Figure("parameters back", parameters.back, "clocks/packet", limit, LINE_RATE, PER_PACKET / LINE_RATE),
        Figure("first data beat to first frame beat", page.to_frame, "clocks", "aim", OUT, 1.0),
        Figure("frame on the wire to memory, 256 B", one.into_memory, "clocks", "aim", BACK, 1.0),
        Figure("push of 4 KiB: request to last frame", page.out, "clocks", "its frames", page.frames * PER_PACKET),
        Figure("pushes of one vector from a full queue", each, "clocks/push", limit, LINE_RATE),
    ]
    notes = [
        f"push of 4 KiB: address after {page.to_ask}, memory {page.memory} ({LATENCY} set), first frame "
        f"{page.to_frame} later, {page.frames} frames until clock {page.out}; completion record after {page.push}",
        f"pull of 4 KiB: first beat on the wire to first beat written {page.into_memory}; last beat on the wire to the "
        f"completion record {page.all_written}, memory's answer to the data ({LATENCY}) included",
        f"one vector: out {one.out} clocks from the request, back {one.into_memory}, record {one.all_written}",
        "clocks of 4 ns",
    ]
    publish("rtl", figures, notes)


if __name__ == "__main__":
    main()
