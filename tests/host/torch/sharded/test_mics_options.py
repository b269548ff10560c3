"""Options and memory that cannot be are refused when they are made."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from catchment.host.torch.sharded.arenas import Arena, Places
from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.groups import Groups
from catchment.host.torch.sharded.mics import MiCS
from catchment.host.torch.sharded.options import MiCSOptions
from catchment.host.torch.sharded.session import ShardedModel


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


MODEL = nn.Sequential(nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"options": {"micro_steps": 2}}, r"options \{'micro_steps': 2\}: give MiCSOptions"),
        ({"options": 0}, "options 0: give MiCSOptions"),
        ({"model": "gpt2"}, r"a model 'gpt2': give a torch\.nn\.Module"),
        ({"layers": "0"}, "layers='0': give a list of modules' names"),
        ({"layers": [0]}, r"layers=\[0\]: give a list of modules' names"),
        ({"layers": ["1"]}, r"layers= names \['1'\], which the model does not have"),
        ({"kept": 5}, "kept=5: give a list of modules' names"),
    ],
)
def test_models_and_layers_that_cannot_be_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ShardingError, match=words):
        ShardedModel(**{"model": MODEL, "options": MiCSOptions(), "links": None, **wrong})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"options": {"micro_steps": 2}}, r"options \{'micro_steps': 2\}: give MiCSOptions, or None"),
        ({"node_size": "2"}, "node_size is '2': give the ranks of each node, or None"),
        ({"node_size": 0}, "node_size is 0: give"),
        ({"node_size": True}, "node_size is True: give"),
        ({"model": None}, r"a model None: give a torch\.nn\.Module"),
        ({"layers": "0"}, "layers='0': give a list"),
    ],
)
def test_what_is_refused_is_so_before_ranks_speak(
    wrong: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    for name in ("get_world_size", "get_rank"):
        monkeypatch.setattr(dist, name, lambda: 0)
    with pytest.raises(ShardingError, match=words):
        MiCS(**{"model": MODEL, **wrong})


@pytest.mark.parametrize("nodes", [None, 3, "ab", [1, 1]])
def test_nodes_without_names_are_refused(nodes: Any) -> None:
    with pytest.raises(ShardingError, match="give the name of each rank's node"):
        Groups.of_nodes(nodes, 1)


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


@pytest.mark.parametrize("several", [list, tuple, iter, np.array, lambda nodes: dict(enumerate(nodes)).values()])
def test_nodes_of_ranks_come_in_any_order_that_there_is(several: Callable[[list[str]], Any]) -> None:
    assert Groups.of_nodes(several(["a", "a", "b", "b"]), 2) == Groups.of(4, 2, 2)
