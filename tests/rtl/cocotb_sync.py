"""Runs inside the simulator: rings of sync cores, whose memories end with the sums that numpy computes."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

SEED = int(os.environ["CATCHMENT_SEED"])
LANES, ENTRIES, DEPTH = 16, 256, 8192
HOP = 20 + 6
"""Clocks from an entry's way out of one core to its way out of the next: the link, and the buffers."""
RINGS = (2, 3, 4, 7, 8, 16)
SOME_RINGS = int(os.environ["CATCHMENT_RINGS"])
"""The number of these that a run sums."""

Entries = npt.NDArray[np.int32]
"""(devices, entries, lanes)"""
Chunk = tuple[int, int]
"""(address, entries)"""


async def begin(dut: Any) -> None:
    """A clock; each test has to start its own."""
    Clock(dut.clk, 4, "ns").start()
    await RisingEdge(dut.clk)


async def reset(dut: Any, devices: int) -> None:
    for name in ("start_valid", "stall_link", "stall_read", "stall_write", "poke", "start_maximum", "peek_device"):
        getattr(dut, name).value = 0
    dut.last.value = devices - 1
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0


async def write(dut: Any, data: Entries, address: int) -> None:
    dut.poke.value = 1
    for device, entries in enumerate(data):
        dut.poke_device.value = device
        for at, entry in enumerate(entries):
            dut.poke_address.value = address + at
            dut.poke_data.value = int.from_bytes(entry.tobytes(), "little")
            await RisingEdge(dut.clk)
    dut.poke.value = 0


async def read(dut: Any, devices: int, address: int, entries: int) -> Entries:
    found = np.empty((devices, entries, LANES), np.int32)
    for device in range(devices):
        dut.peek_device.value = device
        for at in range(entries):
            dut.peek_address.value = address + at
            await ReadOnly()
            found[device, at] = np.frombuffer(int(dut.peek_data.value).to_bytes(4 * LANES, "little"), np.int32)
            await RisingEdge(dut.clk)
    return found


async def run(  # noqa: PLR0917
    dut: Any, rng: random.Random, devices: int, chunks: list[Chunk], stalls: float, limit: int
) -> int:
    """Start the chunks at all devices, each when it likes and can; clocks until all are done everywhere."""
    everybody = (1 << devices) - 1
    done, clocks, started, missing = [0] * devices, 0, 0, everybody
    while min(done) < len(chunks):
        if missing == 0:
            started, missing = started + 1, everybody
        offered = 0
        if started < len(chunks):
            address, entries = chunks[started]
            dut.start_address.value, dut.start_entries.value = address, entries
            dut.start_segment.value = -(-entries // devices)
            offered = missing & (rng.getrandbits(devices) if stalls else everybody)
        dut.start_valid.value = offered
        for name in ("stall_link", "stall_read", "stall_write"):
            mask = sum((rng.random() < stalls) << device for device in range(devices)) if stalls else 0
            getattr(dut, name).value = mask
        await ReadOnly()
        missing &= ~(offered & int(dut.start_ready.value)) if started < len(chunks) else everybody
        finished = int(dut.done.value)
        done = [count + (finished >> device & 1) for device, count in enumerate(done)]
        clocks += 1
        assert clocks < limit, f"{devices} devices stand still: {done} of {len(chunks)} chunks"
        await RisingEdge(dut.clk)
    dut.start_valid.value = 0
    assert done == [len(chunks)] * devices
    return clocks


@cocotb.test()
async def sums_and_maxima(dut: Any) -> None:
    """Chunks of any size, back to back, from one entry on; entries between and behind them stay as they were."""
    rng = random.Random(SEED)
    await begin(dut)
    for devices in rng.sample(RINGS, SOME_RINGS):
        for maximum, stalls in ((False, 0.0), (False, 0.3), (True, rng.choice([0.0, 0.1, 0.6]))):
            await reset(dut, devices)
            sizes = [1, rng.randint(1, devices), rng.randint(1, 40), rng.randint(41, 41 + 8 * devices)]
            rng.shuffle(sizes)
            chunks, top = [], rng.randint(1, 50)
            for size in sizes:
                chunks.append((top, size))
                top += size + rng.randint(0, 2)
            values = np.random.default_rng(rng.getrandbits(32)).integers(
                -(2**31), 2**31, (devices, top + 2, LANES), np.int32
            )
            await write(dut, values, 0)
            dut.start_maximum.value = maximum
            await run(dut, rng, devices, chunks, stalls, 60_000)
            expected = values.copy()
            for first, size in chunks:
                part = values[:, first : first + size]
                with np.errstate(over="ignore"):
                    expected[:, first : first + size] = part.max(0) if maximum else part.sum(0, dtype=np.int32)
            found = await read(dut, devices, 0, top + 2)
            wrong = np.argwhere((found != expected).any(2))
            assert not len(wrong), f"{devices} devices, chunks {chunks}: (device, entry) {wrong[:5].tolist()}"


@cocotb.test()
async def segments_of_a_whole_buffer_do_not_stand_still(dut: Any) -> None:
    """The largest segments that a receive buffer holds, in every ring, with stalls."""
    rng = random.Random(SEED + 1)
    await begin(dut)
    for devices in rng.sample((2, 5, 16), 1):
        await reset(dut, devices)
        await run(dut, rng, devices, [(0, devices * ENTRIES)] * 2, rng.choice([0.0, 0.2]), 200_000)


@cocotb.test()
async def a_mebibyte_keeps_the_links_busy(dut: Any) -> None:
    """1 MiB in chunks of whole buffers takes 2 (p - 1) / p of its entries, one more segment, and little more."""
    rng = random.Random(SEED + 2)
    await begin(dut)
    devices = rng.choice((2, 4, 16))
    await reset(dut, devices)
    total = (1 << 20) // 64
    chunks = [(0, devices * ENTRIES)] * (total // (devices * ENTRIES))
    clocks = await run(dut, rng, devices, chunks, 0.0, 100_000)
    ideal = 2 * (devices - 1) * total // devices
    dut._log.info("%d devices, 1 MiB: %d clocks, %.1f %% of a direction", devices, clocks, 100 * ideal / clocks)
    assert clocks >= ideal
    assert ideal / clocks >= 0.97


@cocotb.test()
async def one_chunk_takes_its_passes_and_no_hops(dut: Any) -> None:
    """Cut-through: 2p - 1 segments, where a hop for each pass would be many more clocks."""
    rng = random.Random(SEED + 3)
    await begin(dut)
    for devices in (2, 4, 8):
        segment = rng.randint(2 * HOP, ENTRIES)
        await reset(dut, devices)
        clocks = await run(dut, rng, devices, [(0, devices * segment)], 0.0, 20_000)
        passes = (2 * devices - 1) * segment
        dut._log.info("%d devices, segments of %d: %d clocks, passes %d", devices, segment, clocks, passes)
        assert passes <= clocks <= passes + HOP
