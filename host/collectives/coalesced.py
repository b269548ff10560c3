"""Several arrays in one operation: one signature, and vectors without padding between the arrays."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from catchment.host.collectives import calls
from catchment.host.collectives.calls import in_words
from catchment.host.collectives.errors import wrong
from catchment.host.collectives.work import Work
from catchment.host.transport.buffers import ITEM_BYTES, Buffer
from catchment.wire.generated.constants import DataType

if TYPE_CHECKING:
    from catchment.host.collectives.communicator import Communicator

_NUMPY: Final = {
    DataType.BYTES: np.uint8,
    DataType.INT32: np.int32,
    DataType.FP32: np.float32,
    DataType.FP16: np.float16,
    DataType.BF16: np.uint16,  # its words
}
_Pairs = list[tuple[Buffer, Buffer]]


@final
class Coalesced:
    """Calls of one kind, which start as one operation when its block ends; see `Communicator.coalesced`.

        with ranks.coalesced() as together:
            together.all_gather(weight, weights)
            together.all_gather(bias, biases)
        together.wait()

    The arrays are copied into one, and results are in theirs after `wait`.
    """

    def __init__(self, communicator: Communicator, reduced: dict[str, Any], options: dict[str, Any]) -> None:
        """`reduced`: op and scaling of sums; `options`: of any operation."""
        self._communicator = communicator
        self._reduced, self._options = reduced, options
        self._kind = 0
        self._pairs: _Pairs = []
        self._work: Work | None = None
        self._finish: Callable[[], None] | None = None
        self._finishing = threading.Lock()

    def all_reduce(self, array: Any, out: Any = None) -> None:
        """Add a call of `Communicator.all_reduce`."""
        source = calls.elements(array, writable=out is None)
        self._add(calls.ALL_REDUCE, source, source if out is None else calls.elements(out, writable=True), 1, 1)

    def reduce_scatter(self, array: Any, out: Any) -> None:
        """Add a call of `Communicator.reduce_scatter`."""
        source, target = calls.elements(array, writable=False), calls.elements(out, writable=True)
        self._add(calls.REDUCE_SCATTER, source, target, 1, self._communicator.size)

    def all_gather(self, array: Any, out: Any) -> None:
        """Add a call of `Communicator.all_gather`."""
        source, target = calls.raw(array, writable=False), calls.raw(out, writable=True)
        self._add(calls.ALL_GATHER, source, target, self._communicator.size, 1)

    def wait(self, timeout: float | None = None) -> None:
        """Block until the operation is done and the results are in their arrays; as `Work.wait`.

        Raises:
            CollectiveError: it failed, or was not started: kind ``argument``.
            TimeoutError: not done after `timeout` seconds; it goes on.
        """
        self.work.wait(timeout)
        self.place_results()

    @property
    def work(self) -> Work:
        """The one operation; `place_results` is for when it is done.

        Raises:
            CollectiveError: it was not started: kind ``argument``.
        """
        if self._work is None:
            raise wrong("an operation that has not begun", "leave its block first")
        return self._work

    def place_results(self) -> None:
        """Copy the results of an operation that is done to their arrays, once."""
        with self._finishing:
            if self._finish is not None:
                self._finish()
            self._finish = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._start()

    def _add(self, kind: int, source: Buffer, target: Buffer, of_source: int, of_target: int) -> None:
        """One more call; `of_source` times the source is as long as `of_target` times the target."""
        if source.elements * of_source != target.elements * of_target or source.dtype != target.dtype:
            raise wrong(f"{in_words(source)} into {in_words(target)}", "their types or lengths do not fit")
        if self._kind not in {0, kind} or (self._pairs and self._pairs[0][0].dtype != source.dtype):
            raise wrong("different operations or types in one", "coalesce calls of one operation and type")
        self._kind = kind
        self._pairs.append((source, target))

    def _start(self) -> None:
        ranks, size = self._communicator, self._communicator.size
        sources = [_array(source) for source, _ in self._pairs]
        targets = [_array(target) for _, target in self._pairs]
        if self._kind == calls.ALL_GATHER:
            own = _joined(sources)
            all_ = np.empty((size, own.size), own.dtype)
            self._work = ranks.all_gather(own, all_, **self._options)
            self._finish = lambda: _split(all_, [target.reshape(size, -1) for target in targets])
        elif self._kind == calls.REDUCE_SCATTER:
            given = _joined([source.reshape(size, -1) for source in sources])
            part = np.empty(given.shape[1], given.dtype)
            self._work = ranks.reduce_scatter(given, part, **self._reduced, **self._options)
            self._finish = lambda: _split(part, targets)
        elif self._kind == calls.ALL_REDUCE:
            array = _joined(sources)
            self._work = ranks.all_reduce(array, **self._reduced, **self._options)
            self._finish = lambda: _split(array, targets)
        else:
            self._work = ranks.barrier(**self._options)


def _array(buffer: Buffer) -> NDArray[Any]:
    """The memory of a buffer, which its owner keeps."""
    nbytes = buffer.elements * ITEM_BYTES[buffer.dtype]
    if nbytes == 0:
        return np.empty(0, _NUMPY[buffer.dtype])
    memory: Any = (ctypes.c_char * nbytes).from_address(buffer.address)
    array: NDArray[Any] = np.frombuffer(memory, _NUMPY[buffer.dtype])
    return array


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.ascontiguousarray(np.concatenate(arrays, axis=-1))


def _split(array: NDArray[Any], targets: Sequence[NDArray[Any]]) -> None:
    """Copy what lies together to where it belongs."""
    at = 0
    for target in targets:
        width = target.shape[-1]
        target[...] = array[..., at : at + width]
        at += width
