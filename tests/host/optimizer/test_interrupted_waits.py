"""What a signal leaves of a wait for devices: nothing that still moves memory, unless a second one comes."""

from __future__ import annotations

from typing import cast

import pytest

from catchment.host import _optimizer
from catchment.host.optimizer.store import StoreError, Transfer


class Request:
    """A ticket whose wait signals interrupt so often."""

    def __init__(self, interrupts: int = 0, number: int = 0) -> None:
        self.done = False
        self._interrupts = interrupts
        self._number = number

    def wait(self) -> int:
        if self._interrupts:
            self._interrupts -= 1
            raise KeyboardInterrupt
        self.done = True
        return self._number


def transfer(*requests: Request) -> Transfer:
    """A transfer of these requests."""
    made = Transfer()
    for request in requests:
        made.add(cast("_optimizer.Ticket", request), "read", "device")
    return made


def test_an_interrupted_wait_ends_when_all_requests_are_done() -> None:
    requests = [Request(), Request(interrupts=1), Request(number=5)]
    with pytest.raises(KeyboardInterrupt):
        transfer(*requests).wait()
    assert all(request.done for request in requests)


def test_a_second_signal_ends_a_wait() -> None:
    """A device that never answers must not keep a process from its end."""
    requests = [Request(interrupts=2), Request()]
    with pytest.raises(KeyboardInterrupt):
        transfer(*requests).wait()
    assert not requests[0].done


def test_a_failed_request_leaves_none_in_flight() -> None:
    requests = [Request(number=5), Request()]
    with pytest.raises(StoreError, match="Input/output error"):
        transfer(*requests).wait()
    assert all(request.done for request in requests)
