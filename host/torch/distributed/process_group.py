"""The process group that torch sees: through the switch what a switch can do, by the companion what it cannot."""

# torch's stubs know several ways to call each method; of a subclass, torch itself calls one.
# mypy: disable-error-code="override,assignment"

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from inspect import signature
from typing import Any, Final, Self, final

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store

from catchment.host.collectives import CollectiveError
from catchment.host.collectives.errors import wrong
from catchment.host.torch.distributed.beside import Beside
from catchment.host.torch.distributed.companion import Companion
from catchment.host.torch.distributed.name import BACKEND
from catchment.host.torch.distributed.switch_group import SwitchGroup, Tensors, operation_of, timeout_of
from catchment.host.torch.distributed.work import SwitchWork, Together

_SEVERAL: Final = (list, tuple)
"""What torch gives several tensors in."""


def _of_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose first arguments, those that are annotated as tensors, are some, or lists of some."""
    count = _tensors_first(method)

    @wraps(method)
    def call(self: SwitchProcessGroup, *arguments: Any, **options: Any) -> Any:
        for given in arguments[:count]:
            if not _are_tensors(given):
                raise _no_tensors(method, given)
        return method(self, *arguments, **options)

    return call


def _refused_by_all(method: Callable[..., Any]) -> Callable[..., Any]:
    """A collective `_of_tensors`; what this rank refuses fails on the others, too: they need not wait for it."""
    count = _tensors_first(method)

    @wraps(method)
    def call(self: SwitchProcessGroup, *arguments: Any, **options: Any) -> Any:
        try:
            for given in arguments[:count]:
                if not _are_tensors(given):
                    raise _no_tensors(method, given)
            return method(self, *arguments, **options)
        except CollectiveError as error:
            if self.switch is not None and error.kind in ("argument", "unsupported"):
                self.switch.refuse()
            raise

    return call


def _tensors_first(method: Callable[..., Any]) -> int:
    """How many arguments of a method are annotated as tensors: its first ones."""
    return sum("Tensor" in str(one.annotation) for one in signature(method).parameters.values())


def _are_tensors(given: Any) -> bool:
    if type(given) is torch.Tensor:
        return True
    if not isinstance(given, _SEVERAL):
        return isinstance(given, torch.Tensor)
    for one in given:  # noqa: SIM110  a generator takes as long as ten tensors
        if type(one) is not torch.Tensor and not _are_tensors(one):
            return False
    return True


def _no_tensors(method: Callable[..., Any], given: Any) -> CollectiveError:
    return wrong(f"{method.__name__} of {given!r:.80}", "give torch tensors")


@final
class SwitchProcessGroup(dist.ProcessGroup):
    """`dist.init_process_group("catchment")` makes one.

    Methods and their arguments are torch's; the names in camel case are called from its C++ side.

    Args:
        store: torch's, of this group.
        rank: of this process in the group.
        size: of the group.
        switch: collectives through the switch; None: this group has no job of its own, and the companion does all.
        companion: does the rest.
    """

    def __init__(self, store: Store, rank: int, size: int, switch: SwitchGroup | None, companion: Companion) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg]  # with a store it makes what Python cannot extend
        self._store = store
        self._switch = switch
        self._companion = companion
        self._beside = Beside(companion, switch, rank, size)
        self._name = ""
        self._description = ""

    def be_the_group(self) -> Self:
        """Be what torch is given, not what a backend in C++ has behind it: torch asks such a group for its backends."""
        gloo = self._companion.give_away(self)
        self._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.CUSTOM, gloo)
        return self

    @property
    def switch(self) -> SwitchGroup | None:
        """What goes through the switch; None if nothing does."""
        return self._switch

    # Names

    def getBackendName(self) -> str:  # noqa: N802
        """The value that was given to `init_process_group`."""
        return BACKEND

    def name(self) -> str:
        """The value that was given to `init_process_group`."""
        return BACKEND

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """torch's name of the group."""
        self._name = name

    def getGroupName(self) -> str:  # noqa: N802
        """torch's name of the group."""
        return self._name

    @property
    def group_name(self) -> str:
        """torch's name of the group."""
        return self._name

    def setGroupDesc(self, description: str) -> None:  # noqa: N802
        """What the group is for."""
        self._description = description

    def getGroupDesc(self) -> str:  # noqa: N802
        """What the group is for."""
        return self._description

    @property
    def group_desc(self) -> str:
        """What the group is for."""
        return self._description

    # Through the switch

    @_refused_by_all
    def allreduce(self, tensors: Tensors | torch.Tensor, opts: Any = None) -> Any:
        """See dist.all_reduce."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        if not isinstance(opts, dist.AllreduceOptions):  # torch also takes the operation itself
            reduction, opts = opts, dist.AllreduceOptions()
            opts.reduceOp = dist.ReduceOp.SUM if reduction is None else _checked_reduction(reduction)
        work = self._reduced(
            tensors, opts, lambda switch, operation: switch.all_reduce(tensors, operation, opts.timeout)
        )
        return work or self._beside.all_reduce(tensors, opts)

    @_refused_by_all
    def allreduce_coalesced(self, tensors: Tensors, opts: Any) -> Any:
        """See dist.all_reduce_coalesced."""
        work = self._reduced(
            tensors, opts, lambda switch, operation: switch.all_reduce(tensors, operation, opts.timeout)
        )
        return work or self._beside.all_reduce_coalesced(tensors, opts)

    @_refused_by_all
    def reduce(self, tensors: Tensors, opts: Any) -> Any:
        """See dist.reduce."""
        root, timeout = opts.rootRank, opts.timeout
        work = self._reduced(tensors, opts, lambda switch, op: switch.reduce(tensors[0], root, op, timeout))
        return work or self._beside.reduce(tensors, opts)

    @_refused_by_all
    def broadcast(self, tensors: Tensors, opts: Any) -> Any:
        """See dist.broadcast."""
        if self._switch is None:
            return self._beside.broadcast(tensors, opts)
        return self._switch.broadcast(tensors, opts.rootRank, opts.timeout)

    @_refused_by_all
    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Any:  # noqa: A002
        """See dist.all_gather_into_tensor."""
        if self._switch is None:
            return self._beside.all_gather_single(output, input, opts)
        return self._switch.all_gather([output], [input], timeout_of(opts))

    _allgather_base = all_gather_single

    @_refused_by_all
    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        """Several all_gather_single at once."""
        _check_pairs("all_gather", outputs, inputs)
        if self._switch is None:
            works = [self.all_gather_single(*pair, opts) for pair in zip(outputs, inputs, strict=True)]
            return Together(works)
        return self._switch.all_gather(outputs, inputs, timeout_of(opts))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    @_refused_by_all
    def allgather(self, output_lists: list[list[torch.Tensor]], inputs: Tensors, opts: Any = None) -> Any:
        """See dist.all_gather."""
        return self._gathered(output_lists, inputs, opts)

    def _gathered(self, output_lists: list[list[torch.Tensor]], inputs: Tensors, opts: Any) -> Any:
        _check_pairs("all_gather", output_lists, inputs)
        if self._switch is None:
            return self._beside.all_gather(output_lists, inputs, opts)
        return self._switch.all_gather_lists(output_lists, inputs, timeout_of(opts))

    @_refused_by_all
    def allgather_coalesced(self, output_lists: list[list[torch.Tensor]], inputs: Tensors, opts: Any = None) -> Any:
        """See dist.all_gather_coalesced: `output_lists` has a list for each rank, not for each input."""
        return self._gathered(_by_input(output_lists, inputs), inputs, opts)

    @_refused_by_all
    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Any:  # noqa: A002
        """See dist.reduce_scatter_tensor."""
        return self._scattered([output], [input], opts)

    _reduce_scatter_base = reduce_scatter_single

    @_refused_by_all
    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Any:
        """Several reduce_scatter_single at once."""
        return self._scattered(outputs, inputs, opts)

    def _scattered(self, outputs: Tensors, inputs: Tensors, opts: Any) -> Any:
        _check_pairs("reduce_scatter", outputs, inputs)
        opts = opts or dist.ReduceScatterOptions()
        work = self._reduced(inputs, opts, lambda switch, op: switch.reduce_scatter(outputs, inputs, op, opts.timeout))
        return work or self._beside.reduce_scatter(outputs, inputs, opts)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    @_refused_by_all
    def reduce_scatter(self, outputs: Tensors, input_lists: list[list[torch.Tensor]], opts: Any = None) -> Any:
        """See dist.reduce_scatter."""
        _check_pairs("reduce_scatter", outputs, input_lists)
        alike = True
        for output, parts in zip(outputs, input_lists, strict=True):
            sizes = [part.numel() for part in parts]
            fits = len(parts) == self.size() and all(part.dtype == output.dtype for part in parts)
            if not fits or sizes[self.rank()] != output.numel():
                raise CollectiveError(
                    f"reduce_scatter of {sizes} elements into {output.numel()}",
                    kind="argument",
                    hint=f"give {self.size()} tensors, one for each rank, this rank's like the output",
                )
            alike &= len(set(sizes)) == 1
        inputs = [torch.cat([part.reshape(-1) for part in parts]) for parts in input_lists]
        if alike:
            return self._scattered(outputs, inputs, opts)
        opts = opts or dist.ReduceScatterOptions()
        begins = [sum(part.numel() for part in parts[: self.rank()]) for parts in input_lists]
        work = self._reduced(
            inputs, opts, lambda switch, op: switch.reduce_and_take(outputs, inputs, begins, op, opts.timeout)
        )
        return work or self._beside.reduce_and_take(outputs, inputs, begins, opts)

    @_refused_by_all
    def barrier(self, opts: Any = None) -> Any:
        """See dist.barrier."""
        if self._switch is None:
            return self._beside.barrier(opts)
        return self._switch.barrier(timeout_of(opts))

    def _reduced(
        self, tensors: Tensors, opts: Any, call: Callable[[SwitchGroup, str], SwitchWork]
    ) -> SwitchWork | None:
        """The call, if a switch can do this reduction of these types; else None."""
        operation = operation_of(opts.reduceOp, tensors)
        if self._switch is None or operation is None:
            return None
        try:
            return call(self._switch, operation)
        except CollectiveError as error:
            if error.kind != "unsupported":  # which programs can find a maximum, the communicator knows
                raise
            return None

    # Operations that the companion carries out

    @_refused_by_all
    def gather(self, output_lists: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any) -> Any:
        """See dist.gather."""
        return self._beside.gather(output_lists, inputs, opts)

    @_refused_by_all
    def scatter(self, outputs: list[torch.Tensor], input_lists: list[list[torch.Tensor]], opts: Any) -> Any:
        """See dist.scatter."""
        return self._beside.scatter(outputs, input_lists, opts)

    @_refused_by_all
    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,  # noqa: A002
        output_sizes: list[int],
        input_sizes: list[int],
        opts: Any,
    ) -> Any:
        """See dist.all_to_all_single."""
        return self._beside.all_to_all_single(output, input, (output_sizes, input_sizes), opts)

    alltoall_base = all_to_all_single

    @_refused_by_all
    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any) -> Any:
        """See dist.all_to_all."""
        return self._beside.all_to_all(outputs, inputs, opts)

    @_of_tensors
    def send(self, tensors: list[torch.Tensor], destination: int, tag: int) -> Any:
        """See dist.send."""
        return self._beside.send(tensors, destination, tag)

    @_of_tensors
    def recv(self, tensors: list[torch.Tensor], source: int, tag: int) -> Any:
        """See dist.recv."""
        return self._beside.receive(tensors, source, tag)

    @_of_tensors
    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> Any:
        """See dist.recv."""
        return self._beside.receive(tensors, None, tag)

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool = False) -> None:
        """See dist.monitored_barrier."""
        self._beside.monitored_barrier(timeout, wait_all_ranks)

    # How

    def check_process(self) -> None:
        """Refuse a process that was forked after the group was made.

        Raises:
            CollectiveError: kind ``forked``.
        """
        if self._switch is not None:
            self._switch.check_process()

    # The end

    def shutdown(self) -> None:
        """End the group; destroy_process_group calls this."""
        if self._switch is not None:
            self._switch.close()
        self._companion.close()

    def abort(self) -> None:
        """End at once; what is pending fails."""
        if self._switch is not None:
            self._switch.abort()
        self._companion.close()


def _checked_reduction(reduction: Any) -> Any:
    known = isinstance(reduction, dist.ReduceOp | dist.ReduceOp.RedOpType)
    if not known:
        raise wrong(f"a reduction {reduction!r}", "give a dist.ReduceOp, such as dist.ReduceOp.SUM")
    return reduction


def _check_pairs(call: str, outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
    if len(outputs) != len(inputs):
        raise wrong(f"{call} of {len(inputs)} inputs into {len(outputs)} outputs", "give as many of both")


def _by_input(output_lists: list[list[torch.Tensor]], inputs: Tensors) -> list[list[torch.Tensor]]:
    """A list for each input, with an output for each rank, of one for each rank."""
    for outputs in output_lists:
        _check_pairs("all_gather_coalesced", outputs, inputs)
    return [list(parts) for parts in zip(*output_lists, strict=True)]
