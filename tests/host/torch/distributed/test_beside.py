"""The companion of a group without a switch, tensors' layouts, and which sizes of an all_to_all fit."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from catchment.checkout import ROOT
from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed import kept
from catchment.host.torch.distributed.beside import Beside
from catchment.host.torch.distributed.companion import Companion
from catchment.host.torch.distributed.companion_work import nobody_lost, watched
from catchment.host.torch.distributed.later_work import LaterWork
from catchment.host.torch.distributed.layouts import Pieces, refuse_shared_elements
from catchment.host.torch.distributed.process_group import SwitchProcessGroup
from catchment.host.torch.distributed.relay import Relay
from catchment.host.torch.distributed.sizes import Sizes, check_sizes
from catchment.host.torch.distributed.switch_group import _in_place

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


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_a_mean_of_more_ranks_than_its_type_holds(dtype: torch.dtype) -> None:
    """Sums are those of the type, as with NCCL; the number of ranks is not."""
    for ranks in (100, 128, 200, 256, 257, 1000):
        sums, pieces = torch.tensor([100, 0, 7], dtype=dtype), Pieces()
        pieces.divided(sums, ranks)
        pieces.place()
        assert sums.tolist() == [100 // ranks, 0, 0]


@pytest.mark.parametrize(
    ("shape", "strides", "shared"),
    [
        ((4, 3), (1, 1), True),
        ((4, 3), (2, 1), True),
        ((4, 1, 3), (3, 1, 1), False),
        ((2, 3), (3, 2), False),
        ((2, 3), (4, 2), True),
        ((3, 4), (1, 3), False),
        ((2, 2), (0, 1), True),
        ((2, 0), (0, 1), False),
        ((1, 1), (0, 0), False),
        ((), (), False),
    ],
)
def test_elements_that_share_memory(shape: tuple[int, ...], strides: tuple[int, ...], *, shared: bool) -> None:
    tensor = torch.zeros(40).as_strided(shape, strides)
    with pytest.raises(CollectiveError, match="share memory") if shared else nullcontext():
        refuse_shared_elements(tensor)


class Elsewhere:
    """A switch on which all ranks agree, and what goes another way begins in another thread."""

    lost = staticmethod(nobody_lost)
    order = None

    def __init__(self, *, agreed: bool = True) -> None:
        self._agreed = agreed

    def check_process(self) -> None:
        """It is this process."""

    def await_begun(self, _: float) -> bool:
        """Whether the ranks have agreed."""
        return self._agreed

    def beside(self, *given: Any, **_: Any) -> Any:
        """What begins."""
        begun: list[Any] = []
        thread = threading.Thread(target=lambda: begun.append(given[-1]()))
        thread.start()
        thread.join()
        return begun[0]


class Gloo:
    """Gathers this rank's own tensors."""

    timeout = 60.0

    def for_(self, _: str) -> Gloo:
        """Itself, as its companion."""
        return self

    def gather(self, outputs: Any, inputs: Any, _: Any) -> SimpleNamespace:
        """Copy, in the thread that calls."""
        for tensor in outputs[0]:
            tensor.copy_(inputs[0])
        return SimpleNamespace(wait=lambda *_: True)


def gathering(switch: Elsewhere) -> Callable[[Sequence[torch.Tensor], torch.Tensor], Any]:
    """The gather of a root."""
    made: Any = Beside(Gloo(), switch, 0, SIZE)  # type: ignore[arg-type]
    options: Any = dist.GatherOptions()
    options.rootRank = 0
    return lambda tensors, own: made.gather([tensors], [own], options)


@pytest.mark.parametrize("allowed", [torch.inference_mode, torch.no_grad])
def test_another_thread_may_write_where_the_callers_thread_may(allowed: Callable[[], Any]) -> None:
    with allowed():
        outputs = [torch.nn.Parameter(torch.zeros(6)) for _ in range(SIZE)]
        gathering(Elsewhere())(outputs, torch.ones(6)).wait()
        assert all(tensor.tolist() == [1.0] * 6 for tensor in outputs)
        parameter, pieces = torch.nn.Parameter(torch.zeros(6, 2)), Pieces()
        pieces.written(parameter[:, 0]).fill_(3.0)
        failed: list[BaseException] = []
        flat, steps = _in_place(parameter[:, 1])
        flat.fill_(4.0)

        def place() -> None:
            try:
                pieces.place()
                steps[0]()
            except RuntimeError as error:
                failed.append(error)

        thread = threading.Thread(target=place)
        thread.start()
        thread.join()
        assert not failed and parameter.tolist() == [[3.0, 4.0]] * 6


