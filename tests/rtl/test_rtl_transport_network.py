"""NICs in hardware around p4src/luwu.p4, or its slow model, under any faults: every sum and parameter bit for bit."""

from __future__ import annotations

import random
from contextlib import ExitStack

import numpy as np
import pytest
from transport_network import (
    ROOT_PORT,
    Job,
    NicNetwork,
    embedded_switch,
    model_switch,
    settings_of,
    some_faults,
)
from transport_nic import VECTOR_BYTES, Gaps, Meta, Nic, StreamSettings

from catchment.rtl.generated.nic_regs import Role
from catchment.sim.world.star import Hops, Inject
from catchment.wire.generated.constants import DataType, Mode

pytestmark = pytest.mark.sampled(4)  # what it builds takes half a minute

SWITCHES = {"model": model_switch, "embedded": embedded_switch}
BASES = (0, 0xFFFF_FFF0, 0x7FFF_FFE0, 0x0000_03F8)


def contribution(worker: int, index: int) -> np.ndarray:
    """Different for every worker, vector and lane, over all 32 bits."""
    return np.random.default_rng([worker, index]).integers(0, 1 << 32, VECTOR_BYTES // 4, dtype=np.uint32)


def meta_of(worker: int, index: int, count: int) -> Meta:
    return Meta(
        DataType.FP32, exp=index % 256 - 128, next_exp=(index * 7 + worker * 53) % 256 - 128,
        expv=(index + worker) % 5 != 0, sat=(index * 3 + worker) % 7 == 0, last=index % 8 == 7 or index == count - 1,
    )  # fmt: skip


def summed(workers: int, index: int, count: int) -> tuple[bytes, Meta]:
    """What everyone must get, from the protocol's text."""
    lanes = sum((contribution(w, index) for w in range(workers)), np.zeros(VECTOR_BYTES // 4, np.uint32))
    metas = [meta_of(w, index, count) for w in range(workers)]
    valid = all(m.expv for m in metas)
    # The switch takes the maximum over all, valid or not; a NIC says 0 where it has nothing to say.
    highest = max(m.next_exp if m.expv else 0 for m in metas)
    meta = Meta(
        DataType.FP32, metas[0].exp, highest, valid, any(m.sat for m in metas), metas[0].last, VECTOR_BYTES
    )  # fmt: skip
    return np.asarray(lanes, np.uint32).tobytes(), meta


def parameters(index: int) -> tuple[bytes, Meta]:
    count = VECTOR_BYTES if index % 4 else 1 + index * 37 % VECTOR_BYTES
    data = np.random.default_rng([99, index]).integers(0, 256, VECTOR_BYTES, dtype=np.uint8).tobytes()
    return data, Meta(DataType.BYTES, last=count != VECTOR_BYTES, bytes=count)


def drain(nic: Nic, into: list[tuple[bytes, Meta]]) -> int:
    into += [(data, meta) for _, data, meta in nic.vectors()]
    return len(into)


def some_gaps(rng: random.Random) -> Gaps:
    return Gaps(*(rng.choice([0, 0, 40, 150]) for _ in range(4)))


def check_sums(got: list[tuple[bytes, Meta]], workers: int, count: int) -> None:
    for index, (data, meta) in enumerate(got):
        expected, expected_meta = summed(workers, index, count)
        assert data == expected, f"vector {index} is not the sum"
        assert meta == expected_meta, f"vector {index}: {meta} instead of {expected_meta}"
    assert len(got) == count


def all_reduce(inject: Inject, job: Job, rng: random.Random, *, base: int, hops: Hops, window: int) -> None:
    count = 120
    stream = StreamSettings(gen=job.gen, base_seq=base, window=window, slots=job.slots)
    with ExitStack() as stack:
        nics = {}
        for port in range(job.workers):
            how = settings_of(port, stream, stream, all_reduce=True, resend_delay=200 * port)
            nics[port] = stack.enter_context(Nic(Role.WORKER, how, rng.getrandbits(32)))
            nics[port].start()
            nics[port].gaps(some_gaps(rng))
            for index in range(count):
                nics[port].push(contribution(port, index).tobytes(), meta_of(port, index, count))
        network = NicNetwork(nics, inject, rng, hops)
        got: dict[int, list[tuple[bytes, Meta]]] = {port: [] for port in nics}
        network.run(lambda: min(drain(nic, got[port]) for port, nic in nics.items()) >= count)
        for _ in range(200):  # nothing comes twice
            network.advance()
        for port, nic in nics.items():
            drain(nic, got[port])
            check_sums(got[port], job.workers, count)
            assert nic.stat("TX_VECTORS") == count
            assert set(nic.rejects()) <= {"DUPLICATE", "WINDOW"}


@pytest.mark.parametrize("switch", SWITCHES)
def test_all_reduce_under_any_faults(switch: str, rng: random.Random) -> None:
    for _ in range(3):
        window = rng.choice([1, 3, 16, 64])
        job = Job(gen=rng.randrange(1, 1 << 16), mode=Mode.ALLREDUCE, workers=rng.choice([1, 2, 3]))
        hops = some_faults(rng)
        base = rng.choice(BASES)
        print(f"window {window} base {base:#x} {job} {hops}")
        all_reduce(SWITCHES[switch](job), job, rng, base=base, hops=hops, window=window)


def push_and_pull(inject: Inject, up: Job, down: Job, rng: random.Random, hops: Hops) -> None:
    count = 100
    base = rng.choice(BASES)
    window = rng.choice([1, 5, 32, 64])
    gradients = StreamSettings(gen=up.gen, base_seq=base, window=window, slots=up.slots)
    weights = StreamSettings(gen=down.gen, base_seq=base ^ 0x55, window=window, slots=down.slots)
    with ExitStack() as stack:
        nics = {}
        for port in range(up.workers):
            how = settings_of(port, gradients, weights, resend_delay=200 * port)
            nics[port] = stack.enter_context(Nic(Role.WORKER, how, rng.getrandbits(32)))
            nics[port].start()
            for index in range(count):
                nics[port].push(contribution(port, index).tobytes(), meta_of(port, index, count))
        root = stack.enter_context(
            Nic(Role.ROOT, settings_of(ROOT_PORT, weights, gradients), rng.getrandbits(32))
        )  # fmt: skip
        nics[ROOT_PORT] = root
        root.start()
        for index in range(count):
            root.push(*parameters(index))
        for nic in nics.values():
            nic.gaps(some_gaps(rng))
        network = NicNetwork(nics, inject, rng, hops)
        got: dict[int, list[tuple[bytes, Meta]]] = {port: [] for port in nics}
        network.run(lambda: min(drain(nic, got[port]) for port, nic in nics.items()) >= count)
        for _ in range(200):
            network.advance()
        drain(root, got[ROOT_PORT])
        check_sums(got[ROOT_PORT], up.workers, count)
        for port in range(up.workers):
            drain(nics[port], got[port])
            assert len(got[port]) == count
            for index, (data, meta) in enumerate(got[port]):
                expected, expected_meta = parameters(index)
                assert meta == expected_meta
                assert data[: meta.bytes] == expected[: meta.bytes]
        for nic in nics.values():
            assert set(nic.rejects()) <= {"DUPLICATE", "WINDOW"}


@pytest.mark.parametrize("switch", SWITCHES)
def test_gradients_up_and_parameters_down(switch: str, rng: random.Random) -> None:
    for _ in range(2):
        workers = rng.choice([1, 2, 3])
        up = Job(gen=rng.randrange(1, 1 << 15), mode=Mode.REDUCE, workers=workers)
        down = Job(gen=up.gen + 1, mode=Mode.BCAST, workers=workers, base_slot=64, row=1)
        hops = some_faults(rng)
        print(f"{up} {hops}")
        push_and_pull(SWITCHES[switch](up, down), up, down, rng, hops)
