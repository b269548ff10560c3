"""What is no tensor is refused by the group's own error, on all ranks, by each method that takes some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import torch.distributed as dist

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.process_group import SwitchProcessGroup

ONE = torch.ones(4)
CALLS: dict[str, Callable[[SwitchProcessGroup, Any], object]] = {
    "allreduce": lambda group, given: group.allreduce(given),
    "allreduce_coalesced": lambda group, given: group.allreduce_coalesced([ONE, given], dist.AllreduceOptions()),
    "reduce": lambda group, given: group.reduce([given], dist.ReduceOptions()),
    "broadcast": lambda group, given: group.broadcast([given], dist.BroadcastOptions()),
    "all_gather_single": lambda group, given: group.all_gather_single(given, ONE),
    "allgather": lambda group, given: group.allgather([[given]], [ONE]),
    "reduce_scatter_single": lambda group, given: group.reduce_scatter_single(ONE, given),
    "reduce_scatter": lambda group, given: group.reduce_scatter([ONE], [[given]]),
    "gather": lambda group, given: group.gather([], [given], None),
    "scatter": lambda group, given: group.scatter([given], [], None),
    "all_to_all_single": lambda group, given: group.all_to_all_single(ONE, given, [], [], None),
    "alltoall": lambda group, given: group.alltoall([ONE], [given], None),
}
PAIRS: dict[str, Callable[[SwitchProcessGroup, Any], object]] = {
    "send": lambda group, given: group.send([given], 0, 0),
    "recv": lambda group, given: group.recv([given], 0, 0),
    "recv_anysource": lambda group, given: group.recv_anysource([given], 0),
}
NO_TENSORS: list[Any] = [[1.0], 1.0, None, "ones", b"ones", np.ones(4, np.float32), [[ONE, 2]]]


@pytest.mark.parametrize("name", [*CALLS, *PAIRS])
def test_what_is_no_tensor_is_refused(name: str) -> None:
    switch = Mock()
    group = SwitchProcessGroup(dist.HashStore(), 0, 2, switch, Mock())
    for given in NO_TENSORS:
        with pytest.raises(CollectiveError, match=rf"{name} of .*: give torch tensors") as caught:
            {**CALLS, **PAIRS}[name](group, given)
        assert caught.value.kind == "argument"
    assert switch.refuse.call_count == (len(NO_TENSORS) if name in CALLS else 0)