@pytest.mark.parametrize("shapes", [[(4,)], [(4,)] * 3, [(4,), (5,)], [(2, 2)] * 2])
def test_a_list_at_the_root_is_like_its_own_tensor(shapes: list[tuple[int, ...]]) -> None:
    own = torch.ones(4)
    with pytest.raises(CollectiveError, match="a list at the root of gather") as caught:
        gathering(Elsewhere())([torch.zeros(shape) for shape in shapes], own)
    assert caught.value.kind == "argument"
    with pytest.raises(CollectiveError, match="float64"):
        gathering(Elsewhere())([torch.zeros(4).double()] * SIZE, own)


def test_a_monitored_barrier_waits_for_what_was_called_before() -> None:
    made: Any = Beside(Gloo(), Elsewhere(agreed=False), 0, SIZE)  # type: ignore[arg-type]
    with pytest.raises(CollectiveError, match="have not agreed on what was called before in 5 s") as caught:
        made.monitored_barrier(timedelta(seconds=5), False)
    assert caught.value.kind == "missing"
    relay, agreed = Relay(), threading.Event()
    assert relay.await_begun(nobody_lost, 60.0)

    def start() -> dist.Work:
        agreed.wait()
        return dist.Work()

    relay.begin(LaterWork(start, ""))
    assert not relay.await_begun(nobody_lost, 0.01)
    agreed.set()
    assert relay.await_begun(nobody_lost, 60.0)
    relay.close()
    assert relay.await_begun(nobody_lost, 60.0)


FORKING = """
import os, signal, sys
from datetime import timedelta
import torch.distributed as dist
from catchment.host.torch.distributed.companion import Companion
companion = Companion(dist.HashStore(), 0, 1, timedelta(seconds=60), "127.0.0.1", wanted=True)
if "given away" in sys.argv:
    companion.give_away(group := type("Group", (), {})())
    if "over" in sys.argv:
        del group
child = os.fork()
if child == 0:
    signal.alarm(30)
    if "left" in sys.argv:
        companion.close()
    sys.exit(0)
sys.exit(abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""


@pytest.mark.parametrize("what", [["left"], ["left", "given away"], ["given away"], ["given away", "over"], []])
def test_a_forked_child_ends_in_order(what: list[str]) -> None:
    """Its parent's threads are not there, and the end of a gloo would wait for them."""
    assert subprocess.run([sys.executable, "-c", FORKING, *what], cwd=ROOT, check=False).returncode == 0


class AlsoHasIt(dist.ProcessGroup):
    """Another group with the same gloo behind it, in C++."""

    def __init__(self, gloo: Any) -> None:
        super().__init__(0, 1)  # type: ignore[call-arg]  # as SwitchProcessGroup
        self._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.CUSTOM, gloo)


@pytest.mark.parametrize("closed", [True, False])
def test_a_gloo_is_let_go_when_nobody_in_cpp_has_it_any_more(closed: bool) -> None:
    """Python has it, too, until then: so it is the last to let go, and does so without its lock."""
    store = dist.HashStore()
    companion = Companion(store, 0, 1, timedelta(seconds=60), "127.0.0.1", wanted=True)
    there = weakref.ref(companion.for_("barrier"))
    other = AlsoHasIt(companion.for_("barrier"))
    group = SwitchProcessGroup(store, 0, 1, None, companion).be_the_group()
    tensor = torch.ones(3)
    group.allreduce([tensor]).wait()
    if closed:
        group.shutdown()
    del companion, group
    gc.collect()
    assert not kept.let_go()
    assert there() is not None
    del other
    until = time.monotonic() + 60.0
    while there() is not None and time.monotonic() < until:  # another thread may be the one that lets go
        assert kept.let_go() or there() is not None
        time.sleep(0.01)
    assert there() is None


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
