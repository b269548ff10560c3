"""Collectives of the companion: of tensors in any layout, begun when all ranks have called the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, final

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllgatherOptions

from catchment.host.collectives import CollectiveError
from catchment.host.collectives.errors import wrong
from catchment.host.collectives.whole_number import whole
from catchment.host.torch.distributed.carried import check_carried, in_words
from catchment.host.torch.distributed.companion import Companion
from catchment.host.torch.distributed.companion_work import CompanionWork, nobody_lost
from catchment.host.torch.distributed.contacts import Contacts
from catchment.host.torch.distributed.layouts import Pieces, in_one_piece
from catchment.host.torch.distributed.patience import patience_of
from catchment.host.torch.distributed.sizes import Sizes
from catchment.host.torch.distributed.switch_group import SwitchGroup, Tensors, timeout_of
from catchment.host.torch.distributed.work import Together

_MOST_TAG: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call of this rank.

    Attributes:
        name: of the call.
        tensors: whose number of elements and types are alike on all ranks.
        results: that hold the outcome.
        opts: torch's.
        sizes: what the ranks send one another, if that may differ.
        pieces: what gloo is given instead of tensors.
    """

    name: str
    tensors: Tensors
    results: Tensors
    opts: Any
    sizes: Sizes | None = None
    pieces: Pieces = field(default_factory=Pieces)

    def __post_init__(self) -> None:
        check_carried(self.name, [*self.tensors, *self.results], self.reduction, self.in_words)

    @property
    def reduction(self) -> Any:
        return getattr(self.opts, "reduceOp", None)

    @property
    def root(self) -> int | None:
        return getattr(self.opts, "rootRank", None)

    @property
    def alike(self) -> str:
        """All that must be the same on all ranks, but tensors."""
        return f"{self.name} {getattr(self.reduction, 'op', self.reduction)} {self.root}"

    @property
    def in_words(self) -> str:
        return in_words(self.name, self.tensors, self.reduction, self.root)

    def read(self, tensors: Tensors) -> list[torch.Tensor]:
        return [self.pieces.read(tensor) for tensor in tensors]

    def written(self, tensors: Tensors) -> list[torch.Tensor]:
        return [self.pieces.written(tensor) for tensor in tensors]


