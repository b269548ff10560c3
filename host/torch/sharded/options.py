"""What a user may choose about a sharded model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from catchment.host.collectives import Scaling, Whole
from catchment.host.given_numbers import is_whole
from catchment.host.torch.sharded.errors import ShardingError

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True, slots=True)
class MiCSOptions:
    """How a model is sharded.

    Attributes:
        partition_size: ranks that share one copy of the model; ``auto``: the fewest that hold it (`memory`).
        memory: bytes of each rank, for ``auto``; this host's, divided by its ranks, unless given.
        activations: bytes of each rank that forward and backward need, for ``auto``.
        hierarchical: gather between nodes first, then inside them, where a group has several nodes.
        two_hop: sum over the partition groups once a step; otherwise in every micro-step.
        micro_steps: of each optimizer step.
        prefetch: layers that are gathered ahead of their use.
        param_dtype: that layers are gathered and computed in; that of the parameters unless given.
        accumulate: ``float``: sums of micro-steps in fp32; ``int``: integers of one `exponent`, which give the same
            bits for every partition size, number of micro-steps, and hops.
        exponent: E of ``int``; gradients of 2**E and more are cut, and counted.
        scaling: of gradients that are summed as floats.
        persist_below: layers of fewer elements stay gathered from one optimizer step to the next.

    Raises:
        ShardingError: a value that cannot be.
    """

    partition_size: int | Literal["auto"] = "auto"
    memory: int | None = None
    activations: int = 0
    hierarchical: bool = True
    two_hop: bool = True
    micro_steps: int = 1
    prefetch: int = 2
    param_dtype: torch.dtype | None = None
    accumulate: Literal["float", "int"] = "float"
    exponent: int = 4
    scaling: Scaling = Whole()  # noqa: RUF009  frozen
    persist_below: int = 0

    def __post_init__(self) -> None:
        counts = is_whole(self.micro_steps, 1), is_whole(self.prefetch, 0), is_whole(self.persist_below, 0)
        if not all(counts):
            raise ShardingError(
                f"micro_steps {self.micro_steps!r}, prefetch {self.prefetch!r}, persist_below {self.persist_below!r}: "
                "give 1 micro-step or more, and nothing negative"
            )
        if self.accumulate not in ("float", "int"):
            raise ShardingError(f"accumulate is {self.accumulate!r}: give float or int")
        if self.param_dtype not in (None, *_FLOATS):
            raise ShardingError(f"param_dtype is {self.param_dtype}: give one of {_FLOATS}")
        if not is_whole(self.exponent, -64, 64):
            raise ShardingError(f"exponent is {self.exponent!r}: give -64..64")
        if self.partition_size != "auto" and not is_whole(self.partition_size, 1):
            raise ShardingError(f"partition_size is {self.partition_size!r}: give auto, or ranks from 1 on")
        if not (self.memory is None or is_whole(self.memory, 1)) or not is_whole(self.activations, 0):
            raise ShardingError(f"memory {self.memory!r}, activations {self.activations!r}: give whole bytes")
        for name in ("hierarchical", "two_hop"):
            if not isinstance(getattr(self, name), bool):
                raise ShardingError(f"{name} is {getattr(self, name)!r}: give True or False")
        if not isinstance(self.scaling, Scaling):
            raise ShardingError(f"scaling is {self.scaling!r}: give Block, Fixed, Delayed or Whole")
