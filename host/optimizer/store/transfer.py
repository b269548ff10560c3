"""Reads and writes in flight, and the memory they need."""

from __future__ import annotations

import contextlib
import mmap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from catchment.host.optimizer.store.errors import of_errno
from catchment.host.optimizer.store.geometry import PAGE

if TYPE_CHECKING:
    from catchment.host import _optimizer

Memory = npt.NDArray[np.uint8]
"""Flat bytes; what devices read and write begins on a page."""


def page_aligned(size: int, *, resident: bool = False) -> Memory:
    """Zeroed memory that begins on a page, `size` rounded up to whole pages.

    `resident`: have all of it at once, in huge pages where the system gives them, rather than page by page when used.
    """
    # Private: memory that is shared, which is Python's default, seldom gets huge pages.
    memory = mmap.mmap(-1, max(PAGE, -(-size // PAGE) * PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    array = np.frombuffer(memory, dtype=np.uint8)
    if resident:
        with contextlib.suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        array[::PAGE] = 0
    return array


def as_type(memory: Memory, dtype: Any) -> npt.NDArray[Any]:
    """The same memory as elements of `dtype`."""
    return memory.view(dtype)


@dataclass(slots=True)
class Transfer:
    """One or more requests, on any number of devices; done when all are."""

    _parts: list[tuple[_optimizer.Ticket, str, str]] = field(default_factory=list)

    def add(self, ticket: _optimizer.Ticket, what: str, path: str) -> None:
        """Take in one request; `what` and `path` are for the message should it fail."""
        self._parts.append((ticket, what, path))

    def wait(self) -> None:
        """Block until all are done, also when one fails or a signal interrupts: then no device touches the memory.

        A second signal ends the wait: what is still in flight keeps the memory, which nobody may use any more.

        Raises:
            StoreError: kind ``device``, ``full`` or ``corrupt`` (cut short).
        """
        try:
            errors = [(ticket.wait(), what, path) for ticket, what, path in self._parts]
        except BaseException:
            for ticket, _, _ in self._parts:
                ticket.wait()
            raise
        for number, what, path in errors:
            if number:
                raise of_errno(number, what, path)

    def done(self) -> bool:
        """True once `wait` would return at once."""
        return all(ticket.done for ticket, _, _ in self._parts)

    @property
    def span(self) -> tuple[float, float]:
        """Begin of the first part and end of the last, seconds of the monotonic clock; after `wait`."""
        return min(t.started for t, _, _ in self._parts), max(t.ended for t, _, _ in self._parts)
