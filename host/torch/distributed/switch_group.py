"""Collectives of torch tensors through the switch, in the layouts that torch has."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, final

import torch
import torch.distributed as dist

from catchment.host.collectives import CollectiveError, Communicator, Scaling, Work
from catchment.host.collectives.errors import wrong
from catchment.host.torch.distributed.later_work import LaterWork
from catchment.host.torch.distributed.layouts import in_one_piece, is_plain, refuse_shared_elements
from catchment.host.torch.distributed.ranks import RankOrder
from catchment.host.torch.distributed.relay import Relay
from catchment.host.torch.distributed.seat import Loss, Seat
from catchment.host.torch.distributed.sizes import Sizes, check_sizes
from catchment.host.torch.distributed.together import start_together
from catchment.host.torch.distributed.work import Completions, SwitchWork, span

# How long operations under way may go on when a rank is gone: its last vectors may be all that was needed.
_GRACE: Final = 1.0
_LINGER: Final = 0.25
_OPERATIONS: Final = {dist.ReduceOp.SUM: "sum", dist.ReduceOp.AVG: "mean", dist.ReduceOp.MAX: "max"}
_TYPES: Final = (torch.float32, torch.float16, torch.bfloat16, torch.int32)

Tensors = Sequence[torch.Tensor]
Step = Callable[[], Any]


def operation_of(reduction: Any, tensors: Tensors) -> str | None:
    """The communicator's name of a reduction; None if the switch cannot do it with these types."""
    name = next((name for op, name in _OPERATIONS.items() if reduction == op), None)
    if name is None or any(tensor.dtype not in _TYPES or tensor.layout != torch.strided for tensor in tensors):
        return None
    if name == "mean" and any(tensor.dtype == torch.int32 for tensor in tensors):
        return None
    return name


