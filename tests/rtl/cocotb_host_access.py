"""Runs inside the simulator: rtl/hostif/host_access.sv before a memory of cocotbext-axi."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ReadOnly, RisingEdge, with_timeout
from cocotb_start import SEED, start
from cocotbext.axi import AxiBus, AxiSlave, MemoryRegion

from catchment.rtl.driver.records import RECORD
from catchment.rtl.generated.nic_regs import Status
from catchment.wire.generated.constants import DataType

PAGE = 1 << 21


class Memory(MemoryRegion):
    """Four pages; what lies in `broken` is answered with an error."""

    def __init__(self, data: bytearray) -> None:
        super().__init__(len(data), mem=data)
        self.broken = range(0)

    async def _read(self, address: int, length: int, **kwargs: Any) -> bytes:
        if address in self.broken:
            raise ValueError("broken")
        return bytes(self.mem[address : address + length])

    async def _write(self, address: int, data: bytes, **kwargs: Any) -> None:
        if address in self.broken:
            raise ValueError("broken")
        self.mem[address : address + len(data)] = data


class Bench:
    """host_access with a memory, and in the place of the data paths: what they would do with jobs and beats.

    Attributes:
        seen: what happened -> how often.
        pushed: tag -> what the push brought.
        going: a virtual page that is taken out when the next job is there, before it is taken.
    """

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.dut, self.rng = dut, rng
        self.mem = bytearray(rng.randbytes(4 * PAGE))
        self.memory = Memory(self.mem)
        self.slave = AxiSlave(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, target=self.memory)
        self.slave.read_if.log.setLevel("ERROR")
        self.slave.write_if.log.setLevel("ERROR")
        self.seen: Counter[str] = Counter()
        self.pushed: dict[int, bytes] = {}
        self.idle = self.stall = 0.0
        self.going: int | None = None
        cocotb.start_soon(self.watch())
        self.paths = [cocotb.start_soon(task) for task in (self.pushes(), self.pulls())]

    async def reset(self) -> None:
        """Device and data paths forget what they were at."""
        dut = self.dut
        for task in self.paths:
            task.cancel()
        for name, value in IDLE.items():
            getattr(dut, name).value = value
        dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(dut.clk)
        dut.rst.value = 0
        self.paths = [cocotb.start_soon(task) for task in (self.pushes(), self.pulls())]

    def pace(self, idle: float, stall: float) -> None:
        """How often each side stands still."""

        def pauses(share: float) -> Iterator[bool]:
            return (self.rng.random() < share for _ in itertools.count())

        self.idle, self.stall = idle, stall
        read, write = self.slave.read_if, self.slave.write_if
        for channel, share in (
            (read.ar_channel, stall), (read.r_channel, idle), (write.aw_channel, stall), (write.w_channel, stall),
            (write.b_channel, idle),
        ):  # fmt: skip
            channel.set_pause_generator(pauses(share))

    async def watch(self) -> None:
        """Each burst lies in one block of 4 KiB; what happens is counted."""
        dut = self.dut
        while True:
            await ReadOnly()
            for way, valid, ready, address, length in (
                ("read", dut.m_axi_arvalid, dut.m_axi_arready, dut.m_axi_araddr, dut.m_axi_arlen),
                ("write", dut.m_axi_awvalid, dut.m_axi_awready, dut.m_axi_awaddr, dut.m_axi_awlen),
            ):
                if valid.value and not ready.value:
                    self.seen[f"{way} waits"] += 1
                if valid.value and ready.value:
                    first, beats = int(address.value), int(length.value) + 1
                    assert first % 64 == 0 and beats <= 16, f"{way} burst of {beats} from {first:#x}"
                    assert first // 4096 == (first + 64 * beats - 1) // 4096, f"{way} burst over 4 KiB from {first:#x}"
                    self.seen[f"{way} beats"] += beats
                    self.seen[f"{way} bursts of {'16' if beats == 16 else '1' if beats == 1 else 'some'}"] += 1
                    self.seen[f"{way} to a block's end"] += (first + 64 * beats) % 4096 == 0
            events = int(dut.seen.value)
            for bit, name in enumerate(("push refused", "pull refused", "push unanswerable", "pull unanswerable")):
                self.seen[name] += events >> bit & 1
            self.seen["push missed"] += int(dut.missed.value) & 1
            self.seen["pull missed"] += int(dut.missed.value) >> 1
            self.seen["bus error"] += int(dut.bus_error.value)
            self.seen["recorded"] += int(dut.recorded.value)
            self.seen["clocks"] += 1
            await RisingEdge(dut.clk)

    async def job(self, way: int) -> dict[str, int]:
        dut = self.dut
        while not int(dut.job_valid.value) >> way & 1:
            await RisingEdge(dut.clk)
        if self.going is not None:
            await self.fill(self.going, 0, present=False)
            self.going = None
        job = {
            name: int(getattr(dut, f"job_{name}")[way].value)
            for name in ("status", "completion", "len", "tag", "started")
        }
        dut.job_ready.value = int(dut.job_ready.value) | 1 << way
        await RisingEdge(dut.clk)
        dut.job_ready.value = int(dut.job_ready.value) & ~(1 << way)
        return job

    async def complete(self, way: int, job: dict[str, int], status: int, moved: int) -> None:
        dut = self.dut
        values = {"status": status, "completion": job["completion"], "bytes": moved, "tag": job["tag"]}
        for name, value in (values | {"started": job["started"]}).items():
            getattr(dut, f"done_{name}")[way].value = value
        dut.done_valid.value = int(dut.done_valid.value) | 1 << way
        while True:
            await RisingEdge(dut.clk)
            if int(dut.done_ready.value) >> way & 1:
                break
        dut.done_valid.value = int(dut.done_valid.value) & ~(1 << way)

    async def pushes(self) -> None:
        dut = self.dut
        while True:
            job = await self.job(0)
            status, data = job["status"], b""
            while job["status"] == Status.OK:
                dut.m_axis_tready.value = self.rng.random() >= self.stall
                await RisingEdge(dut.clk)
                if not (dut.m_axis_tvalid.value and dut.m_axis_tready.value):
                    continue
                kept = int(dut.m_axis_tkeep.value).bit_count()
                data += int(dut.m_axis_tdata.value).to_bytes(64, "little")[:kept]
                user = int(dut.m_axis_tuser.value)
                status = Status.BUS_ERROR if user & 2 else Status.UNMAPPED_LATER if user & 1 else status
                if dut.m_axis_tlast.value:
                    break
            dut.m_axis_tready.value = 0
            self.pushed[job["tag"]] = data
            await self.complete(0, job, status, len(data))

    async def pulls(self) -> None:
        dut = self.dut
        while True:
            job = await self.job(1)
            status, left = job["status"], job["len"] if job["status"] == Status.OK else 0
            message = self.message(job["tag"], left)
            done = left == 0
            beats = [message[i : i + 64] for i in range(0, left, 64)]
            offered = False
            while not done:
                if beats and not offered and self.rng.random() >= self.idle:
                    dut.s_axis_tdata.value = int.from_bytes(beats[0], "little")
                    dut.s_axis_tkeep.value = (1 << len(beats[0])) - 1
                    offered = True
                dut.s_axis_tvalid.value = offered
                await RisingEdge(dut.clk)
                if offered and dut.s_axis_tready.value:
                    beats.pop(0)
                    offered = False
                if dut.pull_data_done.value:
                    done = True
                    if dut.pull_data_error.value:
                        status = Status.BUS_ERROR
                    elif dut.pull_data_unmapped.value:
                        status = Status.UNMAPPED_LATER
            dut.s_axis_tvalid.value = 0
            await self.complete(1, job, status, len(message))

    def message(self, tag: int, length: int) -> bytes:
        """What a pull brings."""
        return random.Random(SEED + tag).randbytes(length)

    async def fill(self, virtual: int, physical: int, present: bool = True) -> None:
        dut = self.dut
        while not dut.fill_ready.value:
            await RisingEdge(dut.clk)
        dut.fill_vpn.value, dut.fill_ppn.value, dut.fill_present.value = virtual // PAGE, physical // PAGE, present
        dut.fill_valid.value = 1
        await RisingEdge(dut.clk)
        dut.fill_valid.value = 0

    async def ring(self, pull: bool, vaddr: int, length: int, completion: int, tag: int, dtype: int) -> None:  # noqa: PLR0917
        dut = self.dut
        dut.request_vaddr.value, dut.request_len.value, dut.request_tag.value = vaddr, length, tag
        dut.request_completion.value, dut.request_dtype.value = completion, dtype
        (dut.pull_ring if pull else dut.push_ring).value = 1
        await RisingEdge(dut.clk)
        dut.pull_ring.value = dut.push_ring.value = 0
        await RisingEdge(dut.clk)

    async def record(self, offset: int) -> Any:
        """The record at a place of memory, when it has come."""
        while not self.mem[offset]:
            await RisingEdge(self.dut.clk)
        return np.frombuffer(bytes(self.mem[offset : offset + RECORD.itemsize]), RECORD)[0]


VIRTUAL = 0x7F00_0020_0000 & ~(4 * PAGE - 1)
IDLE = dict.fromkeys(
    ("hold", "push_ring", "pull_ring", "fill_valid", "job_ready", "done_valid", "m_axis_tready", "s_axis_tvalid"), 0
)


async def bench(dut: Any) -> Bench:
    """Three pages mapped in an order of their own; the fourth has no translation."""
    made = Bench(dut, await start(dut, **IDLE))
    for page, frame in ((0, 2), (1, 0), (2, 1)):
        await made.fill(VIRTUAL + page * PAGE, frame * PAGE)
    return made


def physical(offset: int) -> int:
    """The place of a virtual offset in memory."""
    return (2, 0, 1)[offset // PAGE] * PAGE + offset % PAGE


SIZES = (1, 63, 64, 65, 960, 1024, 1088, 4095, 4096)
# (idle, stall): each with sizes of its own, and blocks that are crossed.  Only a bus that stalls long gets the longest
# writes.
PACES = ((0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.4, 0.4), (0.0, 0.95))


@cocotb.test()
async def moves_bytes(dut: Any) -> None:
    """Idle x back-pressure x sizes, at places before, on and over the multiples of 4 KiB and of 2 MiB."""
    b = await bench(dut)
    tag, place = 0, 0
    for idle, stall in PACES:
        b.pace(idle, stall)
        for size in SIZES:
            tag += 2
            place = (place + 8191) // 4096 * 4096
            # In turn, so that each size has each place at one of the paces.
            offset = (place, place + 64 * b.rng.randrange(64), place + 4032, PAGE - 64)[tag // 2 % 4]
            for pull in (False, True):
                source = (PAGE if pull else 0) + (offset if offset + size < PAGE - 8192 or not pull else place)
                record = physical(2 * PAGE) + 32 * (tag + pull)
                b.mem[record] = 0
                where = [physical(at) for at in range(source, source + size)]
                before = b.mem[where[0] - 1] if where[0] else 0
                virtual_record = VIRTUAL + 2 * PAGE + 32 * (tag + pull)
                began = b.seen["clocks"]
                await b.ring(pull, VIRTUAL + source, size, virtual_record, tag + pull, DataType.BYTES)
                answer = await with_timeout(b.record(record), 400, "us")
                said = (answer["status"], answer["tag"], answer["bytes"])
                assert said == (Status.OK, tag + pull, size), said
                assert size // 64 < answer["latency"] <= b.seen["clocks"] - began
                found = bytes(b.mem[at] for at in where)
                assert found == (b.message(tag + pull, size) if pull else b.pushed[tag])
                assert not where[0] or b.mem[where[0] - 1] == before
                b.seen["over a page"] += where[-1] - where[0] != size - 1
                b.seen["over a block"] += source // 4096 != (source + size - 1) // 4096
    for _ in range(50):  # what is counted comes after its record
        await RisingEdge(dut.clk)
    for what in ("read", "write"):
        for kind in ("bursts of 16", "bursts of 1", "bursts of some", "to a block's end", "waits"):
            assert b.seen[f"{what} {kind}"], (what, kind)
    assert b.seen["over a block"] > 10 and b.seen["recorded"] == len(PACES) * len(SIZES) * 2, b.seen
    dut._log.info("coverage: %s", dict(b.seen))


@cocotb.test()
async def refuses(dut: Any) -> None:
    """Every bad request has its status, counts, and leaves the next one alone; a full queue refuses."""
    b = await bench(dut)
    b.pace(0.2, 0.2)
    beyond = VIRTUAL + 3 * PAGE
    # (vaddr, length, type, status)
    bad = (
        (VIRTUAL, 0, DataType.BYTES, Status.BAD_LENGTH),
        (VIRTUAL, 6, DataType.FP32, Status.BAD_LENGTH),
        (VIRTUAL, 5, DataType.FP16, Status.BAD_LENGTH),
        (VIRTUAL + 4, 64, DataType.FP32, Status.BAD_ALIGNMENT),
        (VIRTUAL, 64, 99, Status.BAD_TYPE),
        (beyond, 64, DataType.BYTES, Status.UNMAPPED),
        (beyond - 64, 128, DataType.BYTES, Status.UNMAPPED),
        (VIRTUAL | 1 << 50, 64, DataType.BYTES, Status.UNMAPPED),
        (VIRTUAL + PAGE + 4096, 64, DataType.BYTES, Status.BUS_ERROR),
        (VIRTUAL + PAGE, 64, DataType.BYTES, Status.OK),
    )
    b.memory.broken = range(physical(PAGE + 4096), physical(PAGE + 4096) + 64)
    reference = bytes(b.mem)
    tag = 0
    for vaddr, length, dtype, status in bad:
        for pull in (False, True):
            record = physical(2 * PAGE) + 32 * tag
            b.mem[record] = 0
            await b.ring(pull, vaddr, length, VIRTUAL + 2 * PAGE + 32 * tag, tag, dtype)
            answer = await with_timeout(b.record(record), 200, "us")
            assert (answer["status"], answer["tag"]) == (status, tag), (vaddr, length, dtype, pull, answer)
            b.seen[f"{status.name} {'pull' if pull else 'push'}"] += 1
            tag += 1
    assert bytes(b.mem[physical(0) : physical(0) + PAGE]) == reference[physical(0) : physical(0) + PAGE]
    assert b.seen["push missed"] >= 3 and b.seen["pull missed"] >= 3 and b.seen["bus error"] >= 2, b.seen

    # A record without a page cannot be written: the request is dropped, and the next one is served.
    for pull in (False, True):
        await b.ring(pull, VIRTUAL, 64, beyond, 0, DataType.BYTES)
        await b.ring(pull, VIRTUAL, 64, VIRTUAL + 2 * PAGE + 8, 0, DataType.BYTES)
        record = physical(2 * PAGE) + 32 * tag
        b.mem[record] = 0
        await b.ring(pull, VIRTUAL, 64, VIRTUAL + 2 * PAGE + 32 * tag, tag, DataType.BYTES)
        assert (await with_timeout(b.record(record), 200, "us"))["status"] == Status.OK
        tag += 1
    assert b.seen["push unanswerable"] == 2 and b.seen["pull unanswerable"] == 2, b.seen

    # More rings than the queue has places, while memory gives nothing.
    b.slave.read_if.r_channel.set_pause_generator(itertools.repeat(True))
    for _ in range(12):
        await b.ring(False, VIRTUAL, 4096, VIRTUAL + 2 * PAGE + 32 * tag, tag, DataType.BYTES)
    assert b.seen["push refused"] >= 4 and int(dut.push_free.value) == 0, b.seen
    dut._log.info("coverage: %s", dict(b.seen))


@cocotb.test()
async def pages_that_go(dut: Any) -> None:
    """A page that is taken out after it was looked for is not touched: no burst is begun for it, and the rest moves."""
    b = await bench(dut)
    b.pace(0.3, 0.3)
    tag, begins = 0, PAGE - 4096
    first, second = physical(begins), physical(PAGE)
    for pull in (False, True):
        for status in (Status.UNMAPPED_LATER, Status.OK, Status.UNMAPPED_LATER):
            await b.fill(VIRTUAL + PAGE, second)
            b.going = VIRTUAL + PAGE if status == Status.UNMAPPED_LATER else None
            moved = 4096 if b.going else 8192
            b.seen["read beats"] = b.seen["write beats"] = 0
            kept = bytes(b.mem[second : second + 4096])
            record = physical(2 * PAGE) + 32 * tag
            b.mem[record] = 0
            await b.ring(pull, VIRTUAL + begins, 8192, VIRTUAL + 2 * PAGE + 32 * tag, tag, DataType.BYTES)
            answer = await with_timeout(b.record(record), 200, "us")
            assert (answer["status"], answer["tag"], answer["bytes"]) == (status, tag, 8192), answer
            for _ in range(50):  # nothing comes late
                await RisingEdge(dut.clk)
            beats = b.seen["read beats"], b.seen["write beats"]
            assert beats == ((0, moved // 64 + 1) if pull else (moved // 64, 1)), (status, pull, beats)
            there = bytes(b.mem[first : first + 4096]) + bytes(b.mem[second : second + 4096])
            if pull:
                assert there == (b.message(tag, 8192)[:moved] + kept)[:8192]
            else:
                assert b.pushed[tag] == there[:moved] + bytes(8192 - moved)
            tag += 1


@cocotb.test()
async def holds(dut: Any) -> None:
    """`hold` begins no new burst, and `idle` comes once memory has answered; then a reset, and it works again."""
    b = await bench(dut)
    b.pace(0.5, 0.0)

    def bursts() -> list[int]:
        return [
            sum(count for what, count in b.seen.items() if what.startswith(f"{way} bursts"))
            for way in ("read", "write")
        ]

    for tag in range(4):
        for pull in (False, True):
            await b.ring(pull, VIRTUAL + PAGE * pull, 16384, VIRTUAL + 2 * PAGE, tag, DataType.BYTES)
        for _ in range(b.rng.randrange(10, 120)):
            await RisingEdge(dut.clk)
        dut.hold.value = 1
        at_hold = bursts()
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)

        async def rests() -> None:
            while not dut.idle.value:
                await RisingEdge(dut.clk)

        await with_timeout(rests(), 100, "us")

        # One of each way may have been asked for already.
        assert all(now - then <= 1 for now, then in zip(bursts(), at_hold, strict=True))
        before = bursts()
        for _ in range(50):
            await RisingEdge(dut.clk)
        assert dut.idle.value and bursts() == before
        await b.reset()
        for offset in (0, PAGE, 2 * PAGE):
            await b.fill(VIRTUAL + offset, physical(offset))
        for pull in (False, True):
            record = physical(2 * PAGE) + 32 * (8 + pull)
            b.mem[record] = 0
            await b.ring(pull, VIRTUAL, 200, VIRTUAL + 2 * PAGE + 32 * (8 + pull), 8 + tag, DataType.BYTES)
            answer = await with_timeout(b.record(record), 200, "us")
            assert (answer["status"], answer["tag"], answer["bytes"]) == (Status.OK, 8 + tag, 200)
            found = bytes(b.mem[physical(0) : physical(0) + 200])
            assert found == (b.message(8 + tag, 200) if pull else b.pushed[8 + tag])
