"""`make bench-sync-core`: rings of Verilated sync nodes, in clocks beside the formula: the same on every machine.

Tensors one after another in both directions at once show how much of the clocks the links carry entries; one tensor
alone in each direction shows what READY, GO and the last pass cost. Links take 20 clocks, as in the tests.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from bench.report import Figure, publish
from catchment.program import run_program
from catchment.rtl.driver.sync import ENTRY
from catchment.rtl.generated import sync_regs
from catchment.rtl.harness.sync_ring import SyncRing
from catchment.rtl.regmap.model import Register

SIZES = {"1 MiB": (1 << 20, 4, 0.97), "64 KiB": (1 << 16, 16, 0.90)}
"""Bytes of a tensor, how many follow each other in each direction, the share aimed at."""
LIMIT = 2_000_000


def ideal(devices: int, entries: int) -> float:
    """Clocks in which a direction carries 2(p-1)/p of the entries, one in each."""
    return 2 * (devices - 1) / devices * entries


def clocks(devices: int, size: int, rounds: int) -> int:
    """Clocks from the post of the first tensors to the interrupt of the last ones, both directions at once.

    Raises:
        RuntimeError: a sum is wrong.
    """
    entries = size // ENTRY
    with SyncRing(devices, 2 * rounds * entries) as ring:
        random = np.random.default_rng(devices)
        ring.memory[:] = random.integers(-(2**31), 2**31, ring.memory.shape, np.int32)
        expected = ring.memory.sum(0, dtype=np.int32)
        _write(ring, sync_regs.DONE_ENABLE, 3 << 2 * rounds - 2)
        began = ring.now
        for tensor in range(2 * rounds):
            _write(ring, sync_regs.ADDRESS, tensor * size)
            _write(ring, sync_regs.ENTRIES, entries)
            if tensor == 0:
                began = ring.now
            _write(ring, sync_regs.POST, tensor)
        ring.run_until_interrupts(LIMIT)
        took = ring.now - began
        while any(node.done >> 2 * rounds - 2 != 3 for node in ring.nodes):  # the other direction may be behind
            ring.run(8)
            took = ring.now - began
        if not (ring.memory == expected).all():
            raise RuntimeError(f"{devices} devices, {rounds} tensors of {size} bytes: a sum is not numpy's")
    return took


def _write(ring: SyncRing, register: Register, value: int) -> None:
    """Write a register of all devices in the same clock."""
    for device in range(len(ring.nodes)):
        ring.call("ring_begin_write", device, register.address, value)
    ring.call("ring_finish", 1000)


def figures(devices: int) -> list[Figure]:
    """The rows of one ring."""
    found = []
    for name, (size, rounds, aim) in SIZES.items():
        entries = size // ENTRY
        several, alone = clocks(devices, size, rounds), clocks(devices, size, 1)
        share, best = 100 * rounds * ideal(devices, entries) / several, 100 * ideal(devices, entries) / alone
        found += [
            Figure(f"p = {devices}, {rounds} of {name} each way, busy", share, "%", "all clocks", 100.0, aim),
            Figure(f"p = {devices}, one of {name} each way, busy", best, "%", "all clocks", 100.0),
            Figure(f"p = {devices}, one of {name} each way", alone, "clocks", "2(p-1)/p", ideal(devices, entries)),
        ]
    return found


def main(
    devices: Annotated[list[int] | None, typer.Option(help="p; repeat it. By default 2, 3, 4, 8, 16.")] = None,
) -> int:
    """Measure and report."""
    rows = [row for count in devices or (2, 3, 4, 8, 16) for row in figures(count)]
    publish("bench-sync-core", rows, ["Clocks of Verilated RTL: the same on every machine."])
    return 0


if __name__ == "__main__":
    run_program(main)
