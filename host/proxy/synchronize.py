"""The two ways in which proxies add: on a ring of their own, and through the switch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from catchment.host.proxy.channel import Channel, Kind, Message
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.ring import ENTRIES, Lanes, ring_sum

if TYPE_CHECKING:  # that package brings torch with it, which takes seconds
    from catchment.host.layers import TransferPort

Finish = Callable[[], None]
"""Returns when the sum is in place."""


class Synchronizer(Protocol):
    """Sums of arrays over all proxies. All of them begin the same arrays in the same order."""

    def begin(self, array: Lanes) -> Finish:
        """Begin to replace `array` by its sum; several may be under way, and are finished in their order.

        Raises:
            ProxyError, EndpointError: a proxy or the switch is gone; here or in what this returns.
        """


class RingSynchronizer:
    """Sums on a ring. There is nothing under way when `begin` returns."""

    def __init__(self, position: int, devices: int, onward: Channel, before: Channel, entries: int = ENTRIES) -> None:
        """Hold the channels to the next device and to the one before, counted in the direction of the ring."""
        self._place = position, devices
        self._onward, self._before = onward, before
        self._entries = entries

    def send(self, segment: Lanes) -> None:
        """See `RingLink`."""
        if len(segment):
            self._onward.send(Message(Kind.SEGMENT, size=segment.nbytes), segment)

    def receive(self, segment: Lanes) -> None:
        """See `RingLink`."""
        if not len(segment):
            return
        message = self._before.receive()
        if message.kind is not Kind.SEGMENT:
            raise ProxyError(f"{self._before.peer} sends {message.kind.name} where a segment belongs")
        self._before.into(segment)

    def begin(self, array: Lanes) -> Finish:
        """See `Synchronizer`."""
        ring_sum(array, *self._place, self, entries=self._entries)
        return _nothing


class SwitchSynchronizer:
    """Sums of int32 by a job of the proxies, each of which is a peer of it."""

    def __init__(self, port: TransferPort) -> None:
        """`port`: `Endpoint.peer` of an all-reduce job; nobody else uses it."""
        self._port = port

    def begin(self, array: Lanes) -> Finish:
        """See `Synchronizer`."""
        if array.dtype.kind != "i":
            raise ProxyError("a switch adds integers: give the tensor an exponent, or synchronize on a ring")
        total = np.empty_like(array)  # what was pushed may have to be sent again
        pushed = self._port.push(array)
        pulled = self._port.pull(total)

        def finish() -> None:
            pulled.wait()
            pushed.wait()
            array[:] = total

        return finish


class Alone:
    """A single proxy has the sum already."""

    def begin(self, array: Lanes) -> Finish:
        """See `Synchronizer`."""
        del array
        return _nothing


def _nothing() -> None:
    """It is finished."""
