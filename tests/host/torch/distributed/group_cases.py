"""Groups of some of four ranks: one switch, one port a rank, and nothing left behind them."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from catchment.host.collectives import Block, CollectiveError, Fixed, Scaling
from catchment.host.torch.distributed.native_group import switch_of
from catchment.host.torch.distributed.settings import Settings
from catchment.wire.generated.constants import HEADER_BYTES

NATIVE = os.environ["CATCHMENT_PROCESS_GROUP"] == "c++"
PATIENCE = 60.0


def descendants(process: int) -> int:
    """How many processes a process has started, and these again."""
    children: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a process that ended since it was listed
        for task in list(Path(f"/proc/{process}/task").iterdir()):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # and a thread
                children += map(int, (task / "children").read_text().split())
    return len(children) + sum(descendants(child) for child in children)


def held() -> tuple[int, int]:
    """Threads and descriptors of this process."""
    gc.collect()
    return len(list(Path("/proc/self/task").iterdir())), len(list(Path("/proc/self/fd").iterdir()))


def await_no_more_than(before: tuple[int, int]) -> None:
    """Wait until this process holds that again: the kernel shows a thread a little longer than others wait for it."""
    until = time.monotonic() + PATIENCE
    while any(now > then for now, then in zip(held(), before, strict=True)):
        assert time.monotonic() < until, f"{held()} threads and descriptors, {before} before"
        time.sleep(0.01)


def total(group: dist.ProcessGroup | None, value: float, elements: int = 3000) -> float:
    """The sum of all ranks' values, which every element of the result has."""
    tensor = torch.full((elements,), float(value))
    dist.all_reduce(tensor, group=group)
    assert torch.equal(tensor, tensor[:1].expand(elements))
    return tensor[0].item()


def case_a_rank_of_one_machine_does_not_wait_for_grpc(rank: int, size: int) -> None:
    assert switch_of(dist.group.WORLD) is not None
    assert "grpc" not in sys.modules  # a quarter of a second of every first group


def case_a_mesh_starts_no_process(rank: int, size: int) -> None:
    before = descendants(os.getpid())
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    rows, columns = mesh.get_group("rows"), mesh.get_group("columns")
    assert switch_of(rows) is not None and switch_of(columns) is not None
    assert descendants(os.getpid()) == before
    assert (before > 0) == (rank == 0)  # the first rank has started the switch
    assert total(columns, rank) == (1 if rank < 2 else 5)
    assert total(rows, rank) == (2 if rank % 2 == 0 else 4)
    assert total(None, rank) == 6


def case_ranks_of_a_group_in_another_order(rank: int, size: int) -> None:
    order = [3, 0, 2]
    group = dist.new_group(order, sort_ranks=False)
    if rank in order:
        gathered = [torch.zeros(5) for _ in order]
        dist.all_gather(gathered, torch.full((5,), float(rank)), group=group)
        assert [part[0].item() for part in gathered] == order
        own = torch.full((len(order), 5), -1.0)
        own[group.rank()] = float(rank)
        dist.all_gather_into_tensor(own, own[group.rank()], group=group)  # in place
        assert own.tolist() == [[float(one)] * 5 for one in order]
        sent = torch.full((4000,), float(rank))
        dist.broadcast(sent, src=2, group=group)
        assert torch.equal(sent, torch.full((4000,), 2.0))
        dist.destroy_process_group(group)


def case_a_group_of_groups_members(rank: int, size: int) -> None:
    """A group is made of ranks that already share smaller groups, and outlives them."""
    low, high = dist.new_group([0, 1]), dist.new_group([2, 3])
    own = low if rank < 2 else high
    every = dist.new_group()
    assert total(own, rank) == (1 if rank < 2 else 5)
    dist.destroy_process_group(own)
    assert total(every, rank) == 6
    dist.destroy_process_group(every)


