"""Runs inside the simulator: rtl/hostif by the name of the device."""

from __future__ import annotations

import os
from collections import Counter, deque
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_start import start

TOP = os.environ["TOP"]


@cocotb.test(skip=TOP != "tlb")
async def tlb(dut: Any) -> None:
    """A dict of eight places is the model of fills, pages taken out, collisions, both ports at once, and a reset."""
    rng = await start(dut, fill_valid=0, lookup_valid=0, fill_vpn=0, fill_ppn=0, fill_present=0)
    places: dict[int, tuple[int, int]] = {}
    pages = [rng.getrandbits(27) & ~7 | place for place in range(8) for _ in range(3)]
    asked: list[deque[tuple[int, int | None]]] = [deque(), deque()]
    waiting: list[int | None] = [None, None]
    seen: Counter[str] = Counter()
    for clock in range(3000):
        if clock % 100 == 99:
            dut.rst.value = 1
            places.clear()
            waiting = [None, None]
            asked = [deque(), deque()]
        fill, page, present = rng.random() < 0.2, rng.choice(pages), rng.random() < 0.8
        frame = rng.getrandbits(43)
        dut.fill_valid.value, dut.fill_vpn.value, dut.fill_ppn.value, dut.fill_present.value = (
            fill,
            page,
            frame,
            present,
        )
        for port in range(2):
            if waiting[port] is None and rng.random() < 0.6:
                waiting[port] = rng.choice(pages)
            dut.lookup_vpn[port].value = waiting[port] or 0
        dut.lookup_valid.value = sum(1 << port for port in range(2) if waiting[port] is not None)
        await ReadOnly()
        reset = bool(dut.rst.value)
        taken, results = int(dut.lookup_ready.value), int(dut.result_valid.value)
        for port in range(2):
            if results >> port & 1 and not reset:
                wanted, expected = asked[port].popleft()
                hit = bool(dut.result_hit.value)
                assert hit == (expected is not None), f"page {wanted:#x}"
                assert not hit or int(dut.result_ppn.value) == expected
                seen["hit" if hit else "miss"] += 1
            if taken >> port & 1 and not reset:
                page_wanted = waiting[port]
                assert page_wanted is not None
                held = places.get(page_wanted & 7)
                asked[port].append((page_wanted, held[1] if held is not None and held[0] == page_wanted else None))
                seen["collision"] += held is not None and held[0] != page_wanted
                waiting[port] = None
        seen["both ask"] += int(dut.lookup_valid.value) == 3
        assert taken in (0, 1, 2)
        if fill and dut.fill_ready.value and not reset:
            if present:
                places[page & 7] = page, frame
            else:
                places.pop(page & 7, None)
            seen["fill" if present else "out"] += 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
    assert all(seen[what] > 50 for what in ("hit", "miss", "collision", "both ask", "fill", "out")), seen
    dut._log.info("coverage: %s", dict(seen))


@cocotb.test(skip=TOP != "request_queue")
async def request_queue(dut: Any) -> None:
    """A list of four is the model: order, the stamp, what is free, refusals a clock later."""
    rng = await start(dut, ring=0, request=0, now=0, m_request_ready=0)
    inside: deque[int] = deque()
    refused = False
    seen: Counter[str] = Counter()
    bits = len(dut.request)
    for clock in range(4000):
        busy = clock // 500 % 2
        ring, ready = rng.random() < (0.8, 0.2)[busy], rng.random() < (0.2, 0.8)[busy]
        request, now = rng.getrandbits(bits), rng.getrandbits(32)
        dut.ring.value, dut.request.value, dut.now.value, dut.m_request_ready.value = ring, request, now, ready
        await ReadOnly()
        assert int(dut.free.value) == 4 - len(inside)
        assert bool(dut.refused.value) == refused
        refused = ring and len(inside) == 4
        seen["refused"] += refused
        if dut.m_request_valid.value:
            assert int(dut.m_request.value) == inside[0]
            seen["taken"] += ready
        entered = ring and len(inside) < 4
        if dut.m_request_valid.value and ready:
            inside.popleft()
        if entered:
            inside.append(request >> 32 << 32 | now)
        seen["empty"] += not inside
        await RisingEdge(dut.clk)
    assert all(seen[what] > 50 for what in ("refused", "taken", "empty")), seen
    dut._log.info("coverage: %s", dict(seen))