@final
class SwitchGroup:
    """A communicator and the seat it came from; every method gives a `SwitchWork`.

    Every rank makes the same calls in the same order.

    Args:
        seat: of this rank.
        communicator: what does the work.
        order: which worker index each rank has.
        rank: this one.
        hosts: of each rank, as its seat names it.
    """

    def __init__(
        self, seat: Seat, communicator: Communicator, order: RankOrder, rank: int, hosts: Sequence[str | None]
    ) -> None:
        self._hosts = tuple(hosts)
        self._seat = seat
        self._communicator = communicator
        self._order = order
        self._rank = rank
        self._completions = Completions()
        self._relay = Relay()
        self._loss: Loss | None = None
        self._loss_known = threading.Event()
        self._closing = threading.Event()
        self._ending_with_it: list[Callable[[Loss], None]] = []
        seat.watch(self._lost)

    @property
    def communicator(self) -> Communicator:
        """What does the work."""
        return self._communicator

    @property
    def order(self) -> RankOrder:
        """Which worker index each rank has."""
        return self._order

    @property
    def seat(self) -> Seat:
        """The place that the communicator came from."""
        return self._seat

    @property
    def closed(self) -> bool:
        """Whether it was left."""
        return self._closing.is_set()

    @property
    def loss(self) -> Loss | None:
        """The first member of the group that is gone, or the switch."""
        return self._loss

    def await_loss(self) -> Loss | None:
        """`loss`, for which this waits a while: where another group has one, this one is about to be told."""
        self._loss_known.wait(_GRACE)
        return self._loss

    def end_with(self, whole: SwitchGroup, ranks: Sequence[int]) -> None:
        """Fail as well when another rank of `whole` is gone, in which this group has `ranks`."""

        def lost(loss: Loss) -> None:
            own = [ranks.index(rank) for rank in loss.ranks if rank in ranks]
            threading.Thread(target=self._lost, args=(replace(loss, ranks=own),), daemon=True).start()

        whole._ending_with_it.append(lost)
        if whole.loss is not None:
            lost(whole.loss)

    def all_reduce(self, tensors: Tensors, operation: str, timeout: timedelta) -> SwitchWork:
        """Reduce in place; several tensors of one type are one operation."""
        flats: list[tuple[torch.Tensor]] = []
        after: list[Step] = []
        for tensor in tensors:
            flat, back = _in_place(tensor)
            flats.append((flat,))
            after += back
        return self._several("all_reduce", flats, list(tensors), after, timeout, op=operation)

    def mean(self, tensor: torch.Tensor, scaling: Scaling | None, priority: int) -> SwitchWork:
        """Reduce a contiguous tensor of floats in place; a larger priority overtakes."""
        flat = tensor.detach().view(-1)
        part = self._run(self._communicator.all_reduce, flat, op="mean", scaling=scaling, priority=priority)
        return self._work([part], [tensor], [])

    def reduce(self, tensor: torch.Tensor, root: int, operation: str, timeout: timedelta) -> SwitchWork:
        """Reduce in place at the root."""
        flat, back = _in_place(tensor)
        worker = self._root(root)
        part = self._run(self._communicator.reduce, flat, worker, op=operation, timeout=_seconds(timeout))
        return self._work([part], [tensor], back if root == self._rank else [])

    def broadcast(self, tensors: Tensors, root: int, timeout: timedelta) -> SwitchWork:
        """Broadcast a tensor of any type in place."""
        parts: list[Work] = []
        after: list[Step] = []
        worker = self._root(root)
        for tensor in tensors:
            flat, back = _in_place(tensor)
            parts.append(self._run(self._communicator.broadcast, flat, worker, timeout=_seconds(timeout)))
            after += back
        return self._work(parts, list(tensors), after)

    def all_gather(self, outputs: Tensors, inputs: Tensors, timeout: timedelta) -> SwitchWork:
        """Each output is (ranks x input) elements, ranks one after the other; any type; several are one operation."""
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        after: list[Step] = []
        for output, source in zip(outputs, inputs, strict=True):
            if output.numel() != source.numel() * self._communicator.size or output.dtype != source.dtype:
                raise wrong(
                    f"all_gather of {source.numel()} x {source.dtype} into {output.numel()} x {output.dtype}",
                    f"the output has {self._communicator.size} times the elements of the input",
                )
            flat, back = _in_place(output)
            given = in_one_piece(source).view(-1)
            if not self._order.is_same:
                back = [partial(self._reorder, flat), *back]
                if given.untyped_storage().data_ptr() == flat.untyped_storage().data_ptr():
                    given = given.clone()  # a rank's own part of the output, where another worker's part arrives first
            pairs.append((given, flat))
            after += back
        return self._several("all_gather", pairs, list(outputs), after, timeout)

    def all_gather_lists(self, outputs: Sequence[Tensors], inputs: Tensors, timeout: timedelta) -> SwitchWork:
        """Gather as `all_gather` does, with a tensor of its own for each rank's part."""
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        flats: list[tuple[Tensors, torch.Tensor]] = []
        for listed, source in zip(outputs, inputs, strict=True):
            if len(listed) != self._communicator.size:
                raise wrong(
                    f"all_gather into a list of {len(listed)} tensors",
                    f"give one for each of the {self._communicator.size} ranks",
                )
            if any(output.numel() != source.numel() or output.dtype != source.dtype for output in listed):
                raise wrong(
                    f"all_gather of {source.numel()} x {source.dtype} into tensors of another size or type",
                    "every output is like the input; pad, or use all_gather_object",
                )
            for output in listed:
                refuse_shared_elements(output)
            flat = torch.empty(self._communicator.size, source.numel(), dtype=source.dtype)
            pairs.append((in_one_piece(source).view(-1), flat.view(-1)))
            flats.append((listed, flat))

        def scatter() -> None:
            for listed, flat in flats:
                for rank, output in enumerate(listed):
                    output.detach().copy_(flat[self._order.worker(rank)].view(output.shape))

        result = [output for listed in outputs for output in listed]
        return self._several("all_gather", pairs, result, [scatter], timeout)

    def reduce_scatter(self, outputs: Tensors, inputs: Tensors, operation: str, timeout: timedelta) -> SwitchWork:
        """Each input is (ranks x output) elements; this rank gets its part of the result; several of a type are one
        operation.
        """
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        after: list[Step] = []
        for output, source in zip(outputs, inputs, strict=True):
            if source.numel() != output.numel() * self._communicator.size or output.dtype != source.dtype:
                raise wrong(
                    f"reduce_scatter of {source.numel()} x {source.dtype} into {output.numel()} x {output.dtype}",
                    f"the input has {self._communicator.size} times the elements of the output",
                )
            flat, back = _in_place(output)
            given = in_one_piece(source)
            if not self._order.is_same:
                given = self._order.by_worker(given.view(self._communicator.size, -1))
            pairs.append((given.view(-1), flat))
            after += back
        return self._several("reduce_scatter", pairs, list(outputs), after, timeout, op=operation)

    def reduce_and_take(
        self, outputs: Tensors, inputs: Tensors, begins: Sequence[int], operation: str, timeout: timedelta
    ) -> SwitchWork:
        """Reduce the flat inputs, which this changes; this rank takes its part of each, from an element on, for parts
        of different sizes.
        """
        for output in outputs:
            refuse_shared_elements(output)

        def take() -> None:
            for output, source, begin in zip(outputs, inputs, begins, strict=True):
                output.detach().copy_(source[begin : begin + output.numel()].view(output.shape))

        flats = [(source,) for source in inputs]
        return self._several("all_reduce", flats, list(outputs), [take], timeout, op=operation)

    def barrier(self, timeout: timedelta) -> SwitchWork:
        """Done when every rank has called it."""
        return self._work([self._run(self._communicator.barrier, timeout=_seconds(timeout))], [], [])

    def beside(
        self,
        call: str,
        asked: str,
        tensors: Tensors,
        timeout: timedelta,
        start: Callable[[], dist.Work],
        *,
        sizes: Sizes | None = None,
    ) -> LaterWork:
        """An operation that goes another way: `start` starts it when all ranks have called it, with as many elements.

        Args:
            call: names the call with all that must be alike.
            asked: this rank's call in words.
            tensors: how many elements, and of which types, must also be alike.
            timeout: of the agreement.
            start: starts the operation.
            sizes: instead of the number of elements, how many each rank sends to each: that must fit.
        """
        check = None
        tag = zlib.crc32(" ".join([call, *(str(tensor.dtype) for tensor in tensors)]).encode())
        if sizes is None:
            arguments: list[Any] = [sum(tensor.numel() for tensor in tensors)]
            method: Callable[..., Work] = self._communicator.beside
        else:
            own = torch.tensor([*sizes.sent, *sizes.received], dtype=torch.int64)
            told = torch.empty(self._communicator.size, len(own), dtype=torch.int64)
            arguments, method = [own, told.view(-1)], self._communicator.all_gather
            check = partial(self._check_sizes, told, asked)
        agreed = self._run(method, *arguments, tag=tag, timeout=_seconds(timeout), asked=asked)
        return self._relayed([agreed], check, asked, start)

    def await_begun(self, timeout: float) -> bool:
        """Wait for some seconds until all that was called and goes another way has begun; False: not in time.

        Raises:
            CollectiveError: a rank was lost meanwhile.
        """
        return self._relay.await_begun(self.lost, timeout)

    def _check_sizes(self, told: torch.Tensor, asked: str) -> None:
        check_sizes(self._order.by_rank(told), self._rank, asked)

    def lost(self, patience: float) -> CollectiveError | None:
        """What to raise if a rank or the switch is gone, which may take `patience` seconds to be known."""
        if patience:
            self._loss_known.wait(patience)
        loss = self._loss
        if loss is None or self._closing.is_set():
            return None
        return self._order.in_all(_gone(CollectiveError("", kind=loss.kind), loss, ()))

    def refuse(self) -> None:
        """Tell the other ranks that this one was asked for something impossible, so that none waits for it."""
        self._communicator.refuse()

    def check_process(self) -> None:
        """Refuse a process that was forked after the group was made.

        Raises:
            CollectiveError: kind ``forked``.
        """
        self._communicator.check_process()

    def close(self) -> None:
        """Leave the group; what is pending fails."""
        self._end(_LINGER)

    def abort(self) -> None:
        """End at once, as `close` but without a goodbye to the others' late retransmissions."""
        self._end(0.0)

    def _end(self, linger: float) -> None:
        self._closing.set()
        self._communicator.close(linger)
        if not self._communicator.forked:  # a child has none of the threads
            self._relay.close()
            self._completions.close()
        self._seat.leave()

    def _root(self, root: int) -> int:
        """The worker index of an operation's root."""
        if not 0 <= root < self._communicator.size:
            raise wrong(f"invalid root rank: {root}", f"the ranks of this group are 0 to {self._communicator.size - 1}")
        return self._order.worker(root)

    def _several(
        self,
        name: str,
        pairs: Sequence[tuple[torch.Tensor, ...]],
        result: list[torch.Tensor],
        after: Sequence[Step],
        timeout: timedelta,
        **reduced: Any,
    ) -> SwitchWork:
        """Calls of the communicator's method `name`, and what is to be done behind them."""
        try:
            with span(name):
                parts, first = start_together(self._communicator, name, pairs, reduced, _seconds(timeout))
        except CollectiveError as error:
            raise self._explained(error) from None
        return self._work(parts, result, [*first, *after])

    def _run(self, call: Callable[..., Work], *arguments: Any, asked: str = "", **options: Any) -> Work:
        try:
            with span(call.__name__):
                return call(*arguments, **options)
        except CollectiveError as error:
            raise _of_call(self._explained(error), asked) from None

    def _relayed(
        self, parts: list[Work], check: Callable[[], None] | None, asked: str, start: Callable[[], dist.Work]
    ) -> LaterWork:
        def explained(error: CollectiveError) -> CollectiveError:
            return _of_call(self._explained(error), asked)

        agreed = SwitchWork(parts, [], check, explained, self._completions)
        return self._relay.begin(LaterWork(partial(_when_agreed, agreed, start), "the ranks have not agreed"))

    def _reorder(self, gathered: torch.Tensor) -> None:
        parts = gathered.detach().view(self._communicator.size, -1)
        parts.copy_(self._order.by_rank(parts))

    def _work(self, parts: list[Work], result: list[torch.Tensor], after: Sequence[Step]) -> SwitchWork:
        def finish() -> None:
            for step in after:
                step()

        return SwitchWork(parts, result, finish if after else None, self._explained, self._completions)

    def failed(self, message: str, **details: Any) -> CollectiveError:
        """What to raise for a failure that the C library tells, which names worker indices; see `CollectiveError`."""
        return self._explained(CollectiveError(message, **details))

    # When another rank or the switch is gone

    def _lost(self, loss: Loss) -> None:
        if self._loss is not None or self._closing.is_set():
            return
        ranks = loss.ranks or tuple(rank for rank, host in enumerate(self._hosts) if host in loss.hosts)
        self._loss = loss = replace(loss, ranks=ranks)
        self._loss_known.set()
        for tell in tuple(self._ending_with_it):
            tell(loss)
        if not self._closing.wait(_GRACE if loss.kind == "missing" else 0.0):
            self._communicator.close(0.0)

    def _explained(self, error: CollectiveError) -> CollectiveError:
        return self._order.in_all(self._by_rank(error))

    def _by_rank(self, error: CollectiveError) -> CollectiveError:
        ranks = self._order.ranks(error.peers)
        if error.kind == "closed" and not self._closing.is_set():
            self._loss_known.wait(_GRACE)  # the seat closed it, and is about to say why
        loss = self._loss
        if loss is None:
            return error if ranks == error.peers else error.but(peers=ranks)
        return _gone(error, loss, ranks)


