"""Memory devices in the co-simulation: a ring of sync nodes beside NICs around a switch, on one clock."""

from __future__ import annotations

import random

import numpy as np
import pytest

from catchment.controlplane.topology import star
from catchment.rtl.generated import sync_regs
from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.machine import LUWU, Kind, Machine
from catchment.sim.cosim.models import RingModel
from catchment.sim.cosim.ring_and_switch import compare, rows


@pytest.mark.slow  # NICs' and nodes' models
@pytest.mark.parametrize("devices", [2, 4])
def test_ring_and_switch_make_the_same_bits_on_one_clock(devices: int, rng: random.Random) -> None:
    """`compare` holds every sum to numpy's; the ring sends 2(p-1)/p of what the switch's NICs send, one way around."""
    entries = devices * rng.randrange(64, 100)
    found = compare(devices, entries, seed=rng.getrandbits(30))
    assert found.ring_entries == 2 * (devices - 1) * entries / devices
    assert found.switch_entries == -(-entries // 4) * 4
    assert found.ring > found.ring_formula
    assert found.switch > found.switch_formula
    assert [row[0] for row in rows(found)] == ["ring", "switch", "ring by switch"]


def ring(devices: int, entries: int, seed: int, **options: object) -> Machine:
    kinds = {f"m{i}": Kind.MEMORY_DEVICE for i in range(devices)}
    return Machine(star(["w0", "w1"], program=LUWU), kinds, seed=seed, ring=RingModel(entries=entries), **options)  # type: ignore[arg-type]


def summed(machine: Machine, seed: int, tensor: int) -> list[float]:
    """Every device has the sum; when each had it."""
    entries = len(machine.memory("m0").memory)
    own = np.random.default_rng(seed).integers(-(2**31), 2**31, (len(machine.memories), entries, 16), np.int32)
    for memory, each in zip(machine.memories.values(), own, strict=True):
        memory.memory[:] = each
    sums = [memory.sync(tensor, 0, entries) for memory in machine.memories.values()]
    with pytest.raises(CosimError, match=f"m0 sums tensor {tensor}: finish it first"):
        machine.memory("m0").sync(tensor + 2, 0, 1)
    with pytest.raises(CosimError, match="the sum of m1 is under way"):
        assert sums[1].finished_ns
    machine.finish(sums)
    for memory in machine.memories.values():
        assert (memory.memory == own.sum(0, dtype=np.int32)).all()
    return [each.finished_ns for each in sums]


def test_a_ring_is_the_same_to_the_picosecond_however_far_a_device_runs_ahead(rng: random.Random) -> None:
    seed, entries = rng.getrandbits(30), rng.randrange(100, 400)
    times = []
    for batch in (1, 7, 256):
        with ring(3, entries, seed, batch=batch) as machine:
            times.append(summed(machine, seed, 0))
    assert times[0] == times[1] == times[2]


def test_lost_and_damaged_flits_are_sent_again(rng: random.Random) -> None:
    seed = rng.getrandbits(30)
    with ring(2, 600, seed) as machine:
        for links in machine.links.values():
            for link in links:
                link.set_faults(0.01, 0.01)
        summed(machine, seed, 1)
        counts = [link.counts() for links in machine.links.values() for link in links]
        assert all(each["lost"] and each["damaged"] for each in counts)
        for register in (sync_regs.DAMAGED, sync_regs.RESENT):
            assert sum(m.driver.counter(register) for m in machine.memories.values()), register.name


def test_what_is_no_ring_is_refused() -> None:
    with ring(2, 4, 1) as machine, pytest.raises(CosimError, match="w0 is no memory device: m0, m1"):
        machine.memory("w0")
    with pytest.raises(CosimError, match="a ring's link of -1 Gb/s"):
        RingModel(gbps=-1)