@final
class Beside:
    """What the companion carries out for a process group; methods are named as torch's, whose options they take.

    Args:
        companion: carries it out.
        switch: what the ranks agree through; None: they do not.
        rank: of this process.
        size: of the group.
    """

    def __init__(self, companion: Companion, switch: SwitchGroup | None, rank: int, size: int) -> None:
        self._companion = companion
        self._switch = switch
        self._rank = rank
        self._size = size
        self._lost = nobody_lost if switch is None else switch.lost
        self._contacts = Contacts(self._lost, companion.timeout, None if switch is None else switch.order)

    # Reductions

    def all_reduce(self, tensors: Tensors, opts: Any) -> Any:
        """See dist.all_reduce."""
        asked = _Asked("all_reduce", tensors, tensors, opts)
        given = asked.written(tensors)
        added = self._added(asked, given)
        return self._begun(asked, lambda gloo: gloo.allreduce(given, added))

    def all_reduce_coalesced(self, tensors: Tensors, opts: Any) -> Any:
        """See dist.all_reduce_coalesced."""
        asked = _Asked("all_reduce_coalesced", tensors, tensors, opts)
        given = asked.written(tensors)
        added = self._added(asked, given)
        return self._begun(asked, lambda gloo: gloo.allreduce_coalesced(given, added))

    def reduce(self, tensors: Tensors, opts: Any) -> Any:
        """See dist.reduce."""
        asked = _Asked("reduce", tensors, tensors, opts)
        given = asked.written(tensors) if asked.root == self._rank else asked.read(tensors)
        added = self._added(asked, given)
        return self._begun(asked, lambda gloo: gloo.reduce(given, added))

    def reduce_scatter(self, outputs: Tensors, inputs: Tensors, opts: Any) -> Any:
        """See dist.reduce_scatter_tensor, of several."""
        for output, given in zip(outputs, inputs, strict=True):
            _check_sizes("reduce_scatter", output, given, self._size)
        copies = [in_one_piece(given).view(-1).clone() for given in inputs]
        return self.reduce_and_take(outputs, copies, [self._rank * output.numel() for output in outputs], opts)

    def reduce_and_take(self, outputs: Tensors, inputs: Tensors, begins: Sequence[int], opts: Any) -> Any:
        """Reduce flat inputs, which this changes; this rank takes its part of each, from an element on.

        Gloo does the same behind its reduce_scatter, whose works have no futures.
        """
        asked = _Asked("reduce_scatter", inputs, outputs, opts)
        for output, flat, begin in zip(outputs, inputs, begins, strict=True):
            asked.pieces.taken(output, flat[begin : begin + output.numel()])
        calls = [([flat], _of_all(self._added(asked, [flat]))) for flat in inputs]
        return self._begun(asked, lambda gloo: Together([gloo.allreduce(*call) for call in calls]))

    # What is moved

    def broadcast(self, tensors: Tensors, opts: Any) -> Any:
        """See dist.broadcast."""
        asked = _Asked("broadcast", tensors, tensors, opts)
        given = asked.written(tensors)
        return self._begun(asked, lambda gloo: gloo.broadcast(given, opts))

    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any) -> Any:
        """See dist.all_gather_into_tensor."""
        _check_sizes("all_gather", given, output, self._size)
        asked = _Asked("all_gather_single", [given], [output], opts)
        (own,), (sent,) = _flat(asked.written([output])), _flat(asked.read([given]))
        return self._begun(asked, lambda gloo: gloo._allgather_base(own, sent, opts or AllgatherOptions()))

    def all_gather(self, lists: Sequence[Tensors], inputs: Tensors, opts: Any) -> Any:
        """See dist.all_gather."""
        asked = _Asked("all_gather", inputs, _every(lists), opts)
        own, given = [asked.written(outputs) for outputs in lists], asked.read(inputs)
        return self._begun(asked, lambda gloo: gloo.allgather(_detached(own), given, opts or AllgatherOptions()))

    def gather(self, lists: Sequence[Tensors], inputs: Tensors, opts: Any) -> Any:
        """See dist.gather."""
        asked = _Asked("gather", inputs, _every(lists), opts)
        self._check_lists(asked, lists, inputs)
        own, given = [asked.written(outputs) for outputs in lists], asked.read(inputs)
        return self._begun(asked, lambda gloo: gloo.gather(_detached(own), given, opts))

    def scatter(self, outputs: Tensors, lists: Sequence[Tensors], opts: Any) -> Any:
        """See dist.scatter."""
        asked = _Asked("scatter", outputs, outputs, opts)
        self._check_lists(asked, lists, outputs)
        own, given = asked.written(outputs), [asked.read(inputs) for inputs in lists]
        return self._begun(asked, lambda gloo: gloo.scatter(own, given, opts))

    def all_to_all_single(
        self, output: torch.Tensor, given: torch.Tensor, splits: tuple[Sequence[int], Sequence[int]], opts: Any
    ) -> Any:
        """See dist.all_to_all_single; `splits`: of the output and of what is given."""
        sizes = Sizes.of_splits((output, given), splits, self._size)
        asked = _Asked("all_to_all_single", [given], [output], opts, sizes)
        (own,), (sent,) = asked.written([output]), asked.read([given])
        return self._begun(asked, lambda gloo: gloo.alltoall_base(own, sent, *map(list, splits), opts))

    def all_to_all(self, outputs: Tensors, inputs: Tensors, opts: Any) -> Any:
        """See dist.all_to_all; parts may differ in size, which gloo's own takes not."""
        sizes = Sizes.of_lists(outputs, inputs, self._size)
        asked = _Asked("all_to_all", inputs, outputs, opts, sizes)
        given = torch.cat(_flat([in_one_piece(tensor) for tensor in inputs]))
        own = given.new_empty(sum(sizes.received))
        for output, part in zip(outputs, torch.split(own, list(sizes.received)), strict=True):
            asked.pieces.taken(output, part)
        splits = list(sizes.received), list(sizes.sent)
        return self._begun(asked, lambda gloo: gloo.alltoall_base(own, given, *splits, opts))

    def barrier(self, opts: Any) -> Any:
        """See dist.barrier."""
        return self._gloo("barrier").barrier(opts or dist.BarrierOptions())

    # Between two ranks, of which the others know nothing

    def send(self, tensors: Tensors, destination: int, tag: int) -> Any:
        """See dist.send."""
        destination, tag = self._peer("send to", destination), _tag("send", tag)
        pieces, gloo = Pieces(), self._gloo("send")
        given = [pieces.read(tensor) for tensor in tensors]

        def start() -> CompanionWork:
            return CompanionWork(gloo.send(given, destination, tag), tensors, pieces, self._lost, told=False)

        return self._contacts.send(destination, tag, start)

    def receive(self, tensors: Tensors, source: int | None, tag: int) -> Any:
        """See dist.recv; no source: from any."""
        source, tag = None if source is None else self._peer("recv from", source), _tag("recv", tag)
        pieces, gloo = Pieces(), self._gloo("recv")
        own = [pieces.written(tensor) for tensor in tensors]
        if source is not None:

            def start() -> CompanionWork:
                return CompanionWork(gloo.recv(own, source, tag), tensors, pieces, self._lost, told=False)

            return self._contacts.receive(source, tag, start)
        inner = self._contacts.receive_from_any(tag, lambda: gloo.recv_anysource(own, tag))
        if not pieces.any_written:  # only torch's own work tells its C++ side the source
            return inner
        return CompanionWork(inner, tensors, pieces, self._lost, told=False)

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool) -> None:
        """See dist.monitored_barrier; a timeout of 0 is over before any rank can have come."""
        timeout = patience_of(timeout)
        gloo = self._gloo("monitored_barrier")
        if self._rank == 0 and self._size > 1 and timeout == timedelta(0):
            raise RuntimeError("Rank 0 timed out in monitoredBarrier after 0 ms. No ranks successfully processed.")
        # Gloo numbers its collectives as they begin, so what was called before begins before, as on the other ranks.
        patience = timeout.total_seconds() if timeout > timedelta(0) else self._companion.timeout
        if self._switch is not None and not self._switch.await_begun(patience):
            raise CollectiveError(
                f"monitored_barrier: the ranks have not agreed on what was called before in {patience:g} s",
                kind="missing",
                hint="every rank has to call the same operations in the same order",
            )
        self._contacts.carry(lambda: gloo.monitored_barrier(timeout, wait_all_ranks))

    # How

    def _added(self, asked: _Asked, given: Tensors) -> Any:
        """Torch's options of a reduction as gloo takes it.

        Gloo has no mean of integers: it adds them, and their sums are divided where they are results.
        """
        if asked.reduction != dist.ReduceOp.AVG or not all(map(_is_of_integers, given)):
            return asked.opts
        for sums in given if asked.root in (None, self._rank) else ():
            asked.pieces.divided(sums, self._size)
        added = type(asked.opts)()
        added.reduceOp, added.timeout = dist.ReduceOp.SUM, asked.opts.timeout
        if asked.root is not None:
            added.rootRank = asked.root
        return added

    def _check_lists(self, asked: _Asked, lists: Sequence[Tensors], own: Tensors) -> None:
        """Refuse lists at the root without a tensor for each rank like this rank's own: gloo tells the root alone."""
        if asked.root != self._rank:
            return
        listed = list(lists[0]) if len(lists) == 1 else []
        wanted = [(tensor.shape, tensor.dtype, tensor.layout) for tensor in own] * self._size
        if [(tensor.shape, tensor.dtype, tensor.layout) for tensor in listed] != wanted:
            raise CollectiveError(
                f"a list at the root of {in_words(asked.name, listed)}",
                kind="argument",
                operation=asked.in_words,
                hint=f"give {self._size} tensors, one for each rank, of the shape and type of the rank's own",
            )

    def _peer(self, call: str, rank: int) -> int:
        """Another rank of the group: gloo reads beside its table of ranks for one that there is not."""
        what, hint = f"{call} rank", f"the ranks of this group are 0 to {self._size - 1}, and this one is {self._rank}"
        peer = whole(what, rank, hint)
        if not 0 <= peer < self._size or peer == self._rank:
            raise wrong(f"{what} {peer}", hint)
        return peer

    def _gloo(self, operation: str) -> Any:
        if self._switch is not None:
            self._switch.check_process()
        return self._companion.for_(operation)

    def _begun(self, asked: _Asked, start: Callable[[Any], Any]) -> Any:
        """The work of a call: `start` gets gloo when all ranks have called this, of tensors that are alike."""
        gloo = self._gloo(asked.name)

        def begin() -> CompanionWork:
            return CompanionWork(start(gloo), asked.results, asked.pieces, self._lost)

        if self._switch is None:
            return begin()
        timeout = timeout_of(asked.opts)
        return self._switch.beside(asked.alike, asked.in_words, asked.tensors, timeout, begin, sizes=asked.sizes)


