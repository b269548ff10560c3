"""Runs inside the simulator: the modules of rtl/common, one cocotb test each, by the name of the device."""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter, deque
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_start import start
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

TOP = os.environ["TOP"]


async def through(dut: Any, rng: random.Random, gaps: tuple[float, float], count: int, room: int) -> Counter[str]:
    """`count` beats through a queue of `room`; in and out are compared, and what happened is counted."""
    idle, stall = gaps
    inside: deque[int] = deque()
    seen: Counter[str] = Counter()
    offered: int | None = None
    sent = taken = 0
    while taken < count:
        if offered is None and sent < count and rng.random() >= idle:
            offered = rng.getrandbits(32)
            sent += 1
        dut.s_valid.value = offered is not None
        dut.s_data.value = offered if offered is not None else rng.getrandbits(32)
        dut.m_ready.value = rng.random() >= stall
        await ReadOnly()
        enters = offered is not None and bool(dut.s_ready.value)
        leaves = bool(dut.m_valid.value) and bool(dut.m_ready.value)
        if hasattr(dut, "level"):
            assert int(dut.level.value) == len(inside)
        seen["full"] += not dut.s_ready.value
        seen["empty"] += not inside
        seen["both"] += enters and leaves
        if leaves:
            assert int(dut.m_data.value) == inside.popleft(), f"beat {taken}"
            taken += 1
        if enters:
            assert offered is not None
            inside.append(offered)
            offered = None
        assert len(inside) <= room
        await RisingEdge(dut.clk)
    return seen


async def queue(dut: Any, room: int) -> None:
    rng = await start(dut, s_valid=0, m_ready=0, s_data=0)
    total: Counter[str] = Counter()
    for gaps in ((0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5), (0.05, 0.9), (0.9, 0.05)):
        total += await through(dut, rng, gaps, 200, room)
    assert all(total[what] > 50 for what in ("full", "empty", "both")), total
    dut._log.info("coverage: %s", dict(total))


@cocotb.test(skip=TOP != "sync_fifo")
async def sync_fifo(dut: Any) -> None:
    await queue(dut, 5)


@cocotb.test(skip=TOP != "skid_buffer")
async def skid_buffer(dut: Any) -> None:
    await queue(dut, 2)


@cocotb.test(skip=TOP != "arbiter_rr")
async def arbiter(dut: Any) -> None:
    """A list is the model: round robin begins after the last one served; a grant stays until done."""
    rng = await start(dut, request=0, done=0)
    asking, last, held = 0, 3, None
    served: Counter[int] = Counter()
    for _ in range(3000):
        asking |= rng.getrandbits(4) & rng.getrandbits(4)
        done = rng.random() < 0.5
        dut.request.value = asking
        dut.done.value = done
        await ReadOnly()
        order = [(last + 1 + i) % 4 for i in range(4)]
        expected = held if held is not None else next((i for i in order if asking >> i & 1), None)
        assert bool(dut.granted.value) == (expected is not None)
        if expected is not None:
            assert int(dut.grant.value) == 1 << expected and int(dut.index.value) == expected
            held = None if done else expected
            if done:
                served[expected] += 1
                last = expected
                asking &= ~(1 << expected)
        else:
            assert int(dut.grant.value) == 0
        await RisingEdge(dut.clk)
    assert min(served[i] for i in range(4)) > 50, served


