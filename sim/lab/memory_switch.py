"""A switch in memory: push and pull between threads of one process, with the number format of the real one.

For tests of the training code and for `--network memory`; it loses nothing and knows no frames.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from catchment.host import EndpointError
from catchment.sim.golden.lane_formats import LaneFormat
from catchment.wire.generated.constants import DataType, Flag


@dataclass(slots=True, eq=False)
class _Transfer:
    """One push or pull; `wait` as the endpoint's Request."""

    array: npt.NDArray[Any]
    exponent: int = 0
    flags: int = 0
    max_abs: float = 0.0
    error: Exception | None = None
    readers: set[int] = field(default_factory=set)
    latency: float = 0.0
    _asked: float = field(default_factory=time.monotonic)
    _ready: threading.Event = field(default_factory=threading.Event)

    def finish(self, error: Exception | None = None) -> None:
        if not self._ready.is_set():
            self.error = error
            self.latency = time.monotonic() - self._asked
            self._ready.set()

    def wait(self, timeout: float | None = None) -> None:
        if not self._ready.wait(timeout):
            raise TimeoutError(f"the request is not done after {timeout} s; it goes on")
        if self.error is not None:
            raise self.error

    def done(self) -> bool:
        return self._ready.is_set()


class MemorySwitch:
    """The two streams of a LuWu job between `workers` workers and one root."""

    def __init__(self, workers: int, *, packed: bool = False) -> None:
        """Make the ports with `worker(index)` and `root()`; `packed`: gradients travel in packed lanes."""
        self.workers = workers
        self._format = LaneFormat(workers, packed)
        self._lock = threading.Lock()
        self._down: deque[_Transfer] = deque()
        self._down_pulls: list[deque[_Transfer]] = [deque() for _ in range(workers)]
        self._up: list[deque[_Transfer]] = [deque() for _ in range(workers)]
        self._up_pulls: deque[_Transfer] = deque()
        self._failure: Exception | None = None

    def worker(self, index: int) -> MemoryPort:
        """The port of worker `index`."""
        if not 0 <= index < self.workers:
            raise EndpointError(f"worker index {index} of {self.workers} workers", kind="argument")
        return MemoryPort(self, index)

    def root(self) -> MemoryPort:
        """The optimizer node's port."""
        return MemoryPort(self, None)

    def fail(self, error: Exception) -> None:
        """Fail everything that is pending and everything that will be asked for."""
        with self._lock:
            self._failure = error
            for queue in (self._down, self._up_pulls, *self._down_pulls, *self._up):
                for transfer in queue:
                    transfer.finish(error)

    def submit(self, transfer: _Transfer, port: int | None, push: bool) -> _Transfer:
        """Queue one transfer of a port (None: the root) and complete whatever has become possible."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if port is None:
                (self._down if push else self._up_pulls).append(transfer)
            else:
                (self._up if push else self._down_pulls)[port].append(transfer)
            self._deliver()
            self._reduce()
        return transfer

    def _deliver(self) -> None:
        for index, pulls in enumerate(self._down_pulls):
            for message in self._down:
                if not pulls:
                    break
                if index in message.readers:
                    continue
                pull = pulls.popleft()
                pull.finish(_copy(message, pull))
                message.readers.add(index)
        while self._down and len(self._down[0].readers) == self.workers:
            self._down.popleft().finish()

    def _reduce(self) -> None:
        while self._up_pulls and all(self._up):
            pull = self._up_pulls.popleft()
            pushes = [queue.popleft() for queue in self._up]
            error = self._sum(pushes, pull)
            for transfer in (pull, *pushes):
                transfer.finish(error)

    def _sum(self, pushes: list[_Transfer], pull: _Transfer) -> Exception | None:
        lengths = {len(transfer.array) for transfer in (pull, *pushes)}
        exponents = {transfer.exponent for transfer in pushes}
        if len(lengths) != 1:
            return EndpointError(f"pushed and pulled lengths disagree: {sorted(lengths)}", kind="length")
        if len(exponents) != 1:
            return EndpointError(f"workers disagree about the exponent: {sorted(exponents)}", kind="exponent")
        exponent = exponents.pop()
        parts = [self._format.quantize(t.array, DataType.FP32, exponent) for t in pushes]
        total = self._format.add([part.lanes for part in parts])
        pull.array[:] = self._format.dequantize(total, DataType.FP32, exponent, len(pull.array))
        if any(part.saturated for part in parts):
            pull.flags |= Flag.SAT
        pull.max_abs = self._format.largest(total, exponent)
        return None


def _copy(message: _Transfer, pull: _Transfer) -> Exception | None:
    if len(message.array) != len(pull.array):
        return EndpointError(f"pushed {len(message.array)} bytes, pulled {len(pull.array)}", kind="length")
    pull.array[:] = message.array
    return None


class MemoryPort:
    """One end of a MemorySwitch; the same calls as `host.Endpoint`."""

    def __init__(self, fabric: MemorySwitch, index: int | None) -> None:
        """`index` None is the root."""
        self._fabric = fabric
        self._index = index

    def push(self, array: Any, exponent: int | None = None) -> _Transfer:
        """Push as Endpoint does; the data are taken when every worker's are there."""
        return self._fabric.submit(_Transfer(_numpy(array), exponent or 0), self._index, push=True)

    def pull(self, array: Any) -> _Transfer:
        """Pull as Endpoint does."""
        return self._fabric.submit(_Transfer(_numpy(array)), self._index, push=False)


def _numpy(array: Any) -> npt.NDArray[Any]:
    return array.numpy() if isinstance(array, torch.Tensor) else np.asarray(array)
