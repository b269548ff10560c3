"""The demo's training with every gradient and parameter byte through the machine: host/torch and the optimizer node
as they are, on ports that are its NICs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from catchment.host.transport.buffers import bytes_of, lanes_of
from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.machine import Machine, Transfer
from catchment.sim.cosim.models import CLOCK_NS, HostModel
from catchment.sim.training.options import ROOT_HOST, TrainingOptions
from catchment.sim.training.root import initial_layers, serve
from catchment.sim.training.worker import prepare, train
from catchment.sim.world import Faults
from catchment.wire.generated.constants import LANE_BYTES, DataType

_DEPTH = 12  # requests of a kind with a NIC at once; its queues hold 16
_STRETCH = 512  # clocks that one waiting thread lets pass before the next gets its turn
_SECONDS = 1e-9
_MIB = 1 << 21


class _Turns:
    """A lock whose waiters get it in the order in which they came."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = 0
        self._serving = 0

    def __enter__(self) -> None:
        with self._changed:
            mine, self._next = self._next, self._next + 1
            self._changed.wait_for(lambda: self._serving == mine)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._serving += 1
            self._changed.notify_all()


class Clockwork:
    """A machine that threads share: those that wait let its time pass.

    Args:
        limit: clocks after which a wait fails.
    """

    def __init__(self, machine: Machine, limit: int = 200_000_000) -> None:
        self.machine = machine
        self._limit = limit
        self._turns = _Turns()
        self._failure: BaseException | None = None
        self._hooks: list[Callable[[], None]] = []

    def after_each_stretch(self, hook: Callable[[], None]) -> None:
        """Have `hook` called, alone, after each stretch of time."""
        self._hooks.append(hook)

    def fail(self, error: BaseException) -> None:
        """Make every call fail from now on."""
        self._failure = self._failure or error

    def call(self, work: Callable[[], Any]) -> Any:
        """Do something with the machine, alone."""
        with self._turns:
            self._check()
            return work()

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until `done`.

        Raises:
            CosimError: somebody failed, or it takes too long.
        """
        end: int | None = None
        while True:
            with self._turns:
                self._check()
                if done():
                    return
                end = end or self.machine.clocks + self._limit
                if self.machine.clocks >= end:
                    raise CosimError(f"not done after {self._limit} clocks: look at the NICs' statistics")
                self.machine.run(_STRETCH)
                for hook in self._hooks:
                    hook()

    def _check(self) -> None:
        if self._failure is not None:
            raise CosimError(f"another member failed: {self._failure}") from self._failure


class _Completion:
    """A request like host.Request: it waits for room in the NIC's queue, is under way, then done.

    A pull's bytes go to the caller's buffer when it is done.
    """

    def __init__(self, clockwork: Clockwork, ask: Callable[[], Transfer], into: NDArray[np.uint8] | None) -> None:
        self._clockwork = clockwork
        self._ask = ask
        self._into = into
        self._asked = clockwork.machine.now_ns
        self._transfer: Transfer | None = None
        self._taken = False
        self.flags = 0
        self.latency = 0.0
        self.max_abs = 0.0

    def post(self) -> None:
        """Hand it to the NIC."""
        self._transfer = self._ask()

    def done(self) -> bool:
        """True once `wait` would return at once."""
        return self._taken or (self._transfer is not None and self._transfer.done)

    def wait(self, timeout: float | None = None) -> None:
        """Let the machine's time pass until it is done."""
        if self._taken:
            return
        self._clockwork.wait(self.done)
        self._clockwork.call(self._take)

    def _take(self) -> None:
        transfer = self._transfer
        assert transfer is not None
        raw = transfer.check()
        self.flags = int(transfer.flags)
        self.latency = (transfer.finished_ns - self._asked) * _SECONDS
        if self._into is not None:
            self._into[:] = np.frombuffer(raw, np.uint8)
            if transfer.dtype == DataType.FP32:
                self.max_abs = float(np.abs(self._into.view(np.float32)).max())
        transfer.release()
        self._taken = True


class _Queue:
    """Requests of one kind of a host: as many with the NIC as its queue takes, the rest behind them, in order."""

    def __init__(self) -> None:
        self._waiting: deque[_Completion] = deque()
        self._posted: deque[_Completion] = deque()

    def add(self, completion: _Completion) -> None:
        self._waiting.append(completion)
        self.post()

    def post(self) -> None:
        while self._posted and self._posted[0].done():
            self._posted.popleft()
        while self._waiting and len(self._posted) < _DEPTH:
            completion = self._waiting.popleft()
            completion.post()
            self._posted.append(completion)


