"""Options and memory that cannot be are refused when they are made."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from catchment.host.torch.sharded.arenas import Arena, Places
from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.options import MiCSOptions


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"micro_steps": 0}, "micro_steps 0"),
        ({"prefetch": -1}, "prefetch -1"),
        ({"accumulate": "double"}, "accumulate is 'double': give float or int"),
        ({"param_dtype": torch.int32}, "param_dtype is torch.int32"),
        ({"exponent": 65}, "exponent is 65"),
        ({"exponent": 1.5}, "exponent is 1.5: give -64..64"),
        ({"micro_steps": 1.5}, "micro_steps 1.5"),
        ({"micro_steps": True}, "micro_steps True"),
        ({"prefetch": "2"}, "prefetch '2'"),
        ({"persist_below": math.nan}, "persist_below nan"),
        ({"partition_size": "most"}, "partition_size is 'most': give auto, or ranks from 1 on"),
        ({"partition_size": 2.0}, "partition_size is 2.0: give auto"),
        ({"partition_size": 0}, "partition_size is 0: give auto"),
        ({"memory": 1e9}, "memory 1000000000.0, activations 0: give whole bytes"),
        ({"memory": 0}, "memory 0"),
        ({"activations": -1}, "activations -1: give whole bytes"),
        ({"hierarchical": 1}, "hierarchical is 1: give True or False"),
        ({"two_hop": None}, "two_hop is None: give True or False"),
        ({"scaling": "whole"}, "scaling is 'whole': give Block"),
    ],
)
def test_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ShardingError, match=words):
        MiCSOptions(**wrong)


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=20), st.integers(1, 5))
def test_neighbours_that_share_memory_are_in_different_pieces(layers: list[tuple[int, bool]], shared: int) -> None:
    sizes, own = [size for size, _ in layers], [alone for _, alone in layers]
    places = Places(sizes, own, shared)
    for layer, size in enumerate(sizes):
        assert places.pieces[places.of[layer]] >= size
    sharing = [places.of[layer] for layer, alone in enumerate(own) if not alone]
    for first in range(len(sharing)):
        window = sharing[first : first + shared]
        assert len(set(window)) == len(window)
    alone = [places.of[layer] for layer, single in enumerate(own) if single]
    assert len(set(alone)) == len(alone) and not set(alone) & set(sharing)


@pytest.mark.parametrize("elements", [10, 1 << 20])
def test_arenas_are_zeros_in_pieces(elements: int) -> None:
    arena = Arena([elements, 3], torch.float32)
    assert arena.nbytes == 4 * (elements + 3)
    assert not arena[0].any() and arena[1].numel() == 3
    arena[0].fill_(1)
    assert not arena[1].any()
