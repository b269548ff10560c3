"""Runs inside the simulator: links between devices of a ring, whose wires damage and lose flits."""

from __future__ import annotations

import os
import random
from collections import Counter, deque
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_start import SEED, start

TOP = os.environ["TOP"]
KINDS = ("data", "message")
ROOM = {"data": 32, "message": 4}
"""The parameters of link_pair."""
LATENCY, ENTRY, FLIT_BITS = 12, 512, 45 + 512 + 32
POLYNOMIAL = 0x1EDC6F41


def crc(value: int, bits: int) -> int:
    """CRC-32C a bit at a time, the highest first, begun with ones."""
    remainder = 0xFFFF_FFFF
    for i in reversed(range(bits)):
        carry = remainder >> 31 ^ (value >> i & 1)
        remainder = remainder << 1 & 0xFFFF_FFFF ^ (POLYNOMIAL if carry else 0)
    return remainder


@cocotb.test(skip=TOP != "link_crc")
async def link_crc(dut: Any) -> None:
    width = len(dut.data)
    rng = random.Random(SEED)
    Clock(dut.clk, 4, "ns").start()
    dut.enable.value = 1
    for value in [0, 1, (1 << width) - 1, 1 << width - 1, *(rng.getrandbits(width) for _ in range(60))]:
        dut.data.value = value
        await RisingEdge(dut.clk)
        await ReadOnly()
        assert int(dut.crc.value) == crc(value, width), hex(value)
        await RisingEdge(dut.clk)


class End:
    """One end's owner: what it sends, what it waits for, and the room that it gives."""

    def __init__(self) -> None:
        self.offered: dict[str, int | None] = dict.fromkeys(KINDS)
        self.places = 1
        self.expected: dict[str, deque[int]] = {kind: deque() for kind in KINDS}
        self.held = Counter(dict.fromkeys(KINDS, 0))
        self.taken: Counter[str] = Counter()


def bits_of(values: list[bool]) -> int:
    return sum(value << i for i, value in enumerate(values))


async def exchange(  # noqa: PLR0917
    dut: Any, rng: random.Random, ends: list[End], entries: int, faults: float, stall: float, idle: float
) -> Counter[str]:
    """`entries` of each kind both ways; whatever the wires do, each comes once, unchanged, in its order."""
    for end in ends:
        end.taken.clear()
    left = {kind: [entries, entries] for kind in KINDS}
    seen: Counter[str] = Counter()
    clocks = 0
    while any(ends[i].taken[kind] < entries for i in range(2) for kind in KINDS):
        for i, end in enumerate(ends):
            for kind in KINDS:
                if end.offered[kind] is None and left[kind][i] and rng.random() >= idle:
                    left[kind][i] -= 1
                    end.offered[kind] = rng.getrandbits(ENTRY)
                    end.places = rng.randint(1, 2) if kind == "message" else end.places
        for kind in KINDS:
            getattr(dut, f"s_{kind}_valid").value = bits_of([end.offered[kind] is not None for end in ends])
            both = [end.offered[kind] or 0 for end in ends]
            getattr(dut, "s_data" if kind == "data" else "s_message").value = both[1] << ENTRY | both[0]
            freed = [end.held[kind] > 0 and rng.random() >= idle for end in ends]
            for end, frees in zip(ends, freed, strict=True):
                end.held[kind] -= frees
            getattr(dut, f"{kind}_freed").value = bits_of(freed)
        dut.s_message_places.value = ends[1].places << 2 | ends[0].places
        dut.stall.value = bits_of([rng.random() < stall for _ in ends])
        dut.lose.value = bits_of([rng.random() < faults for _ in ends])
        dut.damage.value = bits_of([rng.random() < faults for _ in ends])
        dut.damaged_bit.value = rng.randrange(FLIT_BITS) << 10 | rng.randrange(FLIT_BITS)
        dut.other_bit.value = rng.randrange(FLIT_BITS) << 10 | rng.randrange(FLIT_BITS)
        await ReadOnly()
        for i, end in enumerate(ends):
            other = ends[1 - i]
            for kind in KINDS:
                value = end.offered[kind]
                if value is not None and int(getattr(dut, f"s_{kind}_ready").value) >> i & 1:
                    other.expected[kind].append(value)
                    end.offered[kind] = None
                if int(getattr(dut, f"m_{kind}_valid").value) >> i & 1:
                    assert end.expected[kind], f"a {kind} entry came that is not due"
                    came = int(dut.m_data.value) >> ENTRY * i & (1 << ENTRY) - 1
                    assert came == end.expected[kind].popleft(), f"{kind} entry {end.taken[kind]} of end {i}"
                    end.taken[kind] += 1
                    end.held[kind] += 1
                    assert end.held[kind] <= ROOM[kind], f"no room for {kind}"
        for event in ("damaged", "rewound", "resent"):
            seen[event] += int(getattr(dut, event).value).bit_count()
        clocks += 1
        assert clocks < 60_000, "the link stands still"
        await RisingEdge(dut.clk)
    seen["clocks"] = clocks
    return seen


