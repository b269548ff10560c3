"""Jobs on p4sgd.p4 with tags: their keys, and attacks on one that runs."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from catchment.checkout import ROOT
from catchment.controlplane.jobs import JobPlan
from catchment.host import AllReducer, EndpointError, Stream
from catchment.sim.golden import tags
from catchment.sim.lab.shm_lab import ShmLab
from catchment.sim.lab.traffic.attack_kind import AttackKind
from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.kinds import attacks
from catchment.wire.generated.constants import DropReason, Header, PacketType

WORKERS = ("w0", "w1", "w2")
LANES = 8
PATIENCE = 240.0


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(WORKERS, program=ROOT / "p4src" / "p4sgd.p4", lanes=LANES, slots=64, tags=True) as lab:
        yield lab


@pytest.fixture
def job(lab: ShmLab) -> Iterator[JobPlan]:
    job = lab.slots(WORKERS, slots=4, tags=True)
    yield job
    lab.remove(job)


def refused(lab: ShmLab) -> int:
    return lab.client.counter("drops", DropReason.BAD_TAG)[0].packets


def until_refused(lab: ShmLab, count: int) -> None:
    until = time.monotonic() + PATIENCE
    while refused(lab) < count and time.monotonic() < until:
        time.sleep(0.01)


def sender_of(lab: ShmLab, job: JobPlan, host: str) -> Sender:
    here = lab.topology.host(host)
    return Sender.of(job.describe(host), here.mac, lab.topology.switch(here.link.switch).mac)


@pytest.mark.sampled(4)
def test_attacks_on_rounds_that_run(lab: ShmLab, job: JobPlan, rng: random.Random) -> None:
    """Who has a worker's port and addresses, but no key, changes no sum; each of its frames is counted."""
    before, count = refused(lab), 60
    forger = attacks(AttackKind.KEYLESS, sender_of(lab, job, "w1"), job.describe("w1"), rng)
    frames = [next(forger) for _ in range(count)]
    assert {attack.reason for attack in frames} == {DropReason.BAD_TAG}
    with lab.port("w1") as port:
        port.send([attack.frame for attack in frames])
        until_refused(lab, before + count)
    calls = [[np.array([rng.randrange(-(1 << 30), 1 << 30) for _ in range(100)], np.int32) for _ in WORKERS]
             for _ in range(5)]  # fmt: skip

    def worker(rank: int) -> list[np.ndarray]:
        with lab.reducer(job, WORKERS[rank], timeout=PATIENCE) as reducer:
            sums = []
            for parts in calls:
                total = np.zeros_like(parts[rank])
                reducer.all_reduce(parts[rank], out=total)
                sums.append(total)
            assert reducer.stats()["rejects"]["tag"] == 0
        return sums

    with ThreadPoolExecutor(len(WORKERS)) as pool:
        for sums in pool.map(worker, range(len(WORKERS))):
            for total, parts in zip(sums, calls, strict=True):
                np.testing.assert_array_equal(total, sum(parts))
    assert refused(lab) == before + count


def answered(switch: socket.socket, key: bytes) -> int:
    """Answer a frame as the switch of a job of one would, forged answers first; gives how many of these there were."""
    try:
        data, address = switch.recvfrom(2048)
    except TimeoutError:
        return 0
    read = tags.opened(key, data)
    assert read is not None, data.hex()
    header, payload = read
    is_vector = header.type == PacketType.PA
    answer: Header = header._replace(type=PacketType.FA if is_vector else PacketType.CNF)
    nines = (9).to_bytes(4, "big") * LANES if is_vector else b""
    good = tags.tagged(key, answer, payload)
    forged = [
        answer._replace(version=1).pack() + nines,
        tags.tagged(bytes(16), answer, nines),
        tags.tagged(key, answer, nines)[:-1],
        good[:-1] + bytes([good[-1] ^ 1]),
    ]
    for frame in (*forged, good):
        switch.sendto(frame, address)
    return len(forged)


@pytest.mark.sampled(4)
def test_forged_sums_and_confirmations_are_counted_by_the_worker(job: JobPlan, rng: random.Random) -> None:
    """Every answer of a switch of the test's own comes after forged ones; the sums are those of the switch."""
    stream = replace(Stream(**job.describe("w0")["sums"]), workers=1)
    key = bytes.fromhex(stream.key)
    values = np.array([rng.randrange(-(1 << 31), 1 << 31) for _ in range(100)], np.int32)
    into, sent = np.zeros_like(values), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch:
        switch.bind(("127.0.0.1", 0))
        switch.settimeout(0.05)
        where = {"local": ("127.0.0.1", 0), "switch": switch.getsockname(), "timeout": PATIENCE}
        with AllReducer(stream=stream, wid=0, **where) as reducer:
            reduction = reducer.prepare(values, out=into)
            reduction.start()
            done = False
            while not done:
                sent += answered(switch, key)
                try:
                    reduction.wait(0.001)
                    done = True
                except TimeoutError:
                    continue
            assert reducer.stats()["rejects"]["tag"] == sent > 0
    np.testing.assert_array_equal(into, values)


def test_a_worker_refuses_rounds_that_its_key_does_not_serve_for(job: JobPlan) -> None:
    stream = replace(Stream(**job.describe("w0")["sums"]), workers=1, key_frames=4)
    with AllReducer(stream=stream, wid=0, local=("127.0.0.1", 0), switch=("127.0.0.1", 9), timeout=1.0) as reducer:
        reducer.prepare(np.zeros(2 * LANES, np.int32)).start()
        assert reducer.wants_keys
        with pytest.raises(EndpointError, match="catchment job renew") as caught:
            reducer.all_reduce(np.zeros(3 * LANES, np.int32))
        assert caught.value.kind == "spent" and not caught.value.fatal