class MachinePort:
    """The `TransferPort` of one host of a machine."""

    def __init__(self, clockwork: Clockwork, host: str, *, root: bool) -> None:
        self._clockwork = clockwork
        self._host = clockwork.machine[host]
        self._root = root
        self._pushes, self._pulls = _Queue(), _Queue()
        clockwork.after_each_stretch(self._post)

    def push(self, array: Any, exponent: int | None = None) -> _Completion:
        """Push as host.Endpoint does; the data are taken at once."""
        buffer = (bytes_of if self._root else lanes_of)(array, writable=False)
        raw = _view(buffer.address, array).tobytes()
        return self._add(self._pushes, lambda: self._host.push(raw, buffer.dtype, exponent or 0), None)

    def pull(self, array: Any) -> _Completion:
        """Pull as host.Endpoint does."""
        buffer = (lanes_of if self._root else bytes_of)(array, writable=True)
        into = _view(buffer.address, array)
        return self._add(self._pulls, lambda: self._host.pull(into.size, buffer.dtype), into)

    def _add(self, queue: _Queue, ask: Callable[[], Transfer], into: NDArray[np.uint8] | None) -> _Completion:
        completion = _Completion(self._clockwork, ask, into)
        self._clockwork.call(lambda: queue.add(completion))
        return completion

    def _post(self) -> None:
        self._pushes.post()
        self._pulls.post()


def _view(address: int, array: Any) -> NDArray[np.uint8]:
    """The bytes of a tensor or array, shared."""
    flat = array.detach().view(torch.uint8).numpy() if isinstance(array, torch.Tensor) else array.view(np.uint8)
    assert flat.ctypes.data == address
    return np.asarray(flat).reshape(-1)


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training gave.

    Attributes:
        digest: of the weights' bits (catchment.sim.training.root.digest_of).
        losses: each pass's, of each worker.
        clocks: of the machine.
        simulated_seconds: the same as time.
        frames, resent: data frames on the hosts' links, and retransmissions among them.
    """

    digest: str
    losses: tuple[tuple[float, ...], ...]
    clocks: int
    simulated_seconds: float
    frames: int
    resent: int


def train_on_machine(
    options: TrainingOptions, *, faults: Faults | None = None, software: Collection[str] = (), slots: int = 256
) -> Trained:
    """The demo's passes on one WorkerNIC per worker and one AggNIC; `software`: hosts with the endpoint of host/.

    Raises:
        CosimError: a transfer failed, or nothing moves.
    """
    initial = initial_layers(options)
    pages = 2 + 2 * sum(flat.numel() for flat in initial[1]) * LANE_BYTES // _MIB
    with Machine.star(
        options.workers, software=software, lanes=options.lanes, seed=options.seed, host=HostModel(pages=pages)
    ) as machine:
        machine.luwu(options.worker_names, root=ROOT_HOST, slots=slots)
        for cable in machine.cables.values():
            cable.faults(faults or Faults())
        clockwork = Clockwork(machine)
        losses: dict[tuple[int, int], float] = {}

        def worker(wid: int) -> Any:
            def tell(_event: str, **facts: Any) -> None:
                losses[facts["index"], wid] = facts["loss"]

            port = MachinePort(clockwork, options.worker_names[wid], root=False)
            return train(options, prepare(options, wid), [port], tell)

        def root() -> Any:
            port = MachinePort(clockwork, ROOT_HOST, root=True)
            return serve(options, initial, port, lambda _event, **_facts: None)

        served = _together(clockwork, [root, *(lambda wid=wid: worker(wid) for wid in range(options.workers))])
        counts = [line.counts() for cable in machine.cables.values() for line in (cable.up, cable.down)]
        return Trained(
            served["digest"],
            tuple(tuple(losses[i, w] for w in range(options.workers)) for i in range(len(options.passes))),
            machine.clocks, machine.clocks * CLOCK_NS * _SECONDS,
            sum(sum(c["frames"].values()) for c in counts), sum(sum(c["resent"].values()) for c in counts),
        )  # fmt: skip


def _together(clockwork: Clockwork, bodies: list[Callable[[], Any]]) -> Any:
    """Run all in threads; the first one's result."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        running = [pool.submit(body) for body in bodies]
        for one in as_completed(running):
            error = one.exception()
            if error is not None:
                clockwork.fail(error)
        failed = [error for one in running if (error := one.exception()) is not None]
    if failed:
        raise next((e for e in failed if e.__cause__ not in failed), failed[0])
    return running[0].result()
