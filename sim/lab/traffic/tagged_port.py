"""A port of a player whose job has tags: what leaves gets one, what comes without the right one is not seen."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from scapy.packet import Packet

from catchment.sim.golden.tags import opened_frame, signed_frame
from catchment.sim.lab.traffic.raw_port import RawPort
from catchment.wire.generated.constants import HEADER_BYTES, HEADER_OFFSET, TAGGED_VERSION, VERSION, Header


def keys_of(description: Mapping[str, object]) -> dict[int, bytes]:
    """The keys by generation, of what a job tells a member; none of a job without tags."""
    streams = [value for value in description.values() if isinstance(value, Mapping)]
    return {stream["gen"]: bytes.fromhex(stream["key"]) for stream in streams if stream.get("key")}


class TaggedPort(RawPort):
    """Another port that gives and checks the tags of some generations.

    Args:
        port: the port that does the work; closed with this one.
        keys: by generation.

    Attributes:
        forged: frames of these generations that had no tag, or a wrong one.
    """

    def __init__(self, port: RawPort, keys: Mapping[int, bytes]) -> None:
        self.mac = port.mac
        self.forged = 0
        self._port = port
        self._keys = keys

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._port.__exit__(kind, error, trace)

    def send(self, frame: Packet | bytes) -> None:
        """Send a frame, with its tag if its generation has a key."""
        data = bytes(frame)
        key = self._key_of(data)
        self._port.send(data if key is None else signed_frame(data, key))

    def receive(self, seconds: float) -> bytes | None:
        """The next frame whose tag is right, without it, or that needs none; None after `seconds`."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            frame = self._port.receive(left)
            key = None if frame is None else self._key_of(frame)
            if frame is None or key is None:
                return frame
            read = opened_frame(frame, key)
            if read is not None:
                return read
            self.forged += 1
        return None

    def _key_of(self, frame: bytes) -> bytes | None:
        if len(frame) < HEADER_OFFSET + HEADER_BYTES:
            return None
        header = Header.unpack(frame, HEADER_OFFSET)
        return self._keys.get(header.gen) if header.version in (VERSION, TAGGED_VERSION) else None
