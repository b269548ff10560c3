"""What torch expects of a process group, for three ranks; every rank knows all ranks' inputs and so all results."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.native_group import switch_of

FLOATS = {torch.float32: 2.0**-22, torch.float16: 2.0**-9, torch.bfloat16: 2.0**-6}
OTHERS = (torch.float64, torch.int64, torch.uint8, torch.int8)
LENGTHS = (1, 7, 1000, 70_001)


def data(rank: int, dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    """A rank's input: different for each rank, the same wherever it is made."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 40, shape, generator=generator).to(dtype)


def stacked(size: int, dtype: torch.dtype, *shape: int, seed: int = 0) -> torch.Tensor:
    """All ranks' inputs."""
    return torch.stack([data(rank, dtype, *shape, seed=seed) for rank in range(size)])


def check_sum(got: torch.Tensor, parts: torch.Tensor, divisor: int = 1) -> None:
    """Integers exactly; floats within the format's error, relative to the largest element of all."""
    if not got.dtype.is_floating_point:
        assert torch.equal(got, parts.sum(0, dtype=got.dtype))
        return
    exact = parts.double().sum(0) / divisor
    bound = FLOATS.get(got.dtype, 1e-12) * max(1.0, float(parts.abs().max())) * len(parts)
    assert (got.double() - exact).abs().max() <= bound


