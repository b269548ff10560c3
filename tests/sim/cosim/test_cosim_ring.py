"""Memory devices in the co-simulation: a ring of sync nodes beside NICs around a switch, on one clock."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray

from catchment.controlplane.topology import star
from catchment.rtl.generated import sync_regs
from catchment.rtl.harness.sync_ring import LANES
from catchment.sim.cosim import ring_and_switch
from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.machine import LUWU, Kind, Machine, Transfer, UnderWay
from catchment.sim.cosim.models import RingModel
from catchment.sim.cosim.ring_and_switch import Comparison, compare, rows


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
    assert found.ring_formula == 2 * (devices - 1) / devices * entries  # a flit in each clock


@pytest.mark.slow
@pytest.mark.parametrize("way", ["ring", "switch"])
def test_a_sum_that_is_not_numpys_is_told(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One lane of one device is wrong when all is done, in the ring's memory or in what the switch sent."""
    finish, lanes = Machine.finish, ring_and_switch._lanes

    def damaged(machine: Machine, transfers: Iterable[UnderWay]) -> None:
        finish(machine, transfers)
        machine.memory("m1").memory[3, 5] ^= 1

    def wrong(pull: Transfer) -> NDArray[np.int32]:
        found = lanes(pull).copy()
        found[3 * LANES + 5] ^= 1
        return found

    if way == "ring":
        monkeypatch.setattr(Machine, "finish", damaged)
    else:
        monkeypatch.setattr(ring_and_switch, "_lanes", wrong)
    with pytest.raises(CosimError, match=f"^{way}: device {int(way == 'ring')}, entry 3 is not numpy's sum"):
        compare(2, 64)


def test_both_ways_are_compared_by_what_they_send_and_take() -> None:
    found = Comparison(
        4, 100, ring=300.0, ring_entries=150, ring_formula=150, switch=200.0, switch_entries=100, switch_formula=90
    )
    assert rows(found) == [
        ("ring", "150", "300", "150"), ("switch", "100", "200", "90"), ("ring by switch", "1.50", "1.50", ""),
    ]  # fmt: skip
    assert (found.by_bytes, found.by_time) == (1.5, 1.5)


def ring(devices: int, entries: int, seed: int, model: RingModel | None = None, **options: object) -> Machine:
    kinds = {f"m{i}": Kind.MEMORY_DEVICE for i in range(devices)}
    model = model or RingModel(entries=entries)
    return Machine(star(["w0", "w1"], program=LUWU), kinds, seed=seed, ring=model, **options)  # type: ignore[arg-type]


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


def test_a_slow_link_carries_what_leaves_now_and_no_queue(rng: random.Random) -> None:
    """A link takes no flit that would wait, not even an idle one: a sum posted late takes as long as an early one."""
    seed, entries = rng.getrandbits(30), rng.randrange(100, 200)
    model = RingModel(entries=entries, gbps=rng.choice([40.0, 60.0]))
    took = []
    for idle in (0, 3000):
        with ring(2, entries, seed, model=model) as machine:
            machine.run(idle)
            began = machine.now_ns
            took.append(max(summed(machine, seed, 0)) - began)
    assert took[0] >= entries * model.flit_ns  # 2(p-1)/p of them are sent
    assert abs(took[1] - took[0]) < 20 * model.flit_ns


def test_what_is_no_ring_is_refused() -> None:
    with ring(2, 4, 1) as machine, pytest.raises(CosimError, match="w0 is no memory device: m0, m1"):
        machine.memory("w0")
    with pytest.raises(CosimError, match="a ring's link of -1 Gb/s"):
        RingModel(gbps=-1)
