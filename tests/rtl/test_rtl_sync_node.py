"""Rings of sync nodes on modelled links: bit for bit what numpy sums, whatever links and memories do."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest
from numpy.typing import NDArray

from catchment.hls.build import ring_scoreboard
from catchment.rtl.driver.bus import BusError
from catchment.rtl.driver.errors import NicError
from catchment.rtl.driver.sync import ENTRY, Operation, SyncNode, SyncRequest
from catchment.rtl.generated import sync_regs
from catchment.rtl.harness.sync_ring import NodeBus, SyncRing
from catchment.rtl.regmap.model import Register
from catchment.wire.generated.constants import DataType

PATIENCE = 4000


def filled(ring: SyncRing, rng: np.random.Generator) -> None:
    ring.memory[:] = rng.integers(-(2**31), 2**31, ring.memory.shape, np.int32)


def reduce_all(
    ring: SyncRing, pick: random.Random, tensors: dict[int, tuple[int, int]], operations: dict[int, Operation]
) -> None:
    """Every device posts every tensor, in its own order; all are right, and nothing else has changed."""
    expected = ring.memory.copy()
    for tensor, (first, entries) in tensors.items():
        part = ring.memory[:, first : first + entries]
        found = part.max(0) if operations[tensor] == "maximum" else part.sum(0, dtype=np.int32)
        expected[:, first : first + entries] = found
    posts = [(node, tensor) for node in ring.nodes for tensor in tensors]
    pick.shuffle(posts)
    requests: list[SyncRequest] = []
    for node, tensor in posts:
        first, entries = tensors[tensor]
        urgent = pick.random() < 0.3
        requests.append(node.sync(tensor, first * ENTRY, entries * ENTRY, operations[tensor], urgent))
    for request in requests:
        request.wait(PATIENCE)
    wrong = np.argwhere((ring.memory != expected).any(2))
    assert not len(wrong), f"{tensors}, {operations}: (device, entry) {wrong[:5].tolist()}"


def counted(ring: SyncRing, register: Register) -> int:
    return sum(node.counter(register) for node in ring.nodes)


def check_ring(devices: int, seed: int, faults: bool) -> None:
    pick = random.Random(seed * 100 + devices)
    tensors, top = {}, pick.randint(0, 70)
    for tensor in pick.sample(range(32), 5):
        entries = pick.choice((1, pick.randint(1, devices), pick.randint(1, 200), pick.randint(200, 900)))
        tensors[tensor] = (top, entries)
        top += entries + pick.randint(0, 3)
    operations: dict[int, Operation] = {tensor: "maximum" if pick.random() < 0.3 else "sum" for tensor in tensors}
    latency = pick.choice((1, 20, 60))
    with SyncRing(devices, top + 2, latency, seed, pick.choice((1, 30, 64))) as ring:
        filled(ring, np.random.default_rng(seed))
        if faults:
            ring.faults(damage=0.01, lose=0.005, stall=pick.choice((0.0, 0.3)))
            ring.pace(pick.choice((1, 20, 100)), pick.choice((0.0, 0.2)))
        reduce_all(ring, pick, tensors, operations)
        reduce_all(ring, pick, tensors, operations)  # a tensor may be posted again
        ring.faults()
        ring.run(4 * latency + 50)
        bad = [counted(ring, register) for register in (sync_regs.DAMAGED, sync_regs.REWINDS, sync_regs.RESENT)]
        # All damaged flits may have been idle; an entry that is missed is sent again.
        assert bool(bad[0]) == faults and bool(bad[1]) == bool(bad[2]) and (faults or not bad[1]), bad
        for register in (sync_regs.BROKEN, sync_regs.REFUSED, sync_regs.MEMORY_ERRORS, sync_regs.REGISTER_ERRORS):
            assert counted(ring, register) == 0, register.name


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "faults", [pytest.param(False, marks=pytest.mark.slow, id="good links"), pytest.param(True, id="bad links")]
)
def test_a_ring_sums_bit_for_bit(seed: int, faults: bool) -> None:
    for devices in (2, 16, *random.Random(seed).sample(range(3, 9), 1)):
        check_ring(devices, seed, faults)


@pytest.mark.slow
@pytest.mark.parametrize("devices", range(2, 17))
def test_rings_of_every_size(devices: int, seed: int) -> None:
    for turn in range(6):
        check_ring(devices, seed + turn, faults=turn % 3 != 0)


@pytest.mark.sampled(4)
def test_a_tensor_waits_for_the_last_device(seed: int) -> None:
    """Nobody is done, and other tensors are summed, until the last device has posted."""
    with SyncRing(4, 64, seed=seed) as ring:
        filled(ring, np.random.default_rng(seed))
        expected = ring.memory.sum(0, dtype=np.int32)
        early = [node.sync(6, 0, 32 * ENTRY) for node in ring.nodes[1:]]
        other = [node.sync(4, 32 * ENTRY, 32 * ENTRY) for node in ring.nodes]
        for request in other:
            request.wait(PATIENCE)
        ring.run(2000)
        assert not any(request.done for request in early)
        with pytest.raises(NicError, match="tensor 6 is not summed"):
            early[0].wait(3)
        for request in [*early, ring.nodes[0].sync(6, 0, 32 * ENTRY)]:
            request.wait(PATIENCE)
        assert (ring.memory == expected).all()


def test_what_cannot_be_posted_is_refused_and_counted() -> None:
    with SyncRing(2, 8) as ring:
        node, bus = ring.nodes[0], NodeBus(ring, 0)
        with pytest.raises(NicError, match="multiples of 64"):
            node.sync(0, 32, 64)
        with pytest.raises(NicError, match=r"tensor 32: a node has 0\.\.31"):
            node.sync(32, 0, 64)
        with pytest.raises(NicError, match="outside 0"):
            node.sync(0, 0, 64 << 24)
        bus.write(sync_regs.ENTRIES.address, 0)
        bus.write(sync_regs.POST.address, 3)
        bus.write(sync_regs.ENTRIES.address, 1)
        bus.write(sync_regs.ADDRESS.address, 8)
        bus.write(sync_regs.POST.address, 3)
        assert node.counter(sync_regs.REFUSED) == 2
        assert bus.read(sync_regs.POSTED.address) == 0
        node.sync(3, 0, 64)
        with pytest.raises(NicError, match="tensor 3 is posted and not done"):
            node.sync(3, 0, 64)
        bus.write(sync_regs.POST.address, 3)
        assert node.counter(sync_regs.REFUSED) == 3
        with pytest.raises(BusError):
            bus.write(sync_regs.RING.address, 0)
        with pytest.raises(BusError):
            bus.read(0xFFC)
        assert node.counter(sync_regs.REGISTER_ERRORS) == 2
        with pytest.raises(NicError, match="a ring has 2 to 16"):
            SyncNode(bus, 0, 17)
        with pytest.raises(NicError, match="1 to 256"):
            SyncNode(bus, 0, 2, 0)
        assert not node.done


@pytest.mark.sampled(4)
@pytest.mark.parametrize("operation", ["sum", "maximum"])
def test_the_kernel_makes_the_same_memories(operation: Operation, seed: int) -> None:
    """A chunk by the HLS kernel, pass by pass, and the same tensor by the hardware."""
    pick = random.Random(seed)
    devices, entries = pick.randint(2, 16), pick.randint(1, 100)
    with SyncRing(devices, entries, seed=seed) as ring:
        filled(ring, np.random.default_rng(seed))
        modelled = ring.memory.copy()
        numbers = (devices, entries, int(operation == "maximum"))
        ring_scoreboard().hls_ring(modelled.ctypes.data_as(ctypes.c_void_p), *map(ctypes.c_uint32, numbers))
        for request in [node.sync(0, 0, entries * ENTRY, operation) for node in ring.nodes]:
            request.wait(PATIENCE)
        assert (ring.memory == modelled).all()


def ring_order(values: NDArray[np.float32], least: int) -> NDArray[np.float32]:
    """Sums of (devices, entries, lanes) in the order of the ring: a segment's begins at its own device."""
    devices, entries = values.shape[:2]
    most = min(max(entries >> (devices - 1).bit_length() + 3, least), 256)
    sums: NDArray[np.float32] = np.empty_like(values[0])
    first = 0
    while first < entries:
        chunk = min(entries - first, most * devices)
        segment = -(-chunk // devices)
        for owner in range(devices):
            part = slice(first + owner * segment, first + min((owner + 1) * segment, chunk))
            total = values[owner, part].copy()
            for hop in range(1, devices):
                total = values[(owner + hop) % devices, part] + total
            sums[part] = total
        first += segment * devices
    return sums


@pytest.mark.slow
def test_sums_of_binary32_follow_the_ring(seed: int) -> None:
    """The sum of a segment begins at its device; against the places, devices count the other way."""
    pick = random.Random(seed)
    for devices in (2, *pick.sample(range(3, 17), 2)):
        entries, least = pick.randint(1, 2000), pick.choice((20, 64))
        with SyncRing(devices, 2 * entries, seed=seed, least_segment=least, fp32=True) as ring:
            assert ring.nodes[0].dtype is DataType.FP32
            values = ring.memory.view(np.float32)
            rng = np.random.default_rng(seed)
            values[:] = rng.normal(size=values.shape) * 2.0 ** rng.integers(-20, 20, values.shape)
            expected = [ring_order(values[:, :entries], least), ring_order(values[::-1, entries:], least)]
            ring.faults(damage=0.005)
            requests = [node.sync(g, g * entries * ENTRY, entries * ENTRY) for g in range(2) for node in ring.nodes]
            for request in requests:
                request.wait(PATIENCE)
            assert (values == np.concatenate(expected)).all()


def together(ring: SyncRing, register: Register, value: int) -> None:
    """Write a register of all devices in the same clock."""
    for device in range(len(ring.nodes)):
        ring.call("ring_begin_write", device, register.address, value)
    assert ring.call("ring_finish", 1000)


@pytest.mark.slow
@pytest.mark.parametrize("devices", [2, 3, 4, 8, 16])
@pytest.mark.parametrize(("size", "aim"), [(1 << 20, 0.97), (1 << 16, 0.90)], ids=["1 MiB", "64 KiB"])
def test_both_directions_are_busy(devices: int, size: int, aim: float, seed: int) -> None:
    """Tensors one after another: the share of the clocks in which each direction carries an entry."""
    entries, rounds = size // ENTRY, 4 if size > 1 << 16 else 16
    with SyncRing(devices, 2 * rounds * entries, seed=seed) as ring:
        filled(ring, np.random.default_rng(seed))
        expected = ring.memory.sum(0, dtype=np.int32)
        # The last tensor of each direction raises the interrupt.
        together(ring, sync_regs.DONE_ENABLE, 1 << 2 * rounds - 1)
        for tensor in range(2 * rounds):
            together(ring, sync_regs.ADDRESS, tensor * size)
            together(ring, sync_regs.ENTRIES, entries)
            together(ring, sync_regs.POST, tensor)
        began = ring.now
        sent = counted(ring, sync_regs.SENT_NEXT), counted(ring, sync_regs.SENT_BEFORE)
        ring.run_until_interrupts(2_000_000)
        clocks = ring.now - began
        ring.run(500)
        assert (ring.memory == expected).all()
    ideal = 2 * (devices - 1) * entries // devices * rounds - max(sent) // devices
    print(f"{devices} devices, {size} bytes: {clocks} clocks, {100 * ideal / clocks:.1f} % of both directions")
    assert ideal / clocks >= aim
