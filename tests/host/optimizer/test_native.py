"""The native part alone, without torch: also what tests/host/test_sanitized.py runs under sanitizers."""

from __future__ import annotations

import errno
import os
import random
import weakref
from pathlib import Path

import numpy as np
import pytest

from catchment.host import _optimizer

PAGE = 4096
SIZE = 1 << 20
STATE_READ = _optimizer.Lane.STATE_READ
ENGINES = [{"uring": True}, {"uring": False}]


def _device(descriptor: int, faults: _optimizer.Faults | None = None, **chosen: object) -> _optimizer.Device:
    options = {"uring": True, "chunk": 3 * PAGE, "depth": 4, "rate": 0.0, "index": 0, **chosen}
    return _optimizer.Device(descriptor, faults=faults, **options)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "file"
    made.write_bytes(bytes(SIZE))
    return made


@pytest.mark.parametrize("engine", ENGINES, ids=["uring", "blocking"])
def test_random_reads_and_writes(path: Path, engine: dict[str, bool], rng: random.Random) -> None:
    model = np.zeros(SIZE, np.uint8)
    lanes = [_optimizer.Lane.PARAMETER_READ, _optimizer.Lane.STATE_READ]
    with path.open("r+b") as file:
        device = _device(file.fileno(), chunk=rng.choice([PAGE, 3 * PAGE, SIZE]), depth=rng.choice([1, 7]), **engine)
        for _ in range(20):
            writes, reads, free = [], [], list(range(0, SIZE, 16 * PAGE))
            rng.shuffle(free)
            for start in free[:8]:  # pieces do not overlap, so that order does not matter
                length = rng.randrange(1, 16 * PAGE)
                memory = np.frombuffer(rng.randbytes(length), np.uint8).copy()
                model[start : start + length] = memory
                writes.append(device.write(start, memory))
            for start in free[8:]:
                memory = np.zeros(rng.randrange(1, 16 * PAGE), np.uint8)
                reads.append((start, memory, device.read(rng.choice(lanes), start, memory)))
            assert [ticket.wait() for ticket in writes] == [0] * len(writes)
            for start, memory, ticket in reads:
                assert ticket.wait() == 0
                assert np.array_equal(memory, model[start : start + memory.size])
        assert device.sync().wait() == 0
        stats = device.stats()
        assert stats["state_write_bytes"] > 0
        assert stats["syncs"] == 1
        device.close()
    assert path.read_bytes() == model.tobytes()


@pytest.mark.parametrize("engine", ENGINES, ids=["uring", "blocking"])
def test_errors_are_numbers(path: Path, engine: dict[str, bool]) -> None:
    memory = np.zeros(2 * PAGE, np.uint8)
    descriptor = os.open(path, os.O_RDONLY)
    device = _device(descriptor, **engine)
    os.close(descriptor)  # the device has its own
    assert device.read(_optimizer.Lane.STATE_READ, 0, memory).wait() == 0
    assert device.write(0, memory).wait() == errno.EBADF
    assert device.read(_optimizer.Lane.STATE_READ, SIZE - PAGE, memory).wait() == errno.ENODATA
    device.close()
    device.close()
    with pytest.raises(RuntimeError, match="closed"):
        device.write(0, memory)


@pytest.mark.parametrize("engine", ENGINES, ids=["uring", "blocking"])
def test_closing_ends_what_is_queued(path: Path, engine: dict[str, bool]) -> None:
    memory = [np.zeros(16 * PAGE, np.uint8) for _ in range(8)]
    with path.open("r+b") as file:
        device = _device(file.fileno(), chunk=PAGE, depth=1, rate=1e5, **engine)  # five seconds of writes
        tickets = [device.write(0, each) for each in memory]
        device.close()
        assert {ticket.wait() for ticket in tickets} <= {0, errno.ECANCELED}
        assert tickets[-1].wait() == errno.ECANCELED


