"""A real network for bench/optimizer.py: the switch on shared-memory ports, one worker's endpoint and the root's."""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from bench.optimizer_network import UNLIMITED, Link, sleep_until
from catchment.host import Endpoint
from catchment.host.layers import LayerTable, TransferPort, WireType, message_size
from catchment.sim.lab.shm_lab import ShmLab

_AHEAD = 3  # layers in flight, at the worker and in `traffic`
_EXPONENT = 4


class LabNetwork:
    """A job of one worker on a switch of its own; a context manager. `port`: the root's endpoint.

    The worker pulls and pushes as the hooks do, for `steps` training passes, and "computes" `compute` seconds in each
    direction of a layer, by the clock. Its link carries `rate` bytes per second each way: what the frames bring sooner
    counts as there by the clock, and its credit stands still until then.
    """

    def __init__(self, table: LayerTable, steps: int, compute: float = 0.0, rate: float = UNLIMITED) -> None:
        self._table, self._steps, self._compute, self._rate = table, steps, compute, rate
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            lab = self._lab = exits.enter_context(ShmLab(["w0", "opt"], lanes=256, slots=256, mtu=9000))
            job = lab.luwu(["w0"], root="opt")
            self.port: Endpoint = exits.enter_context(lab.endpoint(job, "opt", timeout=60.0))
            worker = exits.enter_context(lab.endpoint(job, "w0", timeout=60.0))
            computed: queue.SimpleQueue[int | None] = queue.SimpleQueue()
            for body, name in ((self._receive, "worker's parameters"), (self._send, "worker's gradients")):
                thread = threading.Thread(target=body, args=(worker, computed), name=name, daemon=True)
                thread.start()
                exits.callback(thread.join)
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.port.close()  # ends the worker's waits as well: its peer is silent
        self._exits.close()

    def processor_seconds(self) -> float:
        """That this process and the switch have taken so far."""
        switch = Path(f"/proc/{self._lab.switch.pid}/stat").read_text().rpartition(")")[2].split()
        return time.process_time() + (int(switch[11]) + int(switch[12])) / os.sysconf("SC_CLK_TCK")

    def _receive(self, port: Endpoint, computed: queue.SimpleQueue[int | None]) -> None:
        """Take parameters and compute; `computed` hears of each layer that has gradients now, and None at the end."""
        ahead: deque[tuple[int, bool, Any, Any]] = deque()
        schedule, link, done = self._schedule(), Link(self._rate), 0.0
        try:
            while True:
                for layer, backward in itertools.islice(schedule, _AHEAD - len(ahead)):
                    buffer = np.empty(message_size(self._table[layer], WireType.BF16), np.uint8)
                    ahead.append((layer, backward, buffer, port.pull(buffer)))
                if not ahead:
                    break
                layer, backward, buffer, pull = ahead.popleft()
                pull.wait()
                sleep_until(link.arrival(buffer.nbytes, time.monotonic()))
                done = max(done, time.monotonic()) + self._compute
                sleep_until(done)
                if backward:
                    computed.put(layer)
        finally:
            computed.put(None)

    def _send(self, port: Endpoint, computed: queue.SimpleQueue[int | None]) -> None:
        gradients = [np.full(layer.numel, 1e-3, np.float32) for layer in self._table]
        link, pushed = Link(self._rate), deque[Any]()
        while (layer := computed.get()) is not None:
            sleep_until(link.arrival(gradients[layer].nbytes, time.monotonic()))
            pushed.append(port.push(gradients[layer], exponent=_EXPONENT))
        _reap(pushed, 0)

    def _schedule(self) -> Iterator[tuple[int, bool]]:
        layers = range(len(self._table))
        for _ in range(self._steps):
            yield from ((layer, False) for layer in layers)
            yield from ((layer, True) for layer in reversed(layers))


def traffic(port: TransferPort, table: LayerTable, steps: int, on_step: Callable[[], None]) -> None:
    """What a node's steps send and receive, with nothing behind it: the network alone."""
    messages = [np.zeros(message_size(layer, WireType.BF16), np.uint8) for layer in table]
    gradients = [np.empty(layer.numel, np.float32) for layer in table]
    for _ in range(steps):
        flying: deque[Any] = deque()
        for layer in range(len(table)):
            flying.append(port.push(messages[layer]))
            _reap(flying, _AHEAD)
        for layer in reversed(range(len(table))):
            port.push(messages[layer])
            flying.append(port.pull(gradients[layer]))
            _reap(flying, _AHEAD)
        _reap(flying, 0)
        on_step()


def _reap(flying: deque[Any], keep: int) -> None:
    while len(flying) > keep:
        flying.popleft().wait()
