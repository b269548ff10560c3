"""Delayed scaling: the exponents that earlier operations of a name needed."""

from __future__ import annotations

from collections import deque
from typing import final

from catchment.host.collectives.scaling import Delayed
from catchment.host.collectives.work import Work

_LEAST, _MOST = -128, 127


@final
class History:
    """What is remembered of the operations of one name; the same on all ranks, since it comes from what was agreed."""

    def __init__(self) -> None:
        self._exponents: deque[int] = deque()
        self._last: Work | None = None

    def exponent(self, scaling: Delayed) -> int | None:
        """E for the next operation, None when it has to be negotiated.  Waits for the previous one.

        Raises:
            CollectiveError: the communicator has failed.
        """
        if self._last is not None:
            last, self._last = self._last, None
            last.wait_quietly()
            error = last.exception()
            if error is not None and error.fatal:
                raise error
            if error is None:
                self._exponents.append(last.statistics.exponent)
        while len(self._exponents) > scaling.length:
            self._exponents.popleft()
        largest = max(self._exponents, default=_LEAST)
        return None if largest == _LEAST else max(_LEAST, min(largest + scaling.margin, _MOST))

    def started(self, work: Work) -> None:
        """`work` is the latest of its name."""
        self._last = work