@pytest.mark.parametrize("action", ["read", "write"])
@pytest.mark.parametrize("engine", ENGINES, ids=["uring", "blocking"])
def test_a_request_keeps_its_memory_without_its_ticket(path: Path, engine: dict[str, bool], action: str) -> None:
    with path.open("r+b") as file:
        device = _device(file.fileno(), chunk=PAGE, depth=1, rate=1.0, **engine)  # an hour from page to page
        memory = np.zeros(2 * PAGE, np.uint8)
        kept = weakref.ref(memory)
        ticket = device.write(0, memory) if action == "write" else device.read(STATE_READ, 0, memory)
        del ticket, memory
        assert kept() is not None  # or the device would move what is somebody else's memory by then
        device.stats()
        assert kept() is not None
        device.close()
        assert kept() is None


@pytest.mark.parametrize("engine", ENGINES, ids=["uring", "blocking"])
def test_memory_without_a_ticket_is_given_back_when_it_is_settled(path: Path, engine: dict[str, bool]) -> None:
    with path.open("r+b") as file:
        device = _device(file.fileno(), chunk=PAGE, depth=1, rate=1e5, **engine)
        memory = np.zeros(2 * PAGE, np.uint8)
        kept = weakref.ref(memory)
        device.read(STATE_READ, 0, memory)
        del memory
        assert device.read(STATE_READ, 0, np.zeros(PAGE, np.uint8)).wait() == 0  # behind the other one
        device.stats()
        assert kept() is None
        memory = np.zeros(PAGE, np.uint8)
        kept = weakref.ref(memory)
        assert device.read(STATE_READ, 0, memory).wait() == 0
        del memory
        assert kept() is None  # at once
        device.close()


def test_faults_count_fail_and_tear(path: Path) -> None:
    with path.open("r+b") as file:
        faults = _optimizer.Faults(on="write", after=2, error=errno.EIO, torn=True)
        device = _device(file.fileno(), faults, chunk=2 * PAGE)
        ones = np.ones(2 * PAGE, np.uint8)
        results = [device.write(place * 4 * PAGE, ones).wait() for place in range(4)]
        assert results == [0, 0, errno.EIO, errno.EIO]
        assert device.sync().wait() == 0
        assert faults.seen == 4
        device.close()
    raw = path.read_bytes()
    assert raw[8 * PAGE : 9 * PAGE] == bytes([1]) * PAGE
    assert not any(raw[9 * PAGE :])
    with pytest.raises(ValueError, match="on:"):
        _optimizer.Faults(on="sometimes")


def test_updates_of_odd_spans_touch_nothing_else(rng: random.Random) -> None:
    units = 3
    count = units * _optimizer.UNIT
    generator = np.random.default_rng(rng.getrandbits(64))
    for kernels in ("base", ""):
        updater = _optimizer.Updater(3, kernels)
        for _ in range(10):
            cuts = sorted(rng.sample(range(count), 6))
            offsets, counts = cuts[::2], [end - start for start, end in zip(cuts[::2], cuts[1::2], strict=True)]
            state = {name: generator.random(count, np.float32) for name in ("master", "first", "second")}
            before = {name: values.copy() for name, values in state.items()}
            updater.update(
                parameters=np.zeros(2 * count, np.uint8),
                **{name: values.view(np.uint8) for name, values in state.items()},
                bf16_moments=False,
                gradient=generator.random(count, np.float32).view(np.uint8),
                shard_units=[1, units - 1],
                offsets=offsets,
                counts=counts,
                scalars=np.array([[1, 1, 0.1, 0.9, 0.1, 1, 1e-3, 1e-2]] * 3, np.float32),
            )
            inside = np.zeros(count, bool)
            for offset, length in zip(offsets, counts, strict=True):
                inside[offset : offset + length] = True
            for name, values in state.items():
                assert np.array_equal(values[~inside], before[name][~inside])
                assert (values[inside] != before[name][inside]).mean() > 0.9


def test_crc32c_is_the_known_one() -> None:
    assert _optimizer.crc32c(b"123456789") == 0xE3069283
    assert _optimizer.crc32c(b"6789", _optimizer.crc32c(b"12345")) == 0xE3069283
    assert _optimizer.crc32c(b"") == 0