def same_everywhere(tensor: torch.Tensor) -> None:
    """The same bits on all ranks."""
    digests: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(digests, hashlib.sha256(tensor.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest())
    assert len(set(digests)) == 1, digests


def case_names(rank: int, size: int) -> None:
    assert (dist.get_backend(), dist.get_rank(), dist.get_world_size()) == ("catchment", rank, size)
    world = dist.group.WORLD
    assert world is not None
    assert world.group_name == dist.distributed_c10d._world.pg_names[world]


def case_all_reduce_sums_floats(rank: int, size: int) -> None:
    for dtype in FLOATS:
        for length in LENGTHS:
            tensor = data(rank, dtype, length)
            dist.all_reduce(tensor)
            check_sum(tensor, stacked(size, dtype, length))
            same_everywhere(tensor)


def case_all_reduce_sums_integers_exactly(rank: int, size: int) -> None:
    for dtype in (torch.int32, *OTHERS):
        tensor = data(rank, dtype, 1000)
        dist.all_reduce(tensor)
        check_sum(tensor, stacked(size, dtype, 1000))


def case_all_reduce_with_other_operations(rank: int, size: int) -> None:
    for dtype in (torch.float32, torch.int32):
        parts = stacked(size, dtype, 99)
        for op, expected in (
            (dist.ReduceOp.MAX, parts.amax(0)),
            (dist.ReduceOp.MIN, parts.amin(0)),
            (dist.ReduceOp.PRODUCT, parts[0] * parts[1] * parts[2]),
        ):
            tensor = data(rank, dtype, 99)
            dist.all_reduce(tensor, op=op)
            torch.testing.assert_close(tensor, expected)
    bits = data(rank, torch.int32, 99)
    dist.all_reduce(bits, op=dist.ReduceOp.BXOR)
    parts = stacked(size, torch.int32, 99)
    assert torch.equal(bits, parts[0] ^ parts[1] ^ parts[2])


def case_all_reduce_averages(rank: int, size: int) -> None:
    for dtype in FLOATS:
        tensor = data(rank, dtype, 1000)
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        check_sum(tensor, stacked(size, dtype, 1000), divisor=size)


def case_integers_average_towards_zero(rank: int, size: int) -> None:
    """Round as NCCL does, which libraries take for granted: lightning averages the sizes of batches."""
    for dtype in (torch.int64, torch.int32, torch.int8, torch.uint8):
        sign = torch.tensor([1, 1, -1] if dtype.is_signed else [1, 1, 1], dtype=dtype)
        all_given = [sign * torch.tensor([other, 7 + other**2, 5 + other**2], dtype=dtype) for other in range(size)]
        given, mean = all_given[rank], torch.stack(all_given).sum(0).div(size, rounding_mode="trunc").to(dtype)
        ours = given.clone()
        dist.all_reduce(ours, dist.ReduceOp.AVG)
        assert torch.equal(ours, mean)
        turned = torch.stack([given, given]).t()  # in another order of memory
        dist.all_reduce(turned, dist.ReduceOp.AVG)
        assert torch.equal(turned, torch.stack([mean, mean]).t())
        ours = given.clone()
        dist.reduce(ours, 1, dist.ReduceOp.AVG)
        assert rank != 1 or torch.equal(ours, mean)
        parts = given.repeat(size)
        dist.reduce_scatter_single(ours, parts, dist.ReduceOp.AVG)
        assert torch.equal(ours, mean)
        assert torch.equal(parts, given.repeat(size))
        several = [given.clone(), given.clone()]
        dist.all_reduce_coalesced(several, dist.ReduceOp.AVG)
        assert all(torch.equal(each, mean) for each in several)


def case_all_reduce_takes_any_layout(rank: int, size: int) -> None:
    square = data(rank, torch.float32, 40, 30)
    view = square.t()[::2]
    untouched = square.t()[1::2].clone()
    dist.all_reduce(view)
    check_sum(view, stacked(size, torch.float32, 40, 30).transpose(1, 2)[:, ::2])
    assert torch.equal(square.t()[1::2], untouched)
    dist.all_reduce(torch.zeros(0))
    scalar = torch.tensor(float(rank))
    dist.all_reduce(scalar)
    assert scalar.item() == sum(range(size))


def case_all_reduce_of_what_needs_grad(rank: int, size: int) -> None:
    parameter = torch.nn.Parameter(data(rank, torch.float32, 50))
    dist.all_reduce(parameter.data)
    check_sum(parameter.data, stacked(size, torch.float32, 50))


def case_many_in_flight_are_waited_for_in_any_order(rank: int, size: int) -> None:
    tensors = [data(rank, torch.float32, 1 + 997 * i, seed=i) for i in range(12)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i in (11, 0, 5, *range(12)):
        assert works[i].wait() is True
        assert works[i].is_completed() and works[i].is_success() and works[i].exception() is None
        check_sum(tensors[i], stacked(size, torch.float32, 1 + 997 * i, seed=i))


def case_futures_come_with_the_result(rank: int, size: int) -> None:
    tensors = [data(rank, torch.float32, 100, seed=i) for i in range(5)]
    futures = [dist.all_reduce(tensor, async_op=True).get_future() for tensor in tensors]
    doubled = [future.then(lambda f: f.value()[0] * 2) for future in futures]
    for i, future in enumerate(doubled):
        check_sum(future.wait() / 2, stacked(size, torch.float32, 100, seed=i))
    torch.futures.wait_all([dist.barrier(async_op=True).get_future()])


def case_polling_ends(rank: int, size: int) -> None:
    work = dist.all_reduce(torch.ones(10), async_op=True)
    deadline = time.monotonic() + 240
    while not work.is_completed():
        assert time.monotonic() < deadline
    assert work.result()[0].tolist() == [size] * 10


def case_broadcast_carries_any_bytes(rank: int, size: int) -> None:
    for root in range(size):
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.float64):
            tensor = data(rank, dtype, 3, 333)
            dist.broadcast(tensor, root)
            assert torch.equal(tensor, data(root, dtype, 3, 333))
        flags = data(rank, torch.uint8, 77) > 20
        dist.broadcast(flags, root)
        assert torch.equal(flags, data(root, torch.uint8, 77) > 20)
        column = data(rank, torch.float32, 20, 20)[:, 3]
        dist.broadcast(column, root)
        assert torch.equal(column, data(root, torch.float32, 20, 20)[:, 3])
    odd = torch.tensor([float("nan"), float("inf"), -0.0])
    dist.broadcast(odd, 0)
    assert odd.isnan()[0] and odd[1] == float("inf") and odd.signbit()[2]


def case_all_gather(rank: int, size: int) -> None:
    for dtype in (torch.float32, torch.int64, torch.uint8, torch.bool):
        parts = [torch.zeros(5, 9, dtype=dtype) for _ in range(size)]
        dist.all_gather(parts, data(rank, dtype, 5, 9))
        assert all(torch.equal(parts[r], data(r, dtype, 5, 9)) for r in range(size))
        whole = torch.zeros(size * 5, 9, dtype=dtype)
        dist.all_gather_single(whole, data(rank, dtype, 5, 9))
        assert torch.equal(whole.view(size, 5, 9), stacked(size, dtype, 5, 9))
    own = torch.zeros(size, 100)
    own[rank] = data(rank, torch.float32, 100)
    dist.all_gather_single(own, own[rank])  # in place
    assert torch.equal(own, stacked(size, torch.float32, 100))


def case_reduce_leaves_the_others_alone(rank: int, size: int) -> None:
    for root in range(size):
        tensor = data(rank, torch.float32, 500)
        dist.reduce(tensor, root)
        if rank == root:
            check_sum(tensor, stacked(size, torch.float32, 500))
        else:
            assert torch.equal(tensor, data(rank, torch.float32, 500))


def case_reduce_scatter(rank: int, size: int) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int32):
        given = data(rank, dtype, size, 333)
        exact = stacked(size, dtype, size, 333)[:, rank]
        out = torch.zeros(333, dtype=dtype)
        dist.reduce_scatter_single(out, given)
        check_sum(out, exact)
        out.zero_()
        dist.reduce_scatter(out, list(given))
        check_sum(out, exact)
    out, given = torch.zeros(10), data(rank, torch.float32, size, 10)
    dist.reduce_scatter_single(out, given, op=dist.ReduceOp.AVG)
    check_sum(out, stacked(size, torch.float32, size, 10)[:, rank], divisor=size)