def _tag(call: str, tag: int) -> int:
    what, hint = f"{call} with tag", f"give a whole number, 0..{_MOST_TAG}"
    if not 0 <= whole(what, tag, hint) <= _MOST_TAG:
        raise wrong(f"{what} {tag}", hint)
    return int(tag)


def _is_of_integers(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_floating_point() and not tensor.is_complex()


def _of_all(opts: Any) -> Any:
    """The options of an all_reduce that reduces as `opts` says."""
    reduced = dist.AllreduceOptions()
    reduced.reduceOp, reduced.timeout = opts.reduceOp, opts.timeout
    return reduced


def _flat(tensors: Tensors) -> list[torch.Tensor]:
    return [tensor.view(-1) for tensor in tensors]


def _detached(lists: Sequence[Tensors]) -> list[list[torch.Tensor]]:
    """The same memory for gloo to copy into, whatever the caller's thread does about gradients: for the thread that
    calls gloo, which copies as this one may.
    """
    return [[tensor.detach() for tensor in tensors] for tensors in lists]


def _every(lists: Sequence[Tensors]) -> list[torch.Tensor]:
    return [tensor for tensors in lists for tensor in tensors]


def _check_sizes(call: str, smaller: torch.Tensor, larger: torch.Tensor, ranks: int) -> None:
    """Refuse two tensors unless the larger one has a part like the smaller one for each rank."""
    if smaller.dtype != larger.dtype or smaller.numel() * ranks != larger.numel():
        raise CollectiveError(
            f"{call} with {smaller.numel()} x {smaller.dtype} for one rank, "
            f"{larger.numel()} x {larger.dtype} for {ranks}",
            kind="argument",
            hint=f"give tensors of the same type, one with {ranks} times the elements of the other",
        )
