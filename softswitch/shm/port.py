"""A port of the switch as a Python object: whole Ethernet frames as bytes."""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self, final

from catchment.softswitch.shm import library as c
from catchment.softswitch.shm.errors import DetachedError, ShmError

_BATCH = 64
_SLICE_US = 100_000
"""Longest time in C without a look at Python's signals."""

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Info:
    """The state of a port.

    Attributes:
        cells: frames that fit each ring.
        frame_bytes: the longest frame.
        epoch: of this attachment; every re-attachment has a greater one.
        attachments: how often the port has been attached.
        sent: frames since `Port.attach`.
        received: likewise.
        switch_pid: the switch's process.
        attached: False while the switch is away.
    """

    cells: int
    frame_bytes: int
    epoch: int
    attachments: int
    sent: int
    received: int
    switch_pid: int
    attached: bool


@final
class Port:
    """An attached port; a context manager.  Make one with `attach`.  For one thread at a time."""

    def __init__(self, handle: int, path: str) -> None:
        self._c = c.library()
        self._handle: int | None = handle
        self._path = path
        self._room = self.info.frame_bytes
        self._buffers = [ctypes.create_string_buffer(self._room) for _ in range(_BATCH)]
        self._in = (c.Frame * _BATCH)()
        self._point_at_buffers()

    @classmethod
    def attach(cls, path: str | os.PathLike[str], *, timeout: float | None = 5.0) -> Self:
        """Attach to the port whose socket is at `path`, given to the switch as --port N=shm:PATH.

        Args:
            path: of the socket.
            timeout: seconds to wait for the switch to be there and the port to be free; None: forever.

        Raises:
            ShmError: no switch listens there in time, somebody else has the port, or the path is none of a port.
        """
        text = os.fspath(path)
        limit = -1 if timeout is None else max(0, math.ceil(min(timeout, 1e6) * 1000))
        start = time.monotonic()
        error, status = ctypes.create_string_buffer(512), ctypes.c_int()
        while True:
            # In short pieces, so that Ctrl-C ends it.
            passed = int((time.monotonic() - start) * 1000)
            piece = _SLICE_US // 1000 if limit < 0 else min(_SLICE_US // 1000, max(0, limit - passed))
            handle = c.library().catchment_shm_attach(os.fsencode(text), piece, ctypes.byref(status), error, len(error))
            if handle is not None:
                return cls(handle, text)
            if status.value != c.TIMEOUT or 0 <= limit <= passed + piece:
                raise ShmError(error.value.decode(errors="replace"))

    def send(self, frames: Buffer | Iterable[Buffer], *, timeout: float | None = 1.0) -> int:
        """Send one frame, or several; returns how many.

        Args:
            frames: whole Ethernet frames, each 1 to `Info.frame_bytes` bytes.
            timeout: seconds to wait for room when the ring is full, in all; None: forever.

        Raises:
            DetachedError: the switch is gone; the frames that had not left are not sent.
            ShmError: a frame is too long or empty, the ring stays full, or the port is closed.
        """
        batch = [frames] if isinstance(frames, Buffer) else list(frames)
        owned = [bytes(frame) for frame in batch]
        out = (c.Frame * len(owned))()
        for entry, frame in zip(out, owned, strict=True):
            entry.data = ctypes.cast(ctypes.c_char_p(frame), ctypes.c_void_p)
            entry.length = len(frame)
        until = _deadline(timeout)
        done = 0
        while done < len(owned):
            rest = ctypes.cast(ctypes.byref(out, done * ctypes.sizeof(c.Frame)), ctypes.POINTER(c.Frame))
            count = self._check(self._c.catchment_shm_send(self._alive, rest, len(owned) - done))
            done += count
            if done < len(owned) and count == 0 and not self._wait(c.ROOM, until):
                raise ShmError(f"{self._path}: the switch takes no frames; {done} of {len(owned)} are sent")
        return done

    def receive(self, *, timeout: float | None = 0.0, most: int = _BATCH) -> list[bytes]:
        """The frames that have arrived, at most `most`; waits for the first of them.

        Args:
            timeout: seconds to wait when there is none; None: forever.
            most: how many to take at once, up to 64.

        Returns:
            Whole frames, in order; empty when none came in time.

        Raises:
            DetachedError: the switch is gone; call again to wait for its return.
            ShmError: the port is closed, or the ring was corrupt (it is attached anew).
        """
        until = _deadline(timeout)
        while True:
            count = self._check(self._c.catchment_shm_receive(self._alive, self._in, min(most, _BATCH)))
            if count:
                return [
                    ctypes.string_at(buffer, frame.length)
                    for buffer, frame in zip(self._buffers[:count], self._in, strict=False)
                ]
            if not self._wait(c.FRAMES, until):
                return []

    def wait_attached(self, *, timeout: float | None = 5.0) -> None:
        """Wait until the switch is there (again).

        Raises:
            DetachedError: it is not, in time.
        """
        until = _deadline(timeout)
        while True:
            if self._c.catchment_shm_check(self._alive) >= 0:
                return
            status = self._c.catchment_shm_wait(self._alive, c.ROOM, min(_SLICE_US, _left(until)))
            if _left(until) == 0:
                self._check(status)

    @property
    def info(self) -> Info:
        """Sizes, epoch and counters."""
        raw = c.RawInfo()
        self._c.catchment_shm_get_info(self._alive, ctypes.byref(raw))
        return Info(
            *(raw.cells, raw.frame_bytes, raw.epoch, raw.attachments, raw.sent, raw.received, raw.switch_pid),
            bool(raw.attached),
        )

    def fileno(self) -> int:
        """Readable when something happens, for select(); call `arm` before sleeping on it."""
        return int(self._c.catchment_shm_descriptor(self._alive))

    def arm(self) -> bool:
        """Whether one may sleep on `fileno()` until frames come; False: they are there already."""
        return self._check(self._c.catchment_shm_arm(self._alive, c.FRAMES)) == 0

    def close(self) -> None:
        """Let go of the port; the switch serves the next peer that comes.  May be called twice."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._c.catchment_shm_detach(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    @property
    def _alive(self) -> int:
        if self._handle is None:
            raise ShmError(f"{self._path}: the port is closed")
        return self._handle

    def _point_at_buffers(self) -> None:
        for entry, buffer in zip(self._in, self._buffers, strict=True):
            entry.data = ctypes.addressof(buffer)
            entry.room = self._room

    def _wait(self, events: int, until: float) -> bool:
        """Whether one of the events came before `until`."""
        while True:
            left = _left(until)
            status = self._c.catchment_shm_wait(self._alive, events, min(_SLICE_US, left))
            if status not in (c.TIMEOUT, c.DETACHED):
                self._check(status)
                return True
            if left <= _SLICE_US:
                if status == c.DETACHED:
                    self._check(status)
                return False

    def _check(self, status: int) -> int:
        if status >= 0:
            return status
        text = self._c.catchment_shm_error(self._alive).decode(errors="replace")
        raise (DetachedError if status == c.DETACHED else ShmError)(text)


def _deadline(timeout: float | None) -> float:
    return math.inf if timeout is None else time.monotonic() + max(0.0, timeout)


def _left(until: float) -> int:
    """Microseconds."""
    return _SLICE_US * 2 if until == math.inf else max(0, math.ceil((until - time.monotonic()) * 1e6))