def case_reduce_scatter_of_parts_of_different_sizes(rank: int, size: int) -> None:
    """Gloo does it so, whatever the type."""
    sizes = [7, 2, 1300][:size]
    for dtype in (torch.float32, torch.bfloat16, torch.int32, torch.float64):
        given = data(rank, dtype, sum(sizes))
        exact = stacked(size, dtype, sum(sizes)).split(sizes, dim=1)[rank]
        out = torch.zeros(sizes[rank], dtype=dtype)
        dist.reduce_scatter(out, list(given.split(sizes)))
        check_sum(out, exact)
    out = torch.zeros(sizes[rank] // 2, 2).t()  # in another order of memory
    parts = [part[: part.numel() // 2 * 2].view(2, -1) for part in data(rank, torch.float32, sum(sizes)).split(sizes)]
    dist.reduce_scatter(out, parts)
    exact = stacked(size, torch.float32, sum(sizes)).split(sizes, dim=1)[rank]
    check_sum(out, exact[:, : out.numel()].reshape(size, *out.shape))


def case_barrier_holds_everybody(rank: int, size: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    for turn in range(size):
        if rank == turn:
            time.sleep(0.1)
            store.set(f"arrived/{turn}", "yes")
        dist.barrier()
        assert store.check([f"arrived/{turn}"])


def case_objects(rank: int, size: int) -> None:
    gathered: list[object] = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    assert gathered == [{"rank": r, "text": "x" * r} for r in range(size)]
    objects: list[object] = [{"seed": 3}, rank] if rank == 1 else [None, None]
    dist.broadcast_object_list(objects, src=1)
    assert objects == [{"seed": 3}, 1]
    collected: list[object] | None = [None] * size if rank == 0 else None
    dist.gather_object(rank, collected, dst=0)
    assert rank or collected == list(range(size))
    mine: list[object] = [None]
    dist.scatter_object_list(mine, [f"for {r}" for r in range(size)] if rank == 0 else None, src=0)
    assert mine == [f"for {rank}"]


def operations() -> int:
    """That this rank has begun on the switch of the default group."""
    switch = switch_of(dist.group.WORLD)
    assert switch is not None
    return switch.communicator.stats()["operations"]


def case_coalesced(rank: int, size: int) -> None:
    tensors = [data(rank, torch.float32, 10 + i, seed=i) for i in range(4)]
    before = operations()
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    assert operations() - before == 1
    for i, tensor in enumerate(tensors):
        check_sum(tensor, stacked(size, torch.float32, 10 + i, seed=i))
    outs = [torch.zeros(size, 10 + i) for i in range(4)]
    before = operations()
    with dist._coalescing_manager(async_ops=True) as manager:
        for i, out in enumerate(outs):
            dist.all_gather_single(out, data(rank, torch.float32, 10 + i, seed=i))
    manager.wait()
    assert operations() - before == 1
    assert all(torch.equal(out, stacked(size, torch.float32, 10 + i, seed=i)) for i, out in enumerate(outs))
    parts = [torch.zeros(i) for i in range(4)]  # the first is empty
    before = operations()
    with dist._coalescing_manager():
        for i, part in enumerate(parts):
            dist.reduce_scatter_single(part, data(rank, torch.float32, size, i, seed=i).view(-1))
    assert operations() - before == 1
    for i, part in enumerate(parts[1:], 1):
        check_sum(part, stacked(size, torch.float32, size, i, seed=i)[:, rank])


def case_coalesced_of_several_types_and_layouts(rank: int, size: int) -> None:
    types = (torch.float32, torch.bfloat16, torch.int32, torch.float32)
    wanted = [stacked(size, dtype, 3, 5, seed=i) for i, dtype in enumerate(types)]
    tensors = [torch.empty(5, 3, dtype=dtype).t().copy_(own[rank]) for dtype, own in zip(types, wanted, strict=True)]
    before = operations()
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    assert operations() - before == 3  # one for each type
    for tensor, right in zip(tensors, wanted, strict=True):
        check_sum(tensor, right)
    doubles = [torch.full((2,), rank + 1.0, dtype=torch.float64), torch.full((3,), 1.0, dtype=torch.float64)]
    dist.all_reduce_coalesced(doubles)  # by gloo
    assert doubles[0].tolist() == [size * (size + 1) / 2] * 2 and doubles[1].tolist() == [float(size)] * 3
    gathered = [[torch.zeros(3, dtype=torch.int64), torch.zeros(2, 2, dtype=torch.int64)] for _ in range(size)]
    given = [torch.full((3,), rank), data(rank, torch.int64, 2, 2)]
    before = operations()
    dist.all_gather_coalesced(gathered, given)
    assert operations() - before == 1
    for other, (numbers, drawn) in enumerate(gathered):
        assert numbers.tolist() == [other] * 3 and torch.equal(drawn, data(other, torch.int64, 2, 2))


def case_coalesced_calls_that_do_not_fit_are_refused_everywhere(rank: int, size: int) -> None:
    outs = [torch.zeros(size, 4), torch.zeros(size, 4 if rank else 3)]
    with pytest.raises(CollectiveError) as refused:
        dist.group.WORLD.all_gather_single_coalesced(outs, [torch.ones(4)] * 2).wait()
    assert refused.value.kind == ("mismatch" if rank else "argument"), refused.value
    tensor = torch.ones(3)
    dist.all_reduce_coalesced([tensor, tensor.clone()])
    assert tensor.tolist() == [float(size)] * 3


def case_point_to_point(rank: int, size: int) -> None:
    right, left = (rank + 1) % size, (rank - 1) % size
    got = torch.zeros(100)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, data(rank, torch.float32, 100), right), dist.P2POp(dist.irecv, got, left)]
    )
    for work in works:
        work.wait()
    assert torch.equal(got, data(left, torch.float32, 100))
    if rank == 0:
        dist.send(torch.arange(5), 1, tag=3)
    elif rank == 1:
        numbers = torch.zeros(5, dtype=torch.int64)
        assert dist.recv(numbers, tag=3) == 0 and numbers.tolist() == list(range(5))


def case_sends_and_receives_wait_for_nobody(rank: int, size: int) -> None:
    """A pair that has never met: what one of them calls first returns, and both go on to a collective."""
    group = dist.new_group()  # nobody is connected in it
    got, sum_ = torch.zeros(2, 3), torch.ones(1, dtype=torch.float64)
    last = size - 1
    works = []
    if rank == 0:
        works = [dist.irecv(got[0], last, group=group), dist.isend(torch.full((3,), 7.0), last, group=group)]
        works.append(dist.irecv(got[1], last, group=group, tag=5))
    if rank == last:
        works = [dist.irecv(got[0], 0, group=group)]
    dist.all_reduce(torch.ones(3), group=group)
    dist.all_reduce(sum_, group=group)  # by gloo, whose connections it shares
    if rank == last:
        dist.send(torch.full((3,), 8.0), 0, group=group)
        dist.send(torch.full((3,), 9.0), 0, group=group, tag=5)
    for work in works:
        work.wait()
        assert work.is_completed()
    assert sum_.item() == size
    assert got[:, 0].tolist() == {0: [8.0, 9.0], last: [7.0, 0.0]}.get(rank, [0.0, 0.0])
    dist.barrier(group=group)
    dist.destroy_process_group(group)


def case_gather_scatter_all_to_all(rank: int, size: int) -> None:
    gathered = [torch.zeros(10) for _ in range(size)] if rank == 2 else None
    dist.gather(data(rank, torch.float32, 10), gathered, dst=2)
    assert gathered is None or torch.equal(torch.stack(gathered), stacked(size, torch.float32, 10))
    part = torch.zeros(10)
    dist.scatter(part, list(data(0, torch.float32, size, 10)) if rank == 0 else None, src=0)
    assert torch.equal(part, data(0, torch.float32, size, 10)[rank])
    out = torch.zeros(size, 4)
    dist.all_to_all_single(out, data(rank, torch.float32, size, 4))
    assert torch.equal(out, torch.stack([data(r, torch.float32, size, 4)[rank] for r in range(size)]))
    outs = [torch.zeros(4) for _ in range(size)]
    dist.all_to_all(outs, list(data(rank, torch.float32, size, 4)))
    assert torch.equal(torch.stack(outs), out)


def apart(values: torch.Tensor) -> torch.Tensor:
    """The same values in a tensor that has elements of another one between its own."""
    whole = torch.full((*values.shape, 3), 77, dtype=values.dtype)
    whole[..., 0] = values
    return whole[..., 0]


def holds(got: torch.Tensor, expected: torch.Tensor) -> None:
    """The tensor has these values, and nothing was written between its elements."""
    assert torch.equal(got, expected), (got, expected)
    assert got._base is not None
    assert (got._base[..., 1:] == 77).all(), got._base


GLOO_TYPES = (torch.float64, torch.int64, torch.uint8)


def case_reductions_by_gloo_take_any_layout(rank: int, size: int) -> None:
    for dtype in GLOO_TYPES:
        parts = torch.stack([torch.arange(1, 13, dtype=dtype).view(3, 4) + r for r in range(size)])
        for op, expected in (
            (dist.ReduceOp.SUM, parts.sum(0, dtype=dtype)),
            (dist.ReduceOp.MIN, parts[0]),
            (dist.ReduceOp.PRODUCT, parts.prod(0, dtype=dtype)),
        ):
            own = apart(parts[rank])
            dist.all_reduce(own, op)
            holds(own, expected)
            for root in range(size):
                own = apart(parts[rank])
                dist.reduce(own, root, op)
                holds(own, expected if rank == root else parts[rank])
        both = [apart(parts[rank]), apart(parts[rank][0])]
        dist.all_reduce_coalesced(both)
        holds(both[0], parts.sum(0, dtype=dtype))
        holds(both[1], parts[:, 0].sum(0, dtype=dtype))
    bits = apart(torch.arange(5) + rank)
    dist.all_reduce(bits, dist.ReduceOp.BXOR)
    holds(bits, torch.arange(5) ^ torch.arange(1, 6) ^ torch.arange(2, 7))


def case_reduce_scatter_by_gloo_takes_any_layout(rank: int, size: int) -> None:
    for dtype in GLOO_TYPES:
        parts = torch.stack([torch.arange(4 * size, dtype=dtype).view(size, 4) * (r + 1) for r in range(size)])
        out, given = apart(torch.zeros(4, dtype=dtype)), apart(parts[rank])
        dist.reduce_scatter_single(out, given)
        holds(out, parts.sum(0, dtype=dtype)[rank])
        holds(given, parts[rank])
        out = apart(torch.zeros(4, dtype=dtype))
        dist.reduce_scatter(out, [apart(part) for part in parts[rank]])
        holds(out, parts.sum(0, dtype=dtype)[rank])
        own = apart(torch.zeros(2, rank + 1, dtype=dtype))  # parts of different sizes
        dist.reduce_scatter(own, [apart(torch.full((2, r + 1), r + rank, dtype=dtype)) for r in range(size)])
        holds(own, torch.full((2, rank + 1), sum(rank + r for r in range(size)), dtype=dtype))


def case_what_gloo_moves_may_have_any_layout(rank: int, size: int) -> None:
    for dtype in (torch.float32, *GLOO_TYPES):
        parts = stacked(size, dtype, size, 4)
        outs = [apart(torch.zeros(size, 4, dtype=dtype)) for _ in range(size)] if rank == 1 else None
        dist.gather(apart(parts[rank]), outs, dst=1)
        for r, got in enumerate(outs or ()):
            holds(got, parts[r])
        own = apart(torch.zeros(4, dtype=dtype))
        dist.scatter(own, [apart(part) for part in parts[2]] if rank == 2 else None, src=2)
        holds(own, parts[2][rank])
        whole = apart(torch.zeros(size, 4, dtype=dtype))
        dist.all_to_all_single(whole, apart(parts[rank]))
        holds(whole, parts[:, rank])
        outs = [apart(torch.zeros(4, dtype=dtype)) for _ in range(size)]
        dist.all_to_all(outs, [apart(part) for part in parts[rank]])
        for r, got in enumerate(outs):
            holds(got, parts[r][rank])
        got = apart(torch.zeros(size, 4, dtype=dtype))
        sent = dist.isend(apart(parts[rank]), (rank + 1) % size)
        dist.recv(got, (rank - 1) % size)
        sent.wait()
        holds(got, parts[(rank - 1) % size])


def case_splits_of_all_to_all(rank: int, size: int) -> None:
    """Rank r sends r + s + 1 rows to rank s."""
    given = [torch.full((rank + s + 1, 2), 10.0 * rank + s) for s in range(size)]
    expected = torch.cat([torch.full((r + rank + 1, 2), 10.0 * r + rank) for r in range(size)])
    splits = [rank + r + 1 for r in range(size)]
    out = apart(torch.zeros(len(expected), 2))
    dist.all_to_all_single(out, torch.cat(given), splits, splits)
    holds(out, expected)
    outs = [torch.zeros(r + rank + 1, 2) for r in range(size)]
    dist.all_to_all(outs, given)
    assert torch.equal(torch.cat(outs), expected)


def case_results_of_gloo_are_in_place_before_anybody_is_told(rank: int, size: int) -> None:
    total = float(sum(range(1, size + 1)))
    polled, waited, dropped, followed = (apart(torch.full((5,), rank + 1.0, dtype=torch.float64)) for _ in range(4))
    work = dist.all_reduce(polled, async_op=True)
    await_true(work.is_completed)
    holds(polled, torch.full((5,), total, dtype=torch.float64))
    dist.all_reduce(dropped, async_op=True)  # a caller that does not wait gets the result, too
    future = dist.all_reduce(followed, async_op=True).get_future()
    doubled = future.then(lambda done: [done.value()[0] * 2, followed.clone()])
    work = dist.all_reduce(waited, async_op=True)
    assert work.wait(timedelta(seconds=240)) and work.is_success() and work.wait()
    holds(waited, torch.full((5,), total, dtype=torch.float64))
    assert doubled.wait()[0].tolist() == [2 * total] * 5 and doubled.wait()[1].tolist() == [total] * 5
    out = torch.zeros(2, dtype=torch.float64)
    scattered = dist.reduce_scatter_single(out, torch.ones(2 * size, dtype=torch.float64), async_op=True).get_future()
    assert scattered.wait()[0].tolist() == out.tolist() == [float(size)] * 2
    await_true(lambda: dropped.tolist() == [total] * 5)
    holds(dropped, torch.full((5,), total, dtype=torch.float64))


def await_true(question: Callable[[], bool]) -> None:
    """Ask until the answer is yes."""
    deadline = time.monotonic() + 60
    while not question():
        assert time.monotonic() < deadline


def case_functional_collectives(rank: int, size: int) -> None:
    world = dist.group.WORLD
    assert world is not None
    check_sum(functional.all_reduce(data(rank, torch.float32, 60), "sum", world) + 0, stacked(size, torch.float32, 60))
    gathered = functional.all_gather_single(data(rank, torch.float32, 2, 5), 0, world) + 0
    assert torch.equal(gathered.view(size, 2, 5), stacked(size, torch.float32, 2, 5))
    scattered = functional.reduce_scatter_single(data(rank, torch.float32, size, 6), "sum", 0, world) + 0
    check_sum(scattered[0], stacked(size, torch.float32, size, 6)[:, rank])
    check_sum(functional.broadcast(data(rank, torch.float32, 8), 1, world) + 0, data(1, torch.float32, 8).unsqueeze(0))


def case_subgroups_have_jobs_of_their_own(rank: int, size: int) -> None:
    pair = dist.new_group([0, 2])
    tensor = data(rank, torch.float32, 1000)
    if rank == 1:
        assert pair == dist.GroupMember.NON_GROUP_MEMBER
    else:
        works = [dist.all_reduce(tensor, group=pair, async_op=True)]
        both = data(rank, torch.float32, 2, 10)
        out = torch.zeros(10)
        works.append(dist.reduce_scatter_single(out, both, group=pair, async_op=True))
        for work in works:
            work.wait()
        check_sum(tensor, torch.stack([data(r, torch.float32, 1000) for r in (0, 2)]))
        check_sum(out, torch.stack([data(r, torch.float32, 2, 10)[rank // 2] for r in (0, 2)]))
        dist.broadcast(tensor, src=2, group=pair)
    world = data(rank, torch.float32, 1000)
    dist.all_reduce(world)
    check_sum(world, stacked(size, torch.float32, 1000))
    alone = dist.new_group([1])
    if rank == 1:
        dist.all_reduce(tensor, group=alone)
        assert torch.equal(tensor, data(1, torch.float32, 1000))
        dist.destroy_process_group(alone)
    else:
        dist.destroy_process_group(pair)


def case_bad_arguments_are_said_at_once(rank: int, size: int) -> None:
    with pytest.raises(CollectiveError, match=r"all_gather of 5 x torch\.float32 into 7"):
        dist.all_gather_single(torch.zeros(7), torch.zeros(5))
    with pytest.raises(CollectiveError, match="another size or type"):
        dist.all_gather([torch.zeros(3)] * size, torch.zeros(5))
    with pytest.raises(CollectiveError, match="reduce_scatter of 5"):
        dist.reduce_scatter_single(torch.zeros(7), torch.zeros(5))
    with pytest.raises((CollectiveError, NotImplementedError), match=r"dense|SparseCPU"):  # torch's word, or ours
        dist.broadcast(torch.eye(3).to_sparse(), 0)
    dist.barrier()


def case_calls_that_do_not_match_are_an_error_everywhere(rank: int, size: int) -> None:
    for wrong in (
        lambda group: dist.all_reduce(torch.zeros(100 if rank else 5000), group=group),
        lambda group: dist.all_reduce(torch.zeros(64, dtype=torch.float16 if rank else torch.float32), group=group),
        lambda group: dist.broadcast(torch.zeros(10), rank, group=group) if rank else dist.barrier(group),
    ):
        group = dist.new_group(timeout=timedelta(seconds=100))
        with pytest.raises(CollectiveError) as caught:
            wrong(group)
        assert caught.value.kind == "mismatch"
        dist.barrier()
        dist.destroy_process_group(group)


def case_a_rank_that_does_not_come_is_named(rank: int, size: int) -> None:
    group = dist.new_group(timeout=timedelta(seconds=5))
    if rank != 1:
        with pytest.raises(CollectiveError, match="rank 1") as caught:
            dist.all_reduce(torch.zeros(10), group=group)
        assert caught.value.peers == (1,)
        later = dist.all_reduce(torch.zeros(10), group=group, async_op=True)
        with pytest.raises(RuntimeError, match="rank 1"):
            later.get_future().wait()
    dist.barrier()
    dist.destroy_process_group(group)


def case_a_rank_that_leaves_in_order_is_named_by_those_that_wait_for_it(rank: int, size: int) -> None:
    """Long before the timeout: farewells tell it, not the clock."""
    group = dist.new_group(timeout=timedelta(minutes=30))
    everybody = torch.full((5,), float(rank))
    dist.all_reduce(everybody, group=group)
    assert everybody.tolist() == [3.0] * 5
    if rank != 1:
        with pytest.raises(CollectiveError, match="rank 1 has left") as caught:
            dist.all_reduce(torch.zeros(10), group=group)
        assert (caught.value.kind, caught.value.peers) == ("missing", (1,))
    dist.destroy_process_group(group)
    dist.barrier()


def case_waiting_has_a_timeout(rank: int, size: int) -> None:
    group = dist.new_group()
    tensor = torch.ones(10)
    if rank == 0:
        work = dist.all_reduce(tensor, group=group, async_op=True)
        with pytest.raises(TimeoutError):
            work.wait(timedelta(milliseconds=50))
        dist.barrier()
        work.wait()
    else:
        dist.barrier()
        dist.all_reduce(tensor, group=group)
    assert tensor.tolist() == [size] * 10
    dist.destroy_process_group(group)


def case_a_time_longer_than_any_is_never_over(rank: int, size: int) -> None:
    group = dist.new_group(timeout=timedelta(days=365_000))
    tensor = torch.ones(10)
    if rank != 0:
        dist.barrier()
    work = dist.all_reduce(tensor, group=group, async_op=True)
    if rank == 0:
        dist.barrier()  # the others call it only now
    work.wait(timedelta(days=365_000))
    assert tensor.tolist() == [size] * 10
    dist.destroy_process_group(group)


def case_destroyed_and_made_again(rank: int, size: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()
    again = dist.PrefixStore("again", store)
    dist.init_process_group("catchment", store=again, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    tensor = data(rank, torch.float32, 1000)
    dist.all_reduce(tensor)
    check_sum(tensor, stacked(size, torch.float32, 1000))


def case_a_monitored_barrier_behind_what_goes_beside_the_switch(rank: int, size: int) -> None:
    """Gloo numbers its collectives as they begin: the same on all ranks only in the order of the calls."""
    world = dist.group.WORLD
    assert world is not None
    for turn in range(30):
        tensor = torch.full((64,), float(rank), dtype=torch.float64)
        if rank == 1 and turn % 2:
            time.sleep(0.002)  # the others agree with it only now
        work = dist.all_reduce(tensor, async_op=True)
        world.monitored_barrier(timedelta(seconds=60))
        work.wait()
        assert tensor.tolist() == [size * (size - 1) / 2] * 64


def case_results_go_where_only_the_callers_thread_may_write(rank: int, size: int) -> None:
    """Tensors of inference mode and parameters, into which other threads of the group copy."""
    for allowed in (torch.inference_mode, torch.no_grad):
        for dtype in (torch.float32, torch.float64):
            with allowed():
                made = [torch.nn.Parameter(torch.zeros(4, dtype=dtype)) for _ in range(size)]
                dist.gather(data(rank, dtype, 4), made if rank == 0 else None)
                wide = [torch.nn.Parameter(data(rank, dtype, 4, 2)) for _ in range(2)]
                views = [tensor[:, 0] for tensor in wide]
                # The threads that complete futures write; `wait` might have this one do so.
                dist.all_reduce(views[0], async_op=True).get_future().wait()
                dist.broadcast(views[1], 1, async_op=True).get_future().wait()
                if rank == 0:
                    assert torch.equal(torch.stack(made), stacked(size, dtype, 4))
                check_sum(views[0], stacked(size, dtype, 4, 2)[:, :, 0])
                assert torch.equal(views[1], data(1, dtype, 4, 2)[:, 0])
    with torch.inference_mode():
        objects: list[object] = [None] * size
        dist.gather_object({"rank": rank}, objects if rank == 0 else None)
    assert rank or objects == [{"rank": other} for other in range(size)]
