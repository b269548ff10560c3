"""The bench of trees compares bits before it tells times."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bench.trees import all_reduce
from catchment.host.collectives import Communicator


class Rank:
    """Adds the same to its array as the others, or something else."""

    def __init__(self, result: float) -> None:
        self._result = result

    def all_reduce(self, own: Any) -> SimpleNamespace:
        own[:] = self._result
        return SimpleNamespace(wait=lambda _: None)


def ranks(*results: float) -> list[Communicator]:
    return [cast("Communicator", Rank(result)) for result in results]


def test_the_bits_are_those_of_every_rank() -> None:
    arrays = [np.full(5, rank, np.float32) for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        took, bits = all_reduce(pool, ranks(1.5, 1.5), arrays)
        assert took >= 0 and bits == np.full(5, 1.5, np.float32).tobytes()
        assert [array[0] for array in arrays] == [0, 1], "the next turn begins with the same"
        with pytest.raises(SystemExit, match="different sums"):
            all_reduce(pool, ranks(1.5, 1.25), arrays)
