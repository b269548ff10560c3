"""What a sharded model takes of a rank's memory, from the sizes of its layers alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from catchment.host.torch.sharded.arenas import Places
from catchment.host.torch.sharded.gradients import SHARED
from catchment.host.torch.sharded.layout import ShardLayout
from catchment.host.torch.sharded.memory_model import Need
from catchment.host.torch.sharded.options import MiCSOptions

_OPTIMIZER: Final = 8
"""Bytes a parameter of two moments, fp32."""


def footprint(numels: Sequence[int], options: MiCSOptions, partition_size: int) -> Need:
    """Bytes of each rank for layers of `numels` parameters, none of which is shared by several layers.

    `activations` are those of `options`.
    """
    item = (options.param_dtype or torch.float32).itemsize
    layouts = [ShardLayout(numel, 1, partition_size) for numel in numels]
    padded = [layout.padded for layout in layouts]
    alone = [numel < options.persist_below for numel in numels]
    gathered = sum(Places(padded, alone, options.prefetch + 2).pieces)
    made = sum(Places(padded, [False] * len(numels), SHARED).pieces)
    whole = options.accumulate == "int"
    sums = 16 if whole else 4  # an int64 and two lanes of it, or a float
    summed = 4 * made if whole or item != torch.float32.itemsize else 0
    per_parameter = 8 + (item if item != torch.float32.itemsize else 0) + sums + _OPTIMIZER
    scratch = 4 * max(padded) if whole else 0
    chunks = 4 * made // partition_size
    return Need(
        partition_size,
        states=per_parameter * sum(layout.chunk for layout in layouts),
        layers=item * (gathered + made) + summed + chunks + scratch,
        activations=options.activations,
    )