def _when_agreed(agreed: SwitchWork, start: Callable[[], dist.Work]) -> dist.Work:
    """What `start` gives, when all ranks want the same."""
    agreed.await_end()
    error = agreed.exception()
    if error is not None:
        raise error
    return start()


def _gone(error: CollectiveError, loss: Loss, ranks: tuple[int, ...]) -> CollectiveError:
    """The error of a loss, which `error` may only be an effect of."""
    hint = "start the ranks again, from a checkpoint"
    return error.but(message=loss.text, kind=loss.kind, peers=tuple(loss.ranks) or ranks, hint=hint, fatal=True)


def _of_call(error: CollectiveError, asked: str) -> CollectiveError:
    """The error with this rank's own call in words, where the library has only numbers for it."""
    return error.but(operation=asked) if asked else error


def _in_place(tensor: torch.Tensor) -> tuple[torch.Tensor, list[Step]]:
    """A flat tensor to work on, and what is to be done afterwards so that the result is in `tensor`."""
    if tensor.is_sparse or tensor.is_complex():
        raise wrong(f"a tensor of {tensor.dtype}, {tensor.layout}", "make it dense and real first")
    if tensor.device.type != "cpu":
        raise wrong(f"a tensor on {tensor.device}", "copy it to the CPU first")
    source = tensor.detach()
    if is_plain(source):
        return source.view(-1), []
    refuse_shared_elements(source)
    flat = in_one_piece(source).view(-1)
    return flat, [lambda: tensor.detach().copy_(flat.view(tensor.shape))]  # detached by the thread that copies


def timeout_of(opts: Any) -> timedelta:
    """The timeout that torch's options of a call give; without options, torch's "unset", which is negative.

    Raises:
        CollectiveError: kind ``argument``: these are no options.
    """
    if opts is None:
        return timedelta(milliseconds=-1)
    timeout = getattr(opts, "timeout", None)
    if not isinstance(timeout, timedelta):
        raise wrong(f"options {opts!r}", "give torch's options of the call, or none")
    return timeout


def _seconds(timeout: timedelta) -> float | None:
    seconds = timeout.total_seconds()
    return seconds if seconds > 0 else None
