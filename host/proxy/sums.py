"""What a client of proxies does, however they sum: pushes gradients by name, pulls their sums (COARSE, III-D)."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, final

import numpy as np

from catchment.host.given_numbers import LONGEST, as_real, as_whole, is_whole
from catchment.host.given_several import in_order
from catchment.host.proxy.channel import Flag
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.limits import MOST_CLIENTS
from catchment.host.proxy.numbers import dequantized, elements, quantized
from catchment.host.proxy.ring import Lanes
from catchment.host.proxy.tensors import TensorTable

_ASKED = 2.0
"""Seconds before the end of a wait in which a client asks who the sum waits for; a quarter of a shorter wait."""
_LEAST_ASKED = 0.25
"""Seconds: nobody is asked for less."""


class TensorStep:
    """One tensor's present step at this client: what was pushed, and what has come back of the sum."""

    __slots__ = ("flags", "left", "pushed", "step", "total")

    def __init__(self, numel: int, dtype: type) -> None:
        self.step = -1
        self.left = 0
        self.flags = 0
        self.pushed: Lanes = np.empty(0, dtype)
        self.total: Lanes = np.empty(numel, dtype)


@final
class Handle:
    """A push or a pull under way."""

    def __init__(self, client: SumClient, number: int, out: Any = None) -> None:
        """`number`: of the tensor, in the client's present step of it; `out`: where a pull's sum goes."""
        self._client, self._number, self._out = client, number, out

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return self._client.arrived(self._number)

    def wait(self, timeout: float | None = None) -> None:
        """Block until the sum is there; of a pull, until it is in place.

        Args:
            timeout: seconds, 0 or more; by default the group's.

        Raises:
            ProxyError: `timeout` is no number; a proxy or a client is gone, or the sum is not there after that time.
        """
        self._client.await_sum(self._number, timeout)
        if self._out is not None:
            self._client.deliver(self._number, self._out)


