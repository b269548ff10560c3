"""What a sync node's registers promise of posts, their order, memory and the interrupt."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from catchment.rtl.driver.errors import NicError
from catchment.rtl.driver.sync import ENTRY
from catchment.rtl.generated import sync_regs
from catchment.rtl.harness.sync_ring import NodeBus, SyncRing, SyncRingError

PATIENCE = 4000


def filled(ring: SyncRing, seed: int) -> None:
    ring.memory[:] = np.random.default_rng(seed).integers(-(2**31), 2**31, ring.memory.shape, np.int32)


def interrupts(ring: SyncRing) -> bool:
    """Whether those of all devices are raised."""
    return bool(ring.call("ring_run", 0, 1))


def test_a_post_of_what_no_ring_can_sum_is_refused_and_counted() -> None:
    """A place that is in no ring, and a tensor that goes on where the addresses begin."""
    with SyncRing(2, 8) as ring:
        node, bus = ring.nodes[0], NodeBus(ring, 0)
        bus.write(sync_regs.ENTRIES.address, 1)
        for count, (position, last) in enumerate(((0, 0), (2, 1), (15, 14)), 1):
            bus.write(sync_regs.RING.address, sync_regs.RING.pack(position=position, last=last))
            bus.write(sync_regs.POST.address, 3)
            assert node.counter(sync_regs.REFUSED) == count, (position, last)
        bus.write(sync_regs.RING.address, sync_regs.RING.pack(position=0, last=1))
        bus.write(sync_regs.ADDRESS.address, 2**32 - ENTRY)
        bus.write(sync_regs.ADDRESS.address + 4, 0x3F)
        bus.write(sync_regs.ENTRIES.address, 2)
        bus.write(sync_regs.POST.address, 3)
        assert node.counter(sync_regs.REFUSED) == 4
        assert bus.read(sync_regs.POSTED.address) == 0
        with pytest.raises(NicError, match="addresses end at 0x4000000000"):
            node.sync(0, (1 << 38) - ENTRY, 2 * ENTRY)
        node.sync(3, (1 << 38) - ENTRY, ENTRY)
        assert (bus.read(sync_regs.POSTED.address), node.counter(sync_regs.REFUSED)) == (1 << 3, 4)


def test_urgent_tensors_are_summed_first_then_the_oldest(seed: int) -> None:
    """Two run already when the others are posted."""
    with SyncRing(2, 2400, seed=seed) as ring:
        filled(ring, seed)
        expected = ring.memory.sum(0, dtype=np.int32)
        places = {0: (0, 1000), 2: (1000, 1000), 6: (2000, 100), 4: (2100, 100), 10: (2200, 100), 8: (2300, 100)}
        for tensor, (first, entries) in places.items():
            for node in ring.nodes:
                node.sync(tensor, first * ENTRY, entries * ENTRY, urgent=tensor in {10, 8})
        order: list[int] = []
        for _ in range(PATIENCE):
            order += [t for t in places if t not in order and ring.nodes[0].done >> t & 1]
            if len(order) == len(places):
                break
        assert order == [0, 2, 10, 8, 6, 4]
        ring.run(1000)  # until the other device is done, too
        assert (ring.memory == expected).all()


def test_all_is_in_memory_when_the_interrupt_comes(seed: int) -> None:
    """Memory takes long to answer; the last entry is in a burst of its own, or in one with others."""
    with SyncRing(2, 200, seed=seed) as ring:
        for tensor, (latency, entries) in enumerate(((1, 200), (200, 200), (60, 2), (60, 2), (200, 2), (200, 2))):
            ring.pace(latency)
            filled(ring, seed + tensor)
            expected = ring.memory[:, :entries].sum(0, dtype=np.int32)
            for node in ring.nodes:
                node.bus.write(sync_regs.DONE_ENABLE.address, 1 << tensor)
                node.sync(tensor, 0, entries * ENTRY)
            assert not interrupts(ring)
            ring.run_until_interrupts(20_000)
            assert (ring.memory[:, :entries] == expected).all(), (latency, entries)


def test_an_end_is_not_lost_while_done_is_cleared(seed: int) -> None:
    """DONE is cleared about the clock in which the tensor is done; the interrupt comes whatever came first."""
    with SyncRing(2, 8, seed=seed) as ring:
        first, second = ring.nodes
        for request in [node.sync(2, 0, ENTRY) for node in ring.nodes]:
            request.wait(PATIENCE)
        second.bus.write(sync_regs.DONE_ENABLE.address, 1 << 2)  # raised from now on
        first.bus.write(sync_regs.DONE_ENABLE.address, 1 << 0)

        def post() -> None:
            for node in ring.nodes:
                node.sync(0, 0, 4 * ENTRY)

        post()
        began = ring.now
        ring.run_until_interrupts(PATIENCE)
        clocks = ring.now - began
        ring.run(200)  # until the other device is done, too
        for before in range(12):
            post()
            ring.run(clocks - before)
            raised = interrupts(ring)
            ring.call("ring_begin_write", 0, sync_regs.DONE.address, 1 << 0)
            for _ in range(40):
                ring.run(1)
                raised = raised or interrupts(ring)
            assert ring.call("ring_finish", PATIENCE)
            ring.run(200)
            assert raised, f"cleared {before} clocks before its end"


def test_what_memory_refuses_is_counted(seed: int) -> None:
    """Reads and writes of either core, beyond the memory that there is."""
    with pytest.raises(SyncRingError), SyncRing(2, 8, seed=seed) as ring:  # noqa: PT012
        counts = [0]
        for tensor in (0, 1):
            for request in [node.sync(tensor, 0x1_0000, 4 * ENTRY) for node in ring.nodes]:
                request.wait(PATIENCE)
            counts.append(ring.nodes[0].counter(sync_regs.MEMORY_ERRORS))
        # Four beats are read, and written in one burst or more.
        assert all(4 < b - a <= 8 for a, b in pairwise(counts)), counts


def test_a_shortest_segment_beyond_a_buffer_is_as_long_as_it(seed: int) -> None:
    with SyncRing(2, 1400, seed=seed) as ring:
        filled(ring, seed)
        expected = ring.memory.sum(0, dtype=np.int32)
        for node in ring.nodes:
            node.bus.write(sync_regs.LEAST_SEGMENT.address, 0x1FF)
        for request in [node.sync(0, 0, 1400 * ENTRY) for node in ring.nodes]:
            request.wait(PATIENCE)
        assert (ring.memory == expected).all()
