"""A client in plain HTTP/2 that asks and takes no byte of an answer; gRPC's own clients take what comes at once."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

TIMEOUT = 60.0
CALLS = 64
"""That a connection may have at once."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _PING, _WINDOW_UPDATE = 0, 1, 4, 6, 8
_ACK, _END_OF_STREAM, _END_OF_HEADERS = 1, 1, 4
_NO_WINDOW = (4).to_bytes(2, "big") + bytes(4)  # SETTINGS_INITIAL_WINDOW_SIZE = 0
_FRAME_BYTES = 16_000
_WINDOW = 65_535  # of a connection, before it is told more


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _headers(method: str) -> bytes:
    fields = {
        b":method": b"POST",
        b":scheme": b"http",
        b":path": f"/p4.v1.P4Runtime/{method}".encode(),
        b":authority": b"switch",
        b"content-type": b"application/grpc",
        b"te": b"trailers",
    }
    return b"".join(bytes([0, len(name)]) + name + bytes([len(value)]) + value for name, value in fields.items())


class UntakingClient:
    """One connection to a TCP address; a context manager that ends it."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT)
        self._window = _WINDOW
        self._agreed = False
        self._changed = threading.Condition()
        self._next_stream = 1
        self._sending = threading.Lock()
        self._send(_PREFACE + _frame(_SETTINGS, 0, 0, _NO_WINDOW))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._wait_for(lambda: self._agreed)

    def __enter__(self) -> UntakingClient:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # the switch was first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()

    def ask(self, method: str, *messages: bytes, ended: bool = True) -> None:
        """Begin a call with these messages, each of at most 4 MiB; it takes no answer."""
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        self._send(_frame(_HEADERS, _END_OF_HEADERS, stream, _headers(method)))
        body = b"".join(bytes(1) + len(message).to_bytes(4, "big") + message for message in messages)
        for start in range(0, len(body), _FRAME_BYTES):
            part = body[start : start + _FRAME_BYTES]
            last = ended and start + _FRAME_BYTES >= len(body)
            self._wait_for(lambda part=part: self._window >= len(part))
            with self._changed:
                self._window -= len(part)
            self._send(_frame(_DATA, _END_OF_STREAM if last else 0, stream, part))

    def _send(self, frames: bytes) -> None:
        with self._sending:
            self._socket.sendall(frames)

    def _wait_for(self, come: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(come, TIMEOUT), "the switch takes nothing"

    def _read(self) -> None:
        with contextlib.suppress(ConnectionError), self._socket.makefile("rb") as frames:
            while len(head := frames.read(9)) == 9:
                payload = frames.read(int.from_bytes(head[:3], "big"))
                self._hear(head[3], head[4], int.from_bytes(head[5:], "big"), payload)

    def _hear(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            self._send(_frame(_SETTINGS, _ACK, 0))
            with self._changed:
                self._agreed = True
                self._changed.notify_all()
        elif kind == _PING and not flags & _ACK:
            self._send(_frame(_PING, _ACK, 0, payload))
        elif kind == _WINDOW_UPDATE and stream == 0:
            with self._changed:
                self._window += int.from_bytes(payload, "big")
                self._changed.notify_all()
