"""Not a test: somebody between a rank and its port who writes into the frames while the rank reads them.

It passes on the memory that the switch hands over and every wake-up, so the ring works (format:
docs/explanation/shared-memory.md).
"""

from __future__ import annotations

import array
import contextlib
import mmap
import os
import random
import select
import socket
import struct
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

WELCOME = 256
PAGE = 4096


class Middle:
    """Listens at `path` for one rank, and attaches to the switch's port at `port` for it."""

    def __init__(self, path: Path, port: Path, rng: random.Random) -> None:
        self._rng = rng
        self._stop = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._port = port
        self._thread = threading.Thread(target=self._serve)
        self.spoilt = 0
        """Frames written to while they lay in the ring."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(60)
        self._listener.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            if not select.select([self._listener], [], [], 0.05)[0]:
                continue
            rank, _ = self._listener.accept()
            with rank, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as switch:
                switch.connect(str(self._port))
                hello, descriptors, _, _ = socket.recv_fds(switch, WELCOME, 1)
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                with contextlib.suppress(OSError):  # one of them has hung up
                    rank.sendmsg([hello], rights if descriptors else [])
                    if descriptors:
                        self._spoil(rank, switch, descriptors[0])

    def _spoil(self, rank: socket.socket, switch: socket.socket, descriptor: int) -> None:
        with mmap.mmap(descriptor, os.fstat(descriptor).st_size) as memory:
            os.close(descriptor)
            cells, cell_bytes = struct.unpack_from("<II", memory, 16)
            lengths = PAGE + (cells * 4 + 127) // 128 * 128
            ring = (cells * cell_bytes + PAGE - 1) // PAGE * PAGE
            first = (PAGE + 2 * (lengths - PAGE) + PAGE - 1) // PAGE * PAGE + ring
            while not self._stop.is_set():
                for one, other in ((rank, switch), (switch, rank)):
                    while select.select([one], [], [], 0)[0]:
                        passed = one.recv(4096)
                        if not passed:
                            return
                        other.sendall(passed)
                written = struct.unpack_from("<Q", memory, 384)[0]
                self._flip(memory, first, cells, cell_bytes, written)

    def _flip(self, memory: mmap.mmap, first: int, cells: int, cell_bytes: int, written: int) -> None:
        """Changes bytes of the headers of the frames that were written last, back and forth."""
        for _ in range(64):
            cell = first + (written - self._rng.randrange(1, 9)) % cells * cell_bytes
            at = cell + self._rng.randrange(14, 64)
            byte = memory[at]
            memory[at] = byte ^ self._rng.randrange(1, 256)
            memory[at] = byte
            self.spoilt += 1
