"""Frames of several interfaces in one file: the pcapng format, as far as a capture needs it."""

from __future__ import annotations

import struct
from typing import IO

_SECTION, _INTERFACE, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 6
_BYTE_ORDER = 0x1A2B3C4D
_ETHERNET = 1
_OPTION_END, _IF_NAME, _IF_DESCRIPTION, _IF_TSRESOL, _EPB_FLAGS = 0, 2, 3, 9, 2
_NANOSECONDS = 9
_APPLICATION, _USERAPPL = "catchment", 4

LONGEST_SNAP = 2**32 - 1
INBOUND, OUTBOUND = 1, 2
"""Which way a frame went, seen from the interface."""


class PcapngWriter:
    """Writes a capture: the interfaces first, then frames as they come.

    Args:
        out: takes the bytes; each frame is flushed, so that a reader sees it at once.
        snap: bytes of a frame that are kept, LONGEST_SNAP at the most; 0: all.
    """

    def __init__(self, out: IO[bytes], *, snap: int = 0) -> None:
        self._out = out
        self._snap = snap
        self._interfaces = 0
        body = struct.pack("<IHHq", _BYTE_ORDER, 1, 0, -1)
        self._write(_SECTION, body + _options((_USERAPPL, _APPLICATION.encode())))

    def add_interface(self, name: str, description: str) -> int:
        """Describe an interface; returns its number in the file."""
        options = _options(
            (_IF_NAME, name.encode()), (_IF_DESCRIPTION, description.encode()), (_IF_TSRESOL, bytes([_NANOSECONDS]))
        )
        self._write(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, self._snap) + options)
        self._interfaces += 1
        return self._interfaces - 1

    def add_frame(self, interface: int, time_ns: int, frame: bytes, direction: int, length: int | None = None) -> None:
        """Write a frame.

        Args:
            interface: its number.
            time_ns: since the epoch.
            frame: its bytes, or the first of them.
            direction: INBOUND or OUTBOUND.
            length: on the wire, when it is longer than `frame`.
        """
        kept = frame[: self._snap] if self._snap else frame
        head = struct.pack(
            "<IIIII",
            interface,
            time_ns >> 32,
            time_ns & 0xFFFF_FFFF,
            len(kept),
            len(frame) if length is None else length,
        )
        self._write(_ENHANCED_PACKET, head + _padded(kept) + _options((_EPB_FLAGS, struct.pack("<I", direction))))

    def _write(self, kind: int, body: bytes) -> None:
        size = struct.pack("<I", len(body) + 12)
        self._out.write(struct.pack("<I", kind) + size + body + size)
        self._out.flush()


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _options(*options: tuple[int, bytes]) -> bytes:
    return b"".join(
        struct.pack("<HH", code, len(value)) + _padded(value) for code, value in (*options, (_OPTION_END, b""))
    )
