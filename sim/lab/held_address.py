"""An address of loopback that nobody else is given, from before its server starts until after its last one ended."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self


class HeldAddress:
    """A TCP port that is bound but not listened at; a context manager.

    The kernel gives it to nobody who takes any port, and a server that binds with SO_REUSEADDR, as gRPC's and Thrift's
    do, listens at it all the same, ends, and listens again. Nobody answers there meanwhile.

    Attributes:
        port: its number.
        address: ``127.0.0.1:port``.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """Let it go; a server that listens there is not disturbed."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
