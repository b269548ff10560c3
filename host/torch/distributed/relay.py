"""Begins operations of the companion when all ranks have agreed on them."""

from __future__ import annotations

import queue
import threading
from typing import final

import torch.distributed as dist

from catchment.host.torch.distributed.companion_work import Lost
from catchment.host.torch.distributed.later_work import LaterWork


@final
class Relay:
    """Begins operations in the order in which they were called, which is the same on all ranks."""

    def __init__(self) -> None:
        self._works: queue.SimpleQueue[LaterWork | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, work: LaterWork) -> LaterWork:
        """Begin it when its ranks have agreed; gives it back."""
        with self._starting:
            self._works.put(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="catchment-relay", daemon=True)
                self._thread.start()
        return work

    def await_begun(self, lost: Lost, timeout: float) -> bool:
        """Wait for some seconds until every work so far has begun, or failed to; False: not in time.

        Raises:
            CollectiveError: a rank was lost meanwhile.
        """
        with self._starting:
            if self._thread is None:
                return True
            last = LaterWork(dist.Work, "", lost)
            self._works.put(last)
        return last.await_begin(timeout)

    def close(self) -> None:
        """End; every agreement is reached or has failed by then."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._works.put(None)
            if thread is not threading.current_thread():
                thread.join()

    def _run(self) -> None:
        while (work := self._works.get()) is not None:
            work.begin()
            del work  # its tensors are not kept until the next
