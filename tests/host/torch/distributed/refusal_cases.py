"""What two ranks are refused: on every rank, with an error that says why, and the group goes on."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.process_group import SwitchProcessGroup
from catchment.host.torch.distributed.settings import Settings

PATIENCE = 60.0


def goes_on(rank: int, size: int) -> None:
    """The next operation is as it should be."""
    tensor = torch.full((300,), float(rank + 1))
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.full((300,), size * (size + 1) / 2))


def refused(kind: str, call: Callable[[], object], *words: str) -> None:
    """`call` raises an error of a kind, whose text has the words."""
    with pytest.raises(CollectiveError) as caught:
        call()
    assert caught.value.kind == kind, caught.value
    for word in words:
        assert word in str(caught.value), caught.value


def case_parts_of_other_ranks_are_no_place_for_ones_own(rank: int, size: int) -> None:
    """A rank's own part of what is gathered or scattered is one; over another's it would be sent as that."""
    whole = torch.arange(size * 1000).float()
    for first in (1000 * ((rank + 1) % size), 1000 * rank + 1 - 2 * rank, 500):
        part = whole[first : first + 1000]
        for call in (dist.all_gather_into_tensor, dist.reduce_scatter_tensor):
            arrays = (whole, part) if call is dist.all_gather_into_tensor else (part, whole)
            refused("argument", lambda call=call, arrays=arrays: call(*arrays), "of the same memory: give the result")
            goes_on(rank, size)
    assert torch.equal(whole, torch.arange(size * 1000).float())
    own = whole[1000 * rank : 1000 * (rank + 1)]
    dist.reduce_scatter_tensor(own, whole)
    assert torch.equal(own, torch.arange(1000 * rank, 1000 * (rank + 1)) * float(size))
    dist.all_gather_into_tensor(whole, own)
    assert torch.equal(whole, torch.arange(size * 1000) * float(size))


def case_a_forked_child_is_refused_and_harms_nobody(rank: int, size: int) -> None:
    goes_on(rank, size)
    under_way = dist.all_reduce(torch.ones(300_000), async_op=True)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        errors = []
        for call in (
            lambda: dist.all_reduce(torch.full((300,), 100.0)),
            lambda: dist.all_reduce(torch.full((300,), 100.0).double()),
            lambda: dist.barrier(async_op=True),
            dist.destroy_process_group,
        ):
            try:
                call()
                errors.append("")
            except RuntimeError as error:
                errors.append(str(error))
        os.write(writing, json.dumps(errors).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        errors = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert all("made before fork()" in text for text in errors[:3]) and errors[3] == "", errors
    under_way.wait()
    goes_on(rank, size)


def case_a_forked_child_ends_in_order(rank: int, size: int) -> None:
    """An interpreter does what it does at its end, whether the child has left the groups or not."""
    alone = [dist.new_group([other]) for other in range(size)][rank]
    for group in (None, alone):
        dist.all_reduce(torch.ones(4), group=group)
        dist.all_reduce(torch.ones(4).double(), group=group)
    faulthandler.cancel_dump_traceback_later()  # a child would wait at its end for the thread that does it
    for leaves in (False, True):
        child = os.fork()
        if child == 0:
            if leaves:
                dist.destroy_process_group()
            sys.exit(0)
        until = time.monotonic() + PATIENCE
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.01)
        assert os.waitstatus_to_exitcode(ended[1]) == 0
        goes_on(rank, size)
    faulthandler.dump_traceback_later(6 * PATIENCE, exit=True)


def case_ranks_that_want_different_ways_are_told(rank: int, size: int) -> None:
    other = 1 - rank
    for dtype, op in ((torch.float64, dist.ReduceOp.SUM), (torch.float32, dist.ReduceOp.MIN)):
        tensor = torch.ones(100, dtype=dtype if rank else torch.float32)
        refused(
            "mismatch",
            lambda tensor=tensor, op=op: dist.all_reduce(tensor, op=op if rank else dist.ReduceOp.SUM),  # type: ignore[misc]
            f"rank {other} calls",
        )
    future = dist.all_reduce(torch.ones(100, dtype=(torch.float64, torch.int64)[rank]), async_op=True).get_future()
    with pytest.raises(RuntimeError, match="calls"):
        future.wait()
    goes_on(rank, size)


def case_what_goes_beside_the_switch_comes_in_order(rank: int, size: int) -> None:
    doubles = [torch.full((10,), float(rank + i), dtype=torch.float64) for i in range(5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in doubles]
    later = works[2].get_future().then(lambda done: done.value()[0] * 2)
    goes_on(rank, size)
    for i, work in enumerate(works):
        assert work.wait() and work.is_completed() and work.is_success()
        assert doubles[i].tolist() == [2.0 * i + 1] * 10
    assert later.wait().tolist() == [10.0] * 10


def case_an_argument_that_one_rank_finds_wrong_fails_on_both(rank: int, size: int) -> None:
    output = torch.empty(size * 10)
    given = torch.ones(10) if rank == 0 else torch.ones(7)
    if rank == 0:
        refused("mismatch", lambda: dist.all_gather_into_tensor(output, given), "rank 1", "wrong")
    else:
        refused("argument", lambda: dist.all_gather_into_tensor(output, given))
    goes_on(rank, size)
    if rank == 0:
        refused("mismatch", dist.barrier, "rank 1")
    else:
        refused("argument", lambda: dist.broadcast(torch.ones(3), src=9), "invalid root rank: 9")
    goes_on(rank, size)


def case_roots_that_are_not_there(rank: int, size: int) -> None:
    refused("argument", lambda: dist.broadcast(torch.ones(3), src=9), "invalid root rank: 9")
    refused("argument", lambda: dist.reduce(torch.ones(3), dst=9), "invalid root rank: 9")
    goes_on(rank, size)


def case_sends_to_ranks_and_with_tags_that_are_not_there(rank: int, size: int) -> None:
    """Gloo reads beside its table of ranks then, and what it says of the rest comes when it is waited for."""
    world, tensor, other = dist.group.WORLD, torch.ones(3), 1 - rank
    assert world is not None
    for peer in (size, 9, -1, rank):
        words = (f"rank {peer}: the ranks of this group are 0 to 1, and this one is {rank}",)
        refused("argument", lambda peer=peer: world.send([tensor], peer, 0), "send to", *words)  # type: ignore[misc]
        refused("argument", lambda peer=peer: world.recv([tensor], peer, 0), "recv from", *words)  # type: ignore[misc]
    refused("argument", lambda: dist.isend(tensor, 9), "send to rank 9")
    refused("argument", lambda: dist.irecv(tensor, 9), "recv from rank 9")
    refused(
        "argument", lambda: dist.isend(tensor, other, tag=-1), "send with tag -1: give a whole number, 0..2147483647"
    )
    refused("argument", lambda: dist.irecv(tensor, other, tag=-1), "recv with tag -1")
    refused("argument", lambda: dist.irecv(tensor, tag=-1), "recv with tag -1")
    sent = dist.isend(torch.full((3,), float(rank)), other, tag=(1 << 31) - 1)
    dist.recv(tensor, other, tag=(1 << 31) - 1)
    assert sent is not None and sent.wait() and tensor.tolist() == [float(other)] * 3
    goes_on(rank, size)


def case_what_is_of_another_type_is_refused_at_once(rank: int, size: int) -> None:
    """Torch itself says so of what it hands to a group in C++, and makes options of."""
    group: Any = dist.group.WORLD
    tensor, whole = torch.ones(4), [1.5, 2.5]
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: dist.send(tensor, 1 - rank, tag=1.5), "send with tag 1.5: give a whole number"),
        (lambda: dist.recv(tensor, 1 - rank, tag="1"), "recv with tag '1': give a whole number"),
        (lambda: dist.recv(tensor, tag=1.5), "recv with tag 1.5: give a whole number"),
        (lambda: dist.send(tensor, 1.5), "send to rank 1.5: the ranks of this group are 0 to 1"),
        (lambda: group.allreduce([tensor], "sum"), "a reduction 'sum': give a dist.ReduceOp"),
        (lambda: group.barrier("now"), "options 'now': give torch's options of the call"),
        (lambda: group.monitored_barrier("soon"), "a timeout of 'soon': give a datetime.timedelta"),
        (lambda: dist.all_to_all_single(torch.empty(4), tensor, [2, 2], whole), "input splits, of which one is 1.5"),
    ]
    for call, words in calls:
        if isinstance(group, SwitchProcessGroup):
            refused("argument", call, words)
        else:
            with pytest.raises(TypeError, match="incompatible function arguments"):
                call()
        goes_on(rank, size)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        dist.broadcast(tensor, src=1.5)  # type: ignore[arg-type]
    for made in (torch.ones(5), torch.ones(5).double()):
        work: Any = dist.all_reduce(made, async_op=True)
        with pytest.raises((CollectiveError, TypeError), match=r"a timeout of 'soon'|incompatible function arguments"):
            work.wait("soon")
        assert work.wait(60.0)
    group.monitored_barrier(60.0)
    goes_on(rank, size)


def case_lists_of_which_one_is_longer(rank: int, size: int) -> None:
    group: Any = dist.group.WORLD
    long, part = torch.ones(4 * size), torch.ones(4)
    refused("argument", lambda: group.allgather_into_tensor_coalesced([long], [part, part]), "2 inputs into 1 outputs")
    refused("argument", lambda: group.reduce_scatter_tensor_coalesced([part], [long, long]), "2 inputs into 1 outputs")
    refused("argument", lambda: group.allgather([[part] * size], [part, part]), "2 inputs into 1 outputs")
    refused("argument", lambda: group.allgather_coalesced([[part]] * size, [part, part]), "2 inputs into 1 outputs")
    refused("argument", lambda: group.reduce_scatter([part], [[part] * size] * 2), "2 inputs into 1 outputs")
    goes_on(rank, size)
    if rank == 0:
        refused("mismatch", dist.barrier, "rank 1")
    else:
        refused("argument", lambda: group.allgather_coalesced([[part]] * size, [part, part]), "2 inputs")
    goes_on(rank, size)


def case_an_operation_of_several_parts_ends_with_the_last_of_them(rank: int, size: int) -> None:
    """The first part fails while the second one runs: the library still writes into its tensor."""
    world = dist.group.WORLD
    assert world is not None
    options = dist.BroadcastOptions()
    options.rootRank = 1
    right = []  # asserted when all is done, for the other rank waits for this one
    for together, alone in (
        (lambda both: world.broadcast(both, options), lambda tensor: dist.broadcast(tensor, 1)),
        (lambda both: world.allreduce_coalesced(both, dist.AllreduceCoalescedOptions()), dist.all_reduce),
    ):
        first, second = torch.ones(100), torch.full((3000,), 5 * rank, dtype=torch.int32)
        if rank == 0:
            right.append(ends_after_all_parts(together([first, second])))
        else:
            refused("mismatch", lambda alone=alone: alone(torch.ones(70)), "rank 0 calls")  # type: ignore[misc]
            dist.send(torch.zeros(1), 0)  # by gloo
            dist.recv(torch.zeros(1), 0)
            alone(second)
        right.append(second.tolist() == [5] * 3000)
        second.fill_(7)
        goes_on(rank, size)
        right.append(second.tolist() == [7] * 3000)
    assert all(right), right


def ends_after_all_parts(work: dist.Work) -> bool:
    """Whether the error of the first part comes when the other rank has begun the second one, and not before."""
    future = work.get_future()
    dist.recv(torch.zeros(1), 1)  # the first part has failed there
    early = ends_early(work) or future.done()
    dist.send(torch.zeros(1), 1)
    refused("mismatch", work.wait, "rank 1 calls")
    assert work.is_completed() and not work.is_success()
    with pytest.raises(RuntimeError, match="calls"):
        future.wait()
    return not early


def ends_early(work: dist.Work) -> bool:
    """Whether a work ends whose second part the other rank has not begun."""
    try:
        work.wait(timedelta(milliseconds=300))
    except TimeoutError:
        return work.is_completed() or work.exception() is not None
    except CollectiveError:
        return True
    return True


def case_what_nobody_carries_is_refused_before_anything_is_sent(rank: int, size: int) -> None:
    short, double = torch.ones(4, dtype=torch.int16), torch.ones(4, dtype=torch.float64)
    scaled = dist._make_nccl_premul_sum(2.0)  # type: ignore[attr-defined]
    for call, *words in (
        (lambda: dist.all_reduce(short), "all_reduce with SUM of int16", "[all_reduce(4 x int16, SUM)]", "int32"),
        (lambda: dist.reduce(short, 0), "reduce with SUM of int16"),
        (lambda: dist.all_reduce(short, dist.ReduceOp.AVG), "AVG of int16", "it takes float64"),
        (lambda: dist.all_reduce(short.bool(), dist.ReduceOp.AVG), "AVG of bool", "it takes float64"),
        (lambda: dist.all_reduce(double, dist.ReduceOp.BAND), "BAND of float64"),
        (lambda: dist.all_reduce(torch.ones(4), dist.ReduceOp.BXOR), "BXOR of float32"),
        (lambda: dist.all_reduce(torch.ones(4), scaled), "PREMUL_SUM", "take SUM"),
        (lambda: dist.reduce_scatter_single(short[:2], short), "SUM of int16"),
        (lambda: dist.all_to_all_single(short.clone(), short), "all_to_all_single of int16"),
        (lambda: dist.gather(short, [short.clone() for _ in range(size)] if rank == 0 else None), "gather of int16"),
    ):
        refused("argument", call, *words)  # type: ignore[arg-type]
        goes_on(rank, size)
    pairs = torch.full((3,), complex(rank, 1.0))
    dist.all_reduce(pairs)
    assert pairs.tolist() == [complex(1.0, 2.0)] * 3


def case_elements_that_share_memory_are_refused(rank: int, size: int) -> None:
    for tensor in (torch.ones(1).expand(4), torch.ones(1, dtype=torch.float64).expand(4)):
        refused("argument", lambda tensor=tensor: dist.all_reduce(tensor), "share memory", "clone()")  # type: ignore[misc]
        goes_on(rank, size)
    for made in (lambda: torch.ones(1).expand(4), lambda: torch.ones(6).as_strided((4, 3), (1, 1))):
        outs = [made() for _ in range(size)]
        refused("argument", lambda outs=outs: dist.all_gather(outs, outs[0].clone()), "share memory")  # type: ignore[misc]
        goes_on(rank, size)
        refused("argument", lambda outs=outs: dist.all_reduce(outs[0]), "share memory")  # type: ignore[misc]
        goes_on(rank, size)
    parts = [torch.ones(4 + other) for other in range(size)]
    out = torch.ones(1).expand(4 + rank)
    refused("argument", lambda: dist.reduce_scatter(out, parts), "share memory")
    goes_on(rank, size)


def case_sizes_of_all_to_all_that_do_not_fit(rank: int, size: int) -> None:
    """Gloo ends the process then."""
    words = ("rank 0 sends 3 elements to rank 1, which expects 2", "all_to_all")
    own = [1, 3] if rank == 0 else [3, 2]
    theirs = [1, 3] if rank == 0 else [2, 2]
    refused(
        "mismatch", lambda: dist.all_to_all_single(torch.empty(sum(theirs)), torch.ones(sum(own)), theirs, own), *words
    )
    goes_on(rank, size)
    outs = [torch.empty(count) for count in theirs]
    refused("mismatch", lambda: dist.all_to_all(outs, [torch.ones(count) for count in own]), *words)
    goes_on(rank, size)
    refused("mismatch", lambda: dist.all_to_all_single(torch.empty(4 + 2 * rank), torch.ones(4 + 2 * rank)), "sends 2")
    refused("argument", lambda: dist.all_to_all_single(torch.empty(4), torch.ones(4), [1, 2], [2, 2]), "sum is 4")
    refused("argument", lambda: dist.all_to_all([torch.empty(4)], [torch.ones(4)] * 2), "2 tensors into 1")
    goes_on(rank, size)
    call = dist.all_gather_into_tensor if rank else dist.all_to_all_single
    refused("mismatch", lambda: call(torch.empty(8 if rank else 4), torch.ones(4)), f"rank {1 - rank} calls")
    goes_on(rank, size)


def case_a_mismatch_beside_the_switch_says_what_this_rank_called(rank: int, size: int) -> None:
    tensor = torch.ones(2 + rank, 3, dtype=torch.float64)
    refused(
        "mismatch",
        lambda: dist.all_reduce(tensor, dist.ReduceOp.MIN),
        f"[all_reduce([{2 + rank}x3] x float64, MIN), rank {1 - rank}",
    )
    refused("mismatch", lambda: dist.gather(tensor, dst=1 - rank), f"float64, root {1 - rank})")
    goes_on(rank, size)


def case_lists_of_other_lengths(rank: int, size: int) -> None:
    refused("argument", lambda: dist.all_gather([torch.empty(5)], torch.ones(5)), "list of 1")
    lists = [torch.ones(1), torch.ones(3)]
    refused("argument", lambda: dist.reduce_scatter(torch.empty(2), lists), "[1, 3]")
    refused("argument", lambda: dist.reduce_scatter(torch.empty(2), [torch.ones(2)]), "[2]")
    goes_on(rank, size)


def case_a_list_at_the_root_that_is_not_like_the_roots_own_tensor(rank: int, size: int) -> None:
    plain, part = torch.ones(4), torch.ones(5)
    for wrong in ([plain, part], [torch.ones(2, 2)] * 2, [plain], [plain] * 3):
        for call in (dist.scatter, dist.gather):
            given = (torch.ones(4), [tensor.clone() for tensor in wrong] if rank == 0 else None)
            words = ("a list at the root of", "give 2 tensors") if rank == 0 else ("rank 0", "wrong")
            kind = "mismatch" if rank else "argument"
            refused(kind, lambda call=call, given=given: call(*given), *words)  # type: ignore[misc]
            goes_on(rank, size)


def case_a_monitored_barrier_without_time(rank: int, size: int) -> None:
    assert dist.group.WORLD is not None
    if rank == 0:
        with pytest.raises(RuntimeError, match="Rank 0 timed out in monitoredBarrier after 0 ms"):
            dist.group.WORLD.monitored_barrier(timedelta(0))
    goes_on(rank, size)
    dist.group.WORLD.monitored_barrier(timedelta(seconds=60), wait_all_ranks=True)


def case_the_profiler_shows_operations(rank: int, size: int) -> None:
    with profile(activities=[ProfilerActivity.CPU]) as spans:
        goes_on(rank, size)
        dist.barrier()
        dist.all_gather([torch.empty(5) for _ in range(size)], torch.ones(5))  # what Python carries out in either group
    names = {event.key for event in spans.key_averages()}
    assert {"catchment:all_reduce", "catchment:barrier", "catchment:all_gather"} <= names, names


def case_a_subgroup_of_a_job_of_its_own_is_not_made_quietly_of_another(rank: int, size: int) -> None:
    with pytest.raises(CollectiveError, match="describes no job"):
        dist.new_group(ranks=list(range(size)), pg_options=Settings(job=Path("/nowhere/job.json")))
    goes_on(rank, size)


def case_the_group_can_be_made_again_with_the_same_store(rank: int, size: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    for _ in range(2):
        dist.destroy_process_group()
        dist.init_process_group("catchment", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
        goes_on(rank, size)


def case_the_switch_is_killed(rank: int, size: int) -> None:
    """The last one: both ranks are told, long before the timeout, which switch it was, and how it ended."""
    goes_on(rank, size)
    pids: list[object] = [switch_below(os.getpid()) if rank == 0 else None]
    dist.broadcast_object_list(pids, 0)
    heard = torch.zeros(1)
    if rank == 1:
        dist.send(heard, 0)  # by gloo: what the switch has on its way when it is killed is lost
    else:
        dist.recv(heard, 1)
        os.kill(int(str(pids[0])), signal.SIGKILL)
    with pytest.raises(CollectiveError) as caught:
        train_for_ever()
    assert caught.value.kind == "unreachable"
    assert f"process {pids[0]} on" in str(caught.value) and "has ended with SIGKILL" in str(caught.value)


def train_for_ever() -> None:
    while True:
        dist.all_reduce(torch.ones(1000))


def switch_below(ancestor: int) -> int:
    """The process of the switch that a process has started, by whomever."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = status.read_text().partition(" (")[2].rpartition(") ")
            parents[int(status.parent.name)] = (name, int(rest.split()[1]))
    for pid, (name, parent) in parents.items():
        above = parent
        while above in parents and above != ancestor:
            above = parents[above][1]
        if above == ancestor and name.startswith("catchment-switc"):
            return pid
    raise AssertionError("no switch")
