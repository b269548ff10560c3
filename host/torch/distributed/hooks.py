"""A DDP communication hook: the mean of a bucket in one pass, in the type and with the scaling of the user's choice."""

# No `from __future__ import annotations` here: DDP compares the hook's annotations with the classes themselves.

import logging
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket
from torch.futures import Future

from catchment.host.collectives import CollectiveError, Delayed, Scaling
from catchment.host.collectives.communicator import check_scaling
from catchment.host.torch.distributed.native_group import switch_of

_LOG = logging.getLogger("catchment.torch")
_WIRES = (None, torch.float32, torch.float16, torch.bfloat16)


@dataclass(slots=True)
class SwitchHook:
    """What `switch_hook` is to do: `model.register_comm_hook(SwitchHook(wire=torch.bfloat16), switch_hook)`.

    Attributes:
        group: the group that the gradients are averaged over; the default group unless given.
        wire: float32, float16 or bfloat16: what a bucket is rounded to before it is sent. Unless given its own type is
            kept: then the group itself averages other types, which are logged, beside the switch, as without a hook.
        scaling: of the bucket; the group's unless given. `Delayed` is given each bucket's own name.
        saturated: how many buckets had a value of some rank that was cut, the same on all ranks; only `Fixed` cuts.
            The first is also logged (logger ``catchment.torch``).
    """

    group: Any = None
    wire: torch.dtype | None = None
    scaling: Scaling | None = None
    saturated: int = field(default=0, init=False)
    _delayed: dict[int, Delayed] = field(default_factory=dict, repr=False)
    _beside: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.wire not in _WIRES:
            raise CollectiveError(f"wire={self.wire}", kind="argument", hint="float32, float16 or bfloat16")
        if self.scaling is not None:
            check_scaling(self.scaling)

    def note_saturated(self, bucket: int) -> None:
        """Count a bucket in which values were cut."""
        if not self.saturated:
            _LOG.warning("values of bucket %d were cut to 2**E: give a larger E, or scaling=Block()", bucket)
        self.saturated += 1

    def note_beside(self, dtype: torch.dtype) -> None:
        """Say once that buckets of a type do not go through the switch."""
        if not self._beside:
            _LOG.warning(
                "gradients of %s do not go through the switch; SwitchHook(wire=torch.float32) sends them", dtype
            )
        self._beside = True

    def scaling_of(self, bucket: int) -> Scaling | None:
        """The scaling of a bucket."""
        if not isinstance(self.scaling, Delayed):
            return self.scaling
        if bucket not in self._delayed:
            self._delayed[bucket] = replace(self.scaling, name=f"{self.scaling.name}/{bucket}")
        return self._delayed[bucket]


def switch_hook(state: SwitchHook, bucket: GradBucket) -> Future[torch.Tensor]:
    """The mean over all ranks, through the switch.

    Later buckets hold the layers that the next forward needs first: they overtake.

    Raises:
        CollectiveError: kind ``argument``: the group is not one of backend `catchment`, or has no switch.
    """
    switch = switch_of(state.group or dist.group.WORLD)
    if switch is None:
        raise CollectiveError(
            "switch_hook on a group without a switch", kind="argument", hint='make it with backend="catchment"'
        )
    gradients = bucket.buffer()
    if state.wire is None and gradients.dtype not in _WIRES:
        state.note_beside(gradients.dtype)
        return _by_the_group(state.group, gradients)
    wire = gradients if state.wire in (None, gradients.dtype) else gradients.to(state.wire)
    index = bucket.index()
    work = switch.mean(wire, state.scaling_of(index), priority=index)

    def back(future: Future[list[torch.Tensor]]) -> torch.Tensor:
        (mean,) = future.value()
        if work.saturated:
            state.note_saturated(index)
        if mean is not gradients:
            gradients.copy_(mean)
        return gradients

    return work.get_future().then(back)


def _by_the_group(group: Any, gradients: torch.Tensor) -> Future[torch.Tensor]:
    """The mean as the group makes it of any tensor."""

    def back(future: Future[Any]) -> torch.Tensor:
        future.value()
        return gradients

    work = dist.all_reduce(gradients, dist.ReduceOp.AVG, group=group, async_op=True)
    averaged: Future[torch.Tensor] = work.get_future().then(back)
    return averaged
