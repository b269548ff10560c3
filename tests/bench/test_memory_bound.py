"""The count of passes behind the bound of `make bench-allreduce`, by an all-reduce that counts its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from bench import allreduce_ranks
from bench.memory_bound import bytes_per_second, least_seconds, own_passes, shared_passes


@dataclass
class Memory:
    """An array that counts how often it is read or written whole."""

    values: NDArray[np.int64]
    passes: int = field(default=0)

    def read(self) -> NDArray[np.int64]:
        self.passes += 1
        return self.values.copy()

    def write(self, values: NDArray[np.int64]) -> None:
        self.passes += 1
        self.values = values


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_passes_are_those_of_an_all_reduce_in_shared_memory(ranks: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [Memory(rng.integers(-100, 100, 5)) for _ in range(ranks)]
    expected = np.sum([array.values for array in arrays], axis=0)
    shared = Memory(np.zeros(5, np.int64))
    made = arrays[0].read()
    shared.write(made)
    for array in arrays[1:]:
        made = shared.read() + array.read()
        shared.write(made)
    arrays[-1].write(made)
    for array in arrays[:-1]:
        array.write(shared.read())
    assert all((array.values == expected).all() for array in arrays)
    assert sum(array.passes for array in arrays) == own_passes(ranks)
    assert shared.passes == shared_passes(ranks)


def test_the_bound_is_of_all_passes_at_the_machines_own_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def rate(arrays: list[NDArray[np.uint8]], cores: int) -> float:
        seen.append((len(arrays), arrays[0].nbytes, cores))
        return 1e6 if arrays[0].nbytes == 4096 else 4e6

    monkeypatch.setattr("bench.memory_bound.bytes_per_second", rate)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert least_seconds(4, 4096, 1024) == pytest.approx((8 * 4096) / 1e6 + (10 * 4096) / 4e6)
    assert seen == [(4, 4096, 2), (2, 1024, 2)]


def test_copying_is_measured(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, 255, 1 << 20, dtype=np.uint8) for _ in range(2)]
    before = [array[: 1 << 19].copy() for array in arrays]
    assert bytes_per_second(arrays, 2) > 0
    for array, half in zip(arrays, before, strict=True):
        assert (array == np.concatenate([half, half])).all()


def test_a_machine_without_open_mpi_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert "openmpi-bin" in allreduce_ranks.without_open_mpi()
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/mpirun")
    monkeypatch.setattr(allreduce_ranks, "find_spec", lambda _: None)
    assert "mpi4py" in allreduce_ranks.without_open_mpi()
