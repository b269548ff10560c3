"""The companion of a group without a switch, tensors' layouts, and which sizes of an all_to_all fit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import torch
import torch.distributed as dist

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.beside import Beside
from catchment.host.torch.distributed.companion import Companion
from catchment.host.torch.distributed.companion_work import watched
from catchment.host.torch.distributed.layouts import Pieces
from catchment.host.torch.distributed.sizes import Sizes, check_sizes

SIZE = 2


def on_all_ranks(call: Callable[[Beside, int], None]) -> None:
    """Run `call` in a thread for each rank, with a companion and no switch."""
    store = dist.HashStore()
    failed: list[BaseException] = []

    def run(rank: int) -> None:
        companion = Companion(store, rank, SIZE, timedelta(seconds=60), "127.0.0.1", wanted=True)
        try:
            call(Beside(companion, None, rank, SIZE), rank)
        except BaseException as error:
            failed.append(error)
        finally:
            companion.close()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failed:
        raise error


def column(value: float) -> torch.Tensor:
    """A tensor that is not contiguous, beside one of zeros."""
    whole = torch.zeros(6, 2, dtype=torch.float64)
    whole[:, 0] = value
    return whole[:, 0]


def holds(got: torch.Tensor, values: list[float]) -> None:
    """The column has these values, and its neighbour is as it was."""
    assert got.tolist() == values
    assert got._base is not None and not got._base[:, 1].any()


def test_without_a_switch_gloo_takes_any_layout() -> None:
    def call(beside: Beside, rank: int) -> None:
        sent = column(rank + 1)
        options: Any = dist.BroadcastOptions()
        options.rootRank = 1
        beside.broadcast([sent], options).wait()
        holds(sent, [2.0] * 6)
        gathered = [column(0) for _ in range(SIZE)]
        beside.all_gather([gathered], [column(rank + 1)], None).wait()
        for other, part in enumerate(gathered):
            holds(part, [other + 1.0] * 6)
        halves = column(0)
        beside.all_gather_single(halves, column(rank + 1)[:3], None).wait()
        holds(halves, [1.0] * 3 + [2.0] * 3)
        added = column(rank + 1)
        future = beside.all_reduce([added], dist.AllreduceOptions()).get_future()
        assert future.wait()[0] is added
        holds(added, [3.0] * 6)

    on_all_ranks(call)


def test_each_rank_takes_its_part_of_a_sum_and_the_root_the_whole() -> None:
    def call(beside: Beside, rank: int) -> None:
        part = column(0)
        beside.reduce_scatter([part], [torch.arange(12.0, dtype=torch.float64)], dist.ReduceScatterOptions()).wait()
        holds(part, [2.0 * element for element in range(6 * rank, 6 * rank + 6)])
        added = column(rank + 1)
        options: Any = dist.ReduceOptions()
        options.rootRank = 1
        beside.reduce([added], options).wait()
        holds(added, [3.0] * 6 if rank == 1 else [1.0] * 6)

    on_all_ranks(call)


def test_a_negated_or_conjugated_view_is_not_taken_as_it_is() -> None:
    for tensor in (torch._neg_view(torch.arange(3.0)), torch.arange(3).to(torch.complex64).mul(1j).conj()):
        assert tensor.is_contiguous()
        pieces = Pieces()
        copy = pieces.written(tensor)
        assert not copy.is_neg() and not copy.is_conj() and torch.equal(copy, tensor)
        copy.add_(1)
        pieces.place()
        assert torch.equal(tensor, copy)
    plain = torch.ones(3)
    assert Pieces().written(plain) is plain and Pieces().read(plain) is plain


def test_sizes_that_all_ranks_agree_on_and_others() -> None:
    three = torch.empty(3, 2)
    assert Sizes.of_splits((three, torch.empty(2, 5)), ([1, 2], []), 2) == Sizes(sent=[5, 5], received=[2, 4])
    check_sizes(torch.tensor([[1, 2, 1, 3], [3, 4, 2, 4]]), 0, "")
    with pytest.raises(CollectiveError, match="rank 1 sends 3 elements to rank 0, which expects 5") as caught:
        check_sizes(torch.tensor([[1, 2, 1, 5], [3, 4, 2, 4]]), 0, "all_to_all()")
    assert (caught.value.kind, caught.value.peers, caught.value.operation) == ("mismatch", (1,), "all_to_all()")
    for splits in ([1, 1], [-1, 4], [3]):
        with pytest.raises(CollectiveError, match="2 sizes whose sum is 3"):
            Sizes.of_splits((three, three), (splits, [1, 2]), 2)
    with pytest.raises(CollectiveError, match=r"float64 into torch\.float32"):
        Sizes.of_splits((three, three.double()), ([1, 2], [1, 2]), 2)
    with pytest.raises(CollectiveError, match="several types"):
        Sizes.of_lists([three, three.double()], [three, three], 2)


def test_what_was_sent_before_a_loss_may_be_enough() -> None:
    """A loss is raised only after a last wait."""
    error = CollectiveError("the process of rank 1 has ended", kind="missing")
    answers = iter([False, True])
    assert watched(lambda _: next(answers), lambda _: error, None)
    with pytest.raises(CollectiveError, match="rank 1"):
        watched(lambda _: False, lambda _: error, None)
    assert watched(lambda _: False, lambda _: None, 0.0) is False
