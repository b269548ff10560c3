"""Either end of a shared-memory port by hand, from docs/explanation/shared-memory.md alone: what no honest end does."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Self

MAGIC = b"CATCHSHM"
VERSION = 1
HEADER = 4096
TO_SWITCH, FROM_SWITCH = 128, 384  # offsets of `written`; `read` is 128 further
SWITCH_WAITING, PEER_WAITING = 640, 768
SEALS = 0x1 | 0x2 | 0x4  # SEAL, SHRINK, GROW
F_ADD_SEALS = 1033


@dataclass(frozen=True)
class Layout:
    """The places of what lies in the memory."""

    cells: int
    cell_bytes: int

    @property
    def lengths(self) -> int:
        """Bytes of one ring's lengths."""
        return (self.cells * 4 + 127) // 128 * 128

    @property
    def first_cell(self) -> int:
        """Offset of the first cell to the switch."""
        return (HEADER + 2 * self.lengths + 4095) // 4096 * 4096

    @property
    def ring_bytes(self) -> int:
        """Bytes of one ring's cells."""
        return (self.cells * self.cell_bytes + 4095) // 4096 * 4096

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.first_cell + 2 * self.ring_bytes

    def header(self, epoch: int = 1) -> bytes:
        """What the switch writes at the beginning."""
        return MAGIC + struct.pack("<IIIIQII", VERSION, HEADER, self.cells, self.cell_bytes, epoch, os.getpid(), 0)


def memory(layout: Layout, *, seals: int = SEALS, header: bytes | None = None, size: int | None = None) -> int:
    """Shared memory as the switch makes it, or not quite."""
    descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, layout.total if size is None else size)
    os.pwrite(descriptor, layout.header() if header is None else header, 0)
    if seals:
        fcntl.fcntl(descriptor, F_ADD_SEALS, seals)
    return descriptor


def welcome(attached: int = 1, text: bytes = b"", version: int = VERSION) -> bytes:
    """The first message of a switch."""
    return MAGIC + struct.pack("<II240s", version, attached, text)


class RawPeer:
    """A peer's end: the socket, and the memory as bytes to write to."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60.0)
        self.socket.connect(str(path))
        hello, descriptors, _, _ = socket.recv_fds(self.socket, 256, 1)
        assert hello[:8] == MAGIC
        version, attached = struct.unpack_from("<II", hello, 8)
        assert (version, attached) == (VERSION, 1), hello[16:].rstrip(b"\0")
        (descriptor,) = descriptors
        self.memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self.descriptor = descriptor
        assert self.memory[:8] == MAGIC
        assert struct.unpack_from("<II", self.memory, 8) == (VERSION, HEADER)
        self.layout = Layout(*struct.unpack_from("<II", self.memory, 16))
        assert len(self.memory) == self.layout.total

    def index(self, offset: int) -> int:
        """A 64-bit index."""
        return int(struct.unpack_from("<Q", self.memory, offset)[0])

    def set_index(self, offset: int, value: int) -> None:
        """Write a 64-bit index."""
        struct.pack_into("<Q", self.memory, offset, value % (1 << 64))

    def put(self, frame: bytes, *, claim: int | None = None) -> None:
        """Write a frame, claiming a length."""
        written = self.index(TO_SWITCH)
        place = written % self.layout.cells
        start = self.layout.first_cell + place * self.layout.cell_bytes
        self.memory[start : start + len(frame)] = frame
        struct.pack_into("<I", self.memory, HEADER + 4 * place, len(frame) if claim is None else claim)
        self.set_index(TO_SWITCH, written + 1)
        self.wake()

    def wake(self) -> None:
        """Wake the switch, whether it sleeps or not."""
        with contextlib.suppress(BrokenPipeError):  # it has hung up already
            self.socket.send(b"\x01")

    def farewell(self) -> str:
        """Read until the switch hangs up; its last words."""
        words = b""
        while part := self.socket.recv(4096):
            words += part
        return words.lstrip(b"\x01").removeprefix(b"\x02").decode()

    def close(self) -> None:
        """Hang up."""
        self.socket.close()
        self.memory.close()
        os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