@cocotb.test(skip=TOP != "axil_regs", timeout_time=100, timeout_unit="us")
async def axil_regs(dut: Any) -> None:
    """Words behind the strobes; addresses from 0x80 on are not mapped."""
    rng = await start(dut, wr_error=0, rd_error=0, rd_data=0)
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
    words = [0] * 32
    strobes: Counter[str] = Counter()

    async def behind() -> None:
        while True:
            await ReadOnly()
            write, address = bool(dut.wr_en.value), int(dut.wr_addr.value) if dut.wr_en.value else 0
            data, bytes_of = int(dut.wr_data.value) if write else 0, int(dut.wr_strb.value) if write else 0
            read = int(dut.rd_addr.value) if dut.rd_en.value else None
            await RisingEdge(dut.clk)
            if write and address < 0x80:
                mask = sum(0xFF << 8 * i for i in range(4) if bytes_of >> i & 1)
                words[address // 4] = words[address // 4] & ~mask | data & mask
                strobes["writes"] += 1
            if read is not None:
                dut.rd_error.value = read >= 0x80
                dut.rd_data.value = words[read // 4] if read < 0x80 else 0xDEAD
                strobes["reads"] += 1

    cocotb.start_soon(behind())
    model = bytearray(128)
    for _ in range(150):
        address, length = rng.randrange(0x80), rng.randrange(1, 9)
        length = min(length, 0x80 - address)
        if rng.random() < 0.5:
            data = rng.randbytes(length)
            response = await master.write(address, data)
            model[address : address + length] = data
        else:
            response = await master.read(address, length)
            assert response.data == model[address : address + length], hex(address)
        assert response.resp == AxiResp.OKAY
    assert (await master.read(0x80 + 4 * rng.randrange(8), 4)).resp == AxiResp.SLVERR
    dut.wr_error.value = 1
    assert (await master.write(0x80, b"lost")).resp == AxiResp.SLVERR
    dut.wr_error.value = 0
    assert (await master.write(0, b"kept")).resp == AxiResp.OKAY
    assert strobes["writes"] > 50 and strobes["reads"] > 50
    dut._log.info("coverage: %s", dict(strobes))


@cocotb.test(skip=TOP != "axil_regs", timeout_time=100, timeout_unit="us")
async def writes_behind_answers_that_wait(dut: Any) -> None:
    """Writes that come while the answer to an earlier one waits are done once each, in order, each with an answer."""
    rng = await start(dut, wr_error=0, rd_error=0, rd_data=0)
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
    master.write_if.b_channel.set_pause_generator(rng.random() < 0.7 for _ in itertools.count())
    done: list[tuple[int, int]] = []

    async def behind() -> None:
        while True:
            await ReadOnly()
            if dut.wr_en.value:
                done.append((int(dut.wr_addr.value), int(dut.wr_data.value)))
            await RisingEdge(dut.clk)

    cocotb.start_soon(behind())
    wanted = [(4 * rng.randrange(32), rng.getrandbits(32)) for _ in range(60)]
    writes = [cocotb.start_soon(master.write_dword(address, data)) for address, data in wanted]
    for write in writes:
        await write
    assert done == wanted


@cocotb.test(skip=TOP != "event_counters")
async def event_counters(dut: Any) -> None:
    """Each event is counted in all bits of its counter, also one in each clock, or while a reset clears them."""
    events, width = len(dut.events), len(dut.value)
    rng = await start(dut, events=0, index=0)
    for _ in range(events + 2):
        await RisingEdge(dut.clk)
    counts = [(1 << (10 + i % (width - 10))) - rng.randrange(1, 20) for i in range(events)]
    for i, count in enumerate(counts):
        dut.total_mem[i].value = count
    await RisingEdge(dut.clk)
    for clock in range(200):
        now = rng.getrandbits(events) if clock < 100 else (1 << events) - 1
        dut.events.value = now
        counts = [count + (now >> i & 1) for i, count in enumerate(counts)]
        await RisingEdge(dut.clk)
    dut.events.value = 0
    for _ in range(2 * events + 2):
        await RisingEdge(dut.clk)
    for i, count in enumerate(counts):
        dut.index.value = i
        await ReadOnly()
        assert int(dut.value.value) == count % (1 << width), i
        await RisingEdge(dut.clk)
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    dut.events.value = (1 << events) - 1
    for i in range(events - 1):
        dut.index.value = events - 1 - i  # not cleared yet
        await ReadOnly()
        assert int(dut.value.value) == 0, f"{i} clocks after the reset"
        await RisingEdge(dut.clk)
    dut.events.value = 0
    for _ in range(2 * events + 2):
        await RisingEdge(dut.clk)
    for i in range(events):
        dut.index.value = i
        await ReadOnly()
        assert int(dut.value.value) == events - 1, i
        await RisingEdge(dut.clk)
