"""The admin socket of a running switch: statistics of its ports, and faults that they inflict on frames."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Any


class SwitchAdminError(Exception):
    """The switch refused a request, or is not there; says what it answered."""


class SwitchAdmin:
    """A connection to `catchment-switch --admin PATH`: `with SwitchAdmin(path) as admin: admin.ports()`.

    Raises:
        SwitchAdminError: nobody listens at `path`.
    """

    def __init__(self, path: Path, timeout: float = 10.0) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise SwitchAdminError(f"no switch listens at {path} (catchment-switch --admin): {error}") from error
        self._answers = self._socket.makefile("rb")

    def ports(self) -> list[dict[str, Any]]:
        """Every port: number, name, up, frames and bytes in and out, `missed`, whether UDP may come merged, drops by
        cause, faults and what came of them, as `softswitch/server/src/admin.cpp` writes it."""
        ports: list[dict[str, Any]] = self._ask("ports")["ports"]
        return ports

    def port(self, number: int) -> dict[str, Any]:
        """One of them.

        Raises:
            SwitchAdminError: there is no such port.
        """
        for port in self.ports():
            if port["port"] == number:
                return port
        raise SwitchAdminError(f"the switch at {self._path} has no port {number}")

    def clients(self) -> dict[str, int]:
        """Clients of P4Runtime over TCP: `open` connections, `unfinished_bytes` of messages that come in, and since the
        switch began `accepted` connections, those `cut_off` and `failed_handshakes` of TLS."""
        clients: dict[str, int] = self._ask("clients")["clients"]
        return clients

    def set_faults(self, port: int, spec: str) -> None:
        """Put faults in force, such as `loss=0.01,out.delay=200us,seed=7`, or `off`.

        Raises:
            SwitchAdminError: there is no such port, or the specification is wrong.
        """
        self._ask(f"fault {port}:{spec}")

    def close(self) -> None:
        """End the connection; the switch goes on."""
        self._answers.close()
        self._socket.close()

    def __enter__(self) -> SwitchAdmin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, request: str) -> dict[str, Any]:
        try:
            sent = request.encode()
        except UnicodeEncodeError:
            raise SwitchAdminError(f"{request!r} is not all UTF-8, which a request to the switch has to be") from None
        if b"\n" in sent:
            raise SwitchAdminError(f"{request!r} has a line break; a request to the switch is one line")
        try:
            self._socket.sendall(sent + b"\n")
            line = self._answers.readline()
        except OSError as error:
            raise SwitchAdminError(f"the switch at {self._path} does not answer: {error}") from error
        if not line.endswith(b"\n"):
            raise SwitchAdminError(f"the switch at {self._path} closed the connection")
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise SwitchAdminError(answer["error"])
        return answer
