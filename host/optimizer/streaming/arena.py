"""The buffers of all layers in flight: one piece of memory, taken once, handed out in the order of asking."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from catchment.host.layers import TrainingError
from catchment.host.optimizer.store import Memory, page_aligned
from catchment.host.optimizer.store.geometry import PAGE


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of the arena: `memory` begins on a page."""

    start: int
    memory: Memory


class Arena:
    """Memory for the layers in flight. Threads get regions in the order of their requests, so that none starves."""

    def __init__(self, size: int) -> None:
        """Take `size` bytes, rounded up to pages, from the system."""
        self._memory = page_aligned(size, resident=True)
        self._change = threading.Condition()
        self._free: list[tuple[int, int]] = [(0, self._memory.size)]  # (start, length), by start, never adjacent
        self._next_turn = 0
        self._turn = 0
        self._used = 0
        self._closed = False
        self.peak = 0
        """Most bytes ever in use at a time."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        return int(self._memory.size)

    def take(self, size: int) -> Region | None:
        """A region of `size` bytes, rounded up to pages; waits for it. None when the arena was closed meanwhile.

        Raises:
            TrainingError: the arena is smaller than that.
        """
        length = max(PAGE, -(-size // PAGE) * PAGE)
        if length > self.size:
            raise TrainingError(f"the arena has {self.size} bytes, one layer needs {length}: give it more")
        with self._change:
            turn = self._next_turn
            self._next_turn += 1
            self._change.wait_for(lambda: self._closed or (self._turn == turn and self._fit(length) is not None))
            if self._closed:
                return None
            self._turn += 1
            place = self._fit(length)
            assert place is not None
            start, there = self._free[place]
            if there == length:
                del self._free[place]
            else:
                self._free[place] = (start + length, there - length)
            self._used += length
            self.peak = max(self.peak, self._used)
            self._change.notify_all()
            return Region(start, self._memory[start : start + length])

    def give_back(self, region: Region) -> None:
        """The region may be handed out again."""
        start, length = region.start, region.memory.size
        with self._change:
            self._used -= length
            self._free.append((start, length))
            self._free.sort()
            merged = [self._free[0]]
            for begin, size in self._free[1:]:
                last, room = merged[-1]
                if last + room == begin:
                    merged[-1] = (last, room + size)
                else:
                    merged.append((begin, size))
            self._free = merged
            self._change.notify_all()

    def close(self) -> None:
        """Wake all threads that wait in `take`; it returns None from now on."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _fit(self, length: int) -> int | None:
        return next((place for place, (_, there) in enumerate(self._free) if there >= length), None)