class SumClient(ABC):
    """One of several clients. All of them push each tensor of the table once in a step, in any order.

    `Client` reaches proxies that synchronize among themselves, `HomeClient` nodes of which each holds a part. Calls,
    sums and errors are the same. Not for use by two threads at once.
    """

    def __init__(self, number: int, clients: int, table: TensorTable, timeout: float, updated: bool = False) -> None:
        """`number`: of this client. `timeout`: seconds for which it waits for a sum.

        `updated`: what comes back are parameters that the proxies have updated by the sum.

        Raises:
            ProxyError: there is no such client, or the table is none.
        """
        if not is_whole(clients, 1, MOST_CLIENTS) or not is_whole(number, 0, clients - 1):
            raise ProxyError(f"client {number!r} of {clients!r}: they count from 0, and are {MOST_CLIENTS} at most")
        if not isinstance(table, TensorTable):
            raise ProxyError(f"client {number}: its tensors are {table!r:.80}: give a TensorTable")
        seconds = as_real(timeout)
        if seconds is None or not 0 < seconds <= LONGEST:
            raise ProxyError(f"client {number}: a timeout of {timeout!r}: give seconds, more than 0, at most {LONGEST}")
        self._number, self._clients, self._table, self._timeout = int(number), int(clients), table, seconds
        self._tensors = [
            TensorStep(t.numel, np.float32 if updated or t.exponent is None else np.int32) for t in table.tensors
        ]
        self._updated = updated
        self._step = 0
        self._changed = threading.Condition()
        self._failure: ProxyError | None = None
        self._closing = False

    @abstractmethod
    def _submit(self, shard: int, flags: Flag) -> None:
        """Begin to sum a shard of what was pushed in this step."""

    @abstractmethod
    def _leave(self, *, midway: bool, steps: int, why: str) -> None:
        """Say that nothing follows.

        Args:
            midway: others will wait for what this client has not pushed.
            steps: so many it has had.
            why: what ended it, behind a colon, or nothing; for whoever can tell the others.
        """

    @abstractmethod
    def _tell_others(self, error: ProxyError) -> None:
        """Something failed here: tell those who can hear it."""

    def _inquire(self, number: int) -> Callable[[float], str]:
        """Begin to ask who the sum of a tensor waits for, where somebody can know; returns at once.

        What it gives says what has been answered after so many seconds, as words that may follow a colon.
        """
        del number
        return _unknown

    @property
    def table(self) -> TensorTable:
        """The tensors that it pushes."""
        return self._table

    @property
    def clients(self) -> int:
        """How many clients' gradients a sum has."""
        return self._clients

    @property
    def step(self) -> int:
        """The step that is under way, from 0; of proxies that went on from a snapshot, from its step."""
        return self._step

    def push(self, name: str, gradient: Any) -> Handle:
        """Begin to sum this client's fp32 gradient of a tensor over all clients; several may be under way.

        Values that the tensor's exponent does not hold are cut to the largest that it does. NaN and infinities make
        the shards they are in NaN at all clients. The gradient may be written to again when this returns.

        Raises:
            ProxyError: the tensor is not registered, has another size, or was pushed in this step already.
        """
        number = self._table.number(name)
        tensor, registered = self._tensors[number], self._table.tensors[number]
        source = elements(name, gradient, registered.numel)
        self._check()
        if tensor.step == self._step:
            raise ProxyError(f"tensor {name} was pushed in step {self._step} already: call end_step first")
        shards = self._table.shards_of[number]
        flags = [Flag(0)] * len(shards)
        if registered.exponent is None:
            tensor.pushed = source.copy()
        else:
            tensor.pushed = quantized(source, registered.exponent, self._clients)
            flags = [Flag(0) if np.isfinite(self._part(source, shard)).all() else Flag.NOT_FINITE for shard in shards]
        with self._changed:
            tensor.step, tensor.left, tensor.flags = self._step, len(shards), 0
        for shard, flag in zip(shards, flags, strict=True):
            self._submit(shard, flag)
        return Handle(self, number)

    def pull(self, name: str, out: Any) -> Handle:
        """The sum of the tensor's gradients of this step, which goes to `out` (fp32, C-contiguous) in `wait`.

        Of proxies that keep parameters: the tensor's parameters after this step, or before it, if it was not pushed.

        Raises:
            ProxyError: the tensor is not registered, has another size, or was not pushed in this step.
        """
        number = self._table.number(name)
        elements(name, out, self._table.tensors[number].numel)
        if self._tensors[number].step != self._step and not self._updated:
            raise ProxyError(f"tensor {name} was not pushed in step {self._step}: push it first")
        return Handle(self, number, out)

    def end_step(self) -> None:
        """Wait until all sums of this step are there; the next step begins.

        Raises:
            ProxyError: a tensor was not pushed, whose sum others would wait for; or as `Handle.wait`.
        """
        missing = [t.name for t, own in zip(self._table.tensors, self._tensors, strict=True) if own.step != self._step]
        if missing:
            raise ProxyError(
                f"step {self._step} ends without {', '.join(missing[:3])}{' and others' * (len(missing) > 3)}: all "
                "clients wait for every tensor; push zeros for one without a gradient"
            )
        for number in range(len(self._tensors)):
            self.await_sum(number, None)
        self._step += 1

    @final
    def close(self) -> None:
        """Say that nothing follows. In the midst of a step the others are told that this client is gone."""
        self._close("")

    def _close(self, why: str) -> None:
        self._closing = True
        pushed = [tensor.step == self._step for tensor in self._tensors]
        midway = any(tensor.left for tensor in self._tensors) or any(pushed) != all(pushed)
        self._leave(midway=midway, steps=self._step + all(pushed), why=why)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close("" if error is None else f": {_said_of(error)}")

    def arrived(self, number: int) -> bool:
        """Whether all of a tensor's sum is there (or something failed)."""
        return self._tensors[number].left == 0 or self._failure is not None

    def await_sum(self, number: int, timeout: float | None) -> None:
        """See `Handle.wait`."""
        limit = self._timeout if timeout is None else as_real(timeout)
        if limit is None or limit < 0:
            raise ProxyError(f"a timeout of {timeout!r}: give a number of seconds from 0 on")
        last = min(limit / 4, _ASKED)
        if not self._within(number, limit - last):
            answered = self._inquire(number) if last >= _LEAST_ASKED else _unknown
            if not self._within(number, last):
                raise ProxyError(
                    f"the sum of {self._table.tensors[number].name} of step {self._step} is not there after {limit:g} "
                    f"s: {answered(last)}"
                )
        if self._tensors[number].left:
            self._check()

    def _within(self, number: int, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.arrived(number), min(seconds, threading.TIMEOUT_MAX))

    def deliver(self, number: int, out: Any) -> None:
        """Write a sum that has arrived, as fp32."""
        tensor, registered = self._tensors[number], self._table.tensors[number]
        target = elements(registered.name, out, registered.numel)
        if self._updated or registered.exponent is None:
            target[:] = tensor.total
        else:
            dequantized(tensor.total, registered.exponent, self._clients, target)
        if tensor.flags:
            for shard in self._table.shards_of[number]:
                if tensor.flags >> (shard - self._table.shards_of[number].start) & 1:
                    target[self._table.shards[shard].start : self._table.shards[shard].stop] = np.nan

    def _check(self) -> None:
        if self._failure is not None:
            raise ProxyError(str(self._failure))

    def _fail(self, error: ProxyError) -> None:
        with self._changed:
            if self._failure is not None or self._closing:
                return
            self._failure = error
            self._changed.notify_all()
        self._tell_others(error)

    def _part(self, lanes: Lanes, shard: int) -> Lanes:
        found = self._table.shards[shard]
        return lanes[found.start : found.stop]

    def _arrived(self, shard: int, flags: int) -> None:
        """A shard's sum is in its place in `total`."""
        number = self._table.shards[shard].tensor
        with self._changed:
            if flags & Flag.NOT_FINITE:
                self._tensors[number].flags |= 1 << (shard - self._table.shards_of[number].start)
            self._tensors[number].left -= 1
            self._changed.notify_all()


def _unknown(seconds: float) -> str:
    del seconds
    return "another client has not pushed it, or one of those who sum stands still"


def _said_of(error: BaseException) -> str:
    """What others are told of what ended a client: its words, or what it is where it has none, as of Ctrl-C."""
    said = str(error)
    return said if said and isinstance(error, Exception) else f"{type(error).__name__} {said}".rstrip()


def checked_routes(routes: Any, shards: int) -> tuple[int, ...]:
    """The proxy, or home, of each shard, as a caller gave them; which ones there are is the others' concern.

    Raises:
        ProxyError: they are no whole numbers, or not as many as there are shards.
    """
    whole = [as_whole(each) for each in in_order(routes) or ()]
    found = tuple(each for each in whole if each is not None)
    if len(found) != shards or len(whole) != shards:
        raise ProxyError(f"routes {routes!r:.80} of {shards} shards: give each of them the number of a proxy")
    return found