def case_groups_in_threads(rank: int, size: int) -> None:
    """Each group's operations in a thread of its own; another amount of them, of other lengths, in each."""
    groups = [(ranks, dist.new_group(ranks)) for ranks in ([0, 1, 2, 3], [0, 2], [1, 3], [0, 1, 2], [1, 2, 3])]
    wrong: list[str] = []

    def work(number: int, ranks: list[int], group: dist.ProcessGroup) -> None:
        for step in range(20 + 3 * number):
            elements = 1 + (step * 977 * (number + 1)) % 9000
            got = total(group, float(rank + step), elements)
            if got != sum(ranks) + step * len(ranks):
                wrong.append(f"group {ranks}, step {step}: {got}")

    threads = [
        threading.Thread(target=work, args=(number, ranks, group))
        for number, (ranks, group) in enumerate(groups)
        if rank in ranks
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    for ranks, group in groups:
        if rank in ranks:
            dist.destroy_process_group(group)


def case_nothing_is_left_behind_a_group(rank: int, size: int) -> None:
    def use() -> None:
        ranks = [rank // 2 * 2, rank // 2 * 2 + 1]
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        group = groups[rank // 2]
        assert total(group, rank) == sum(ranks)
        work = dist.all_reduce(torch.ones(5), group=group, async_op=True)
        work.get_future().wait()
        integers = torch.full((7,), rank)  # by gloo
        dist.all_reduce(integers, group=group)
        assert integers[0].item() == sum(ranks)
        dist.destroy_process_group(group)
        dist.barrier()

    use()  # what is made once for good
    before = held()
    for _ in range(4):
        use()
    if NATIVE:  # in Python torch's C++ side has the gloo, which lives until the interpreter exits
        await_no_more_than(before)


def case_a_groups_own_settings_are_its_own(rank: int, size: int) -> None:
    group = dist.new_group([0, 1, 2], pg_options=Settings(scaling=Fixed(3), companion=False))
    if rank == 3:
        return
    tensor = torch.full((4000,), 100.0)  # more than 2^3: it is cut
    dist.all_reduce(tensor, group=group)
    assert torch.equal(tensor, torch.full((4000,), 24.0)), tensor[0]
    with pytest.raises(CollectiveError, match="no companion"):
        dist.all_reduce(torch.ones(3, dtype=torch.float64), group=group)
    dist.destroy_process_group(group)


def case_packed_lanes_take_half_of_the_bytes(rank: int, size: int) -> None:
    """The sums of bf16 gradients are nearly those of 32-bit lanes."""
    sums, sent = [], []
    for packed in (False, True):
        group = dist.new_group(pg_options=Settings(scaling=Fixed(3, packed=packed), companion=False))
        switch = switch_of(group)
        assert switch is not None
        generator = torch.Generator().manual_seed(rank)
        tensor = torch.randn(64_000, generator=generator).to(torch.bfloat16)
        dist.all_reduce(tensor, group=group)
        sums.append(tensor.float())
        stats, frame = switch.communicator.stats(), HEADER_BYTES + 4 * switch.communicator.stream.lanes
        again = HEADER_BYTES * stats["heartbeats_sent"] + frame * stats["retransmissions"]
        sent.append(stats["bytes_sent"] - again)
        dist.barrier(group=group)
        dist.destroy_process_group(group)
    assert 0.5 <= sent[1] / sent[0] < 0.52, sent  # the signatures are as long as ever
    torch.testing.assert_close(sums[1], sums[0], rtol=2.0**-7, atol=2.0**-8)
    assert not torch.equal(sums[1], sums[0])


def case_a_rank_with_other_lanes_is_named(rank: int, size: int) -> None:
    scaling: Scaling = Block(packed=rank == 2)
    group = dist.new_group(pg_options=Settings(scaling=scaling, companion=False))
    with pytest.raises(CollectiveError, match="packed lanes") as caught:
        dist.all_reduce(torch.ones(3000), group=group)
    assert caught.value.kind == "mismatch"
    assert caught.value.peers == ((0, 1, 3) if rank == 2 else (2,))
    dist.destroy_process_group(group)


def case_a_groups_own_job_is_not_ignored(rank: int, size: int) -> None:
    if rank == 3:
        dist.new_group([0, 1, 2], pg_options=Settings(job=Path("/nowhere/job.json")))
        return
    with pytest.raises(CollectiveError, match=r"job\.json describes no job"):
        dist.new_group([0, 1, 2], pg_options=Settings(job=Path("/nowhere/job.json")))


def case_more_groups_than_one_switch_has_room_for(rank: int, size: int) -> None:
    """A second switch is started for what the first has no room for; it ends with its groups."""
    before = descendants(os.getpid())
    made = [dist.new_group([0, 1]) for _ in range(66)]
    if rank < 2:
        assert [total(group, rank, 5) for group in made] == [1.0] * 66
        if rank == 0:
            assert descendants(os.getpid()) == 2 * before
        for group in made:
            dist.destroy_process_group(group)
    dist.barrier()


def case_a_group_ends_where_a_second_interpreter_has_been(rank: int, size: int) -> None:
    """Python says to every thread from then on that it holds the lock, so a group may not depend on that."""
    interpreters = importlib.import_module("_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters")
    interpreters.destroy(interpreters.create())
    group = dist.new_group(list(range(size)))
    assert total(group, rank) == size * (size - 1) / 2
    dist.destroy_process_group(group)
    assert total(None, rank) == size * (size - 1) / 2


def case_what_is_done_keeps_no_tensor(rank: int, size: int) -> None:
    """C++ that holds a tensor keeps its Python object as well."""
    for begin in (
        dist.all_reduce,
        lambda tensor: dist.all_reduce(tensor, async_op=True).wait(),
        lambda tensor: dist.all_reduce(tensor, async_op=True).get_future().wait(),
        lambda tensor: dist.broadcast(tensor, 0),
    ):
        tensor = torch.ones(1000)
        seen = weakref.ref(tensor)
        begin(tensor)
        del tensor
        until = time.monotonic() + 60  # a thread of the group may still be about to let go of it
        while seen() is not None and time.monotonic() < until:
            gc.collect()
            time.sleep(0.01)
        assert seen() is None
