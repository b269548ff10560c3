"""Jobs on trees of switches that run p4sgd.p4: hosts on shared memory, UDP between the switches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from catchment.controlplane.diagnosis.waiting import waiting_for
from catchment.controlplane.state.faults import clear_loss, set_loss
from catchment.controlplane.topology import racks
from catchment.host import EndpointError
from catchment.sim.lab.shm_lab import P4SGD
from catchment.sim.lab.tree_lab import TreeLab

RACKS = (("w0", "w1", "w2"), ("w3", "w4"))


@pytest.fixture(scope="module")
def lab() -> Iterator[TreeLab]:
    with TreeLab(racks(RACKS, program=P4SGD, lanes=8)) as lab:
        yield lab


@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_sums_are_exact(lab: TreeLab, loss: float, rng: random.Random) -> None:
    numbers = np.random.default_rng(rng.getrandbits(64))
    names = [name for rack in RACKS for name in rack]
    rng.shuffle(names)
    sizes = (8, 1, 100, *range(1, 12))
    arrays = [
        [numbers.integers(-(1 << 31), 1 << 31, size, dtype=np.int64).astype(np.int32) for size in sizes] for _ in names
    ]
    expected = [np.sum(parts, axis=0, dtype=np.int32) for parts in zip(*arrays, strict=True)]
    job = lab.slots(names, name=f"sums-{loss}", slots=8)
    assert len(job.tree) == len(lab.topology.switches)

    def work(wid: int) -> None:
        with lab.reducer(job, names[wid], timeout=120.0, spin=0.0) as reducer:
            for array in arrays[wid]:
                reducer.all_reduce(array, None)

    clients = {switch: lab.fabric.clients[switch] for switch in lab.topology.switches}
    try:
        if loss:
            for switch, client in clients.items():
                set_loss(client, list(lab.topology.ports(switch)), loss)
        with ThreadPoolExecutor(len(names)) as pool:
            for done in [pool.submit(work, wid) for wid in range(len(names))]:
                done.result()
    finally:
        for client in clients.values():
            clear_loss(client)
    for own in arrays:
        for got, wanted in zip(own, expected, strict=True):
            assert np.array_equal(got, wanted)


def test_who_is_missing_is_found_through_the_tree(lab: TreeLab) -> None:
    job = lab.slots(["w0", "w1", "w3"], name="waits", slots=4)
    with lab.reducer(job, "w0", timeout=1.0) as one, lab.reducer(job, "w3", timeout=1.0) as other:

        def call(reducer: object) -> None:
            with pytest.raises(EndpointError):
                reducer.all_reduce(np.ones(8, np.int32))  # type: ignore[attr-defined]

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(call, reducer) for reducer in (one, other)]:
                done.result()
    found = {waiting.switch: waiting.members for waiting in waiting_for(job, lab.fabric.clients)}
    home = {name: host.link.switch for name, host in lab.topology.hosts.items()}
    top = job.tree[0].switch
    assert found == {home["w0"]: ("w1",), top: (home["w0"],)}