@cocotb.test(skip=TOP != "link_pair")
async def nothing_is_lost_doubled_or_turned_around(dut: Any) -> None:
    rng = await start(
        dut, s_data_valid=0, s_message_valid=0, data_freed=0, message_freed=0, stall=0, lose=0, damage=0,
        s_data=0, s_message=0, s_message_places=0b0101,
    )  # fmt: skip
    ends = [End(), End()]
    seen = await exchange(dut, rng, ends, 200, 0.0, 0.0, 0.0)
    assert seen["damaged"] == seen["rewound"] == seen["resent"] == 0, seen
    seen = await exchange(dut, rng, ends, 40, 0.0, 0.4, 0.0)
    assert seen["damaged"] == seen["rewound"] == seen["resent"] == 0, f"wires that stand still: {seen}"
    for faults, stall, idle in ((0.02, 0.0, 0.0), (0.1, 0.3, 0.2), (0.3, 0.0, 0.5)):
        seen = await exchange(dut, rng, ends, 100, faults, stall, idle)
        dut._log.info("faults %s: %s", faults, dict(seen))
        assert all(seen[event] for event in ("damaged", "rewound", "resent")), seen


@cocotb.test(skip=TOP != "link_pair")
async def a_damaged_entry_costs_a_round_trip(dut: Any) -> None:
    """Some flits are damaged one after another; what is behind them is sent again, once."""
    rng = await start(
        dut, s_data_valid=0b01, s_message_valid=0, data_freed=0, message_freed=0, stall=0, lose=0, damage=0,
        s_data=0, s_message=0, s_message_places=0b0101, damaged_bit=3, other_bit=90,
    )  # fmt: skip
    came, clocks, resent, entries = 0, 0, 0, 300
    last_freed = 0
    hit = 150 + rng.randrange(50)
    while came < entries:
        dut.damage.value = 0b01 if hit <= clocks < hit + 12 else 0
        dut.data_freed.value = last_freed << 1
        await ReadOnly()
        last_freed = int(dut.m_data_valid.value) >> 1 & 1
        came += last_freed
        resent += int(dut.resent.value) & 1
        clocks += 1
        assert clocks < 5000
        await RisingEdge(dut.clk)
    round_trip = 2 * (LATENCY + 6)
    dut._log.info("%d clocks for %d entries, %d sent again", clocks, entries, resent)
    # Credits for 32 entries over a round trip of more clocks bound the rate.
    assert 0 < resent <= ROOM["data"] and clocks <= entries * round_trip // ROOM["data"] + 4 * round_trip


@cocotb.test(skip=TOP != "link_pair")
async def all_of_the_room_is_used_and_no_more(dut: Any) -> None:
    """Nothing is taken from an end; a message that must leave a place free is one message less."""
    await start(
        dut, s_data_valid=0, s_message_valid=0, data_freed=0, message_freed=0, stall=0, lose=0, damage=0,
        s_data=0, s_message=0, s_message_places=0b0110,
    )  # fmt: skip
    for _ in range(2 * (LATENCY + 6)):  # until each end has heard of the other's room
        await RisingEdge(dut.clk)
    for kind in KINDS:
        getattr(dut, f"s_{kind}_valid").value = 0b11
        taken = [0, 0]
        for _ in range(ROOM[kind] + 8):
            await ReadOnly()
            ready = int(getattr(dut, f"s_{kind}_ready").value)
            taken = [count + (ready >> i & 1) for i, count in enumerate(taken)]
            await RisingEdge(dut.clk)
        getattr(dut, f"s_{kind}_valid").value = 0
        assert taken == ([ROOM[kind]] * 2 if kind == "data" else [ROOM[kind] - 1, ROOM[kind]]), kind
