"""A proxy's storage: snapshots that name a step while steps go on, and what they cost."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

from catchment.host.proxy import ProxyError
from catchment.host.proxy.storage import BLOCK, Bytes, Snapshot, Storage


def value(key: int, version: int, size: int) -> Bytes:
    """What a key has at a version; half of it never changes."""
    data = np.random.default_rng([key, version]).integers(0, 256, size, np.uint8)
    data[: size // 2] = key
    return data


def bytes_of(snapshot: Snapshot) -> bytes:
    return b"".join(block.tobytes() for block in snapshot.blocks())


def test_every_value_of_a_snapshot_has_its_step_whatever_is_pushed_meanwhile(rng: random.Random) -> None:
    """Threads push versions of keys of their own, one step apart at most; a reader saves steps, slowly."""
    threads, steps, every = 3, 24, 4
    sizes = [rng.choice([1, 1000, BLOCK, BLOCK + 1, 3 * BLOCK - 7]) for _ in range(9)]
    storage = Storage(sizes)
    barrier = threading.Barrier(threads + 1)
    orders = {
        (thread, step): rng.sample(range(thread, len(sizes), threads), len(range(thread, len(sizes), threads)))
        for thread in range(threads)
        for step in range(steps)
    }

    def push(thread: int) -> None:
        for step in range(steps):
            if step % every == 0:
                barrier.wait()  # the snapshot of step + every / 2 is wanted from now on
            for key in orders[thread, step]:
                storage.write(key, value(key, step + 1, sizes[key]))

    with ThreadPoolExecutor(threads) as pool, ExitStack() as exits:
        exits.callback(barrier.abort)  # a failure leaves no thread waiting
        running = [pool.submit(push, thread) for thread in range(threads)]
        for at in range(0, steps, every):
            step = at + every // 2
            snapshot = storage.want(step)
            barrier.wait()
            assert storage.wait(snapshot)
            want = b"".join(value(key, step, size).tobytes() for key, size in enumerate(sizes))
            assert bytes_of(snapshot) == want, step
            assert storage.shared_bytes <= sum(sizes)
            storage.release(snapshot)
            assert storage.shared_bytes == 0
        for each in running:
            each.result()
    for key, size in enumerate(sizes):
        assert (storage.read(key) == value(key, steps, size)).all()


def test_a_snapshot_of_mixed_steps_is_refused() -> None:
    storage = Storage([8, 8])
    storage.write(1, np.full(8, 1, np.uint8))
    with pytest.raises(ProxyError, match="no snapshot of step 0: value 1 is at step 1"):
        storage.want(0)
    snapshot = storage.want(1)
    with pytest.raises(ProxyError, match="that of step 1 is not released"):
        storage.want(2)
    storage.close()
    assert not storage.wait(snapshot)  # value 0 has not had step 1, and nothing follows


def test_a_snapshot_costs_the_blocks_that_change_while_it_is_kept() -> None:
    storage = Storage([4 * BLOCK, 100])
    snapshot = storage.want(0)
    assert storage.shared_bytes == 0
    storage.write(1, np.ones(100, np.uint8))
    assert storage.shared_bytes == 100
    storage.write(1, np.full(100, 2, np.uint8))  # the present's own block by now
    assert storage.shared_bytes == 100
    assert bytes_of(snapshot) == bytes(4 * BLOCK + 100)
    storage.release(snapshot)
    assert storage.shared_bytes == 0
    with pytest.raises(ProxyError, match="value 1 has 100 bytes, 99 are given"):
        storage.write(1, np.zeros(99, np.uint8))
