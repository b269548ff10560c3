"""What is no tensor is refused by the group's own error, on all ranks, by each method that takes some."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import torch.distributed as dist

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.process_group import SwitchProcessGroup
from catchment.host.torch.distributed.ranks import RankOrder
from catchment.host.torch.distributed.switch_group import SwitchGroup

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


@pytest.mark.parametrize("given", [[ONE, ONE], (ONE, torch.nn.Parameter(ONE)), [torch.nn.Buffer(ONE)], []])
def test_tensors_of_any_class_are_taken(given: Any) -> None:
    switch = Mock()
    group = SwitchProcessGroup(dist.HashStore(), 0, 2, switch, Mock())
    group.broadcast(given, dist.BroadcastOptions())
    assert switch.broadcast.call_args.args[0] is given
    switch.refuse.assert_not_called()


def test_a_part_is_gathered_in_place_whichever_worker_the_rank_is() -> None:
    """Worker 0's part arrives where rank 0, which is worker 2, has its own: that is still to be sent."""
    for workers, own in (([2, 0, 1], False), ([0, 1, 2], True)):
        communicator, output = Mock(size=3), torch.arange(6.0).view(3, 2)
        switch = SwitchGroup(Mock(), communicator, RankOrder(workers), 0, [None] * 3)
        switch.all_gather([output], [output[0]], timedelta(0))
        source, target = communicator.all_gather.call_args.args
        assert source.tolist() == [0.0, 1.0] and target.data_ptr() == output.data_ptr()
        assert (source.data_ptr() == output.data_ptr()) is own
