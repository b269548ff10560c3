"""A place at a switch of this machine that the first rank starts for the group (sim/lab/local_switch.py)."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, final

from catchment.checkout import ROOT
from catchment.host.collectives import CollectiveError, Communicator, Scaling
from catchment.host.torch.distributed.seat import Loss

SERVICE: Final = "catchment.sim.lab.local_switch"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_QUOTED = 2000


def machine() -> str:
    """What tells machines apart."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


def start(ranks: int) -> str:
    """Start a switch for so many ranks and give the path of its socket; it ends with the last rank's process.

    Compiles the switch program first, if nobody has yet.

    Raises:
        CollectiveError: kind ``system``: it does not start; quotes what it said.
    """
    log = tempfile.TemporaryFile()  # noqa: SIM115  the switch keeps it
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    # It has no use for torch's or the launcher's variables, and must outlive whoever dies of Ctrl-C.
    process = subprocess.Popen(
        [sys.executable, "-m", SERVICE, "--ranks", str(ranks)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        cwd="/",
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout as output:
        line = output.readline()
    if not line:
        raise _unavailable(f"the switch for {ranks} ranks does not start", _said(process, log))
    threading.Thread(target=process.wait, name="end of the switch", daemon=True).start()
    return str(json.loads(line)["socket"])


def _said(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    code = process.wait()
    log.seek(0)
    return f"code {code}: {log.read()[-_QUOTED:].decode(errors='replace').strip() or 'it wrote nothing'}"


@final
class LocalSeat:
    """A rank's place at the switch that listens on `path`.

    Raises:
        CollectiveError: kind ``system``: it does not answer, or refuses.
    """

    def __init__(self, path: str, rank: int) -> None:
        self.name = "torch"
        self.address = None
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._connection.connect(path)
            self._send({"rank": rank})
            self._messages = self._connection.makefile("rb")
            told = self._next()
        except OSError as error:
            self._connection.close()
            raise _unavailable(f"the switch of this group at {path} does not answer", str(error)) from None
        if told is None or "member" not in told:
            self._connection.close()
            raise _unavailable(f"the switch of this group refuses rank {rank}", str((told or {}).get("refused")))
        self._member: dict[str, Any] = told["member"]
        self._left = threading.Event()

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`."""
        told = dict(self._member)
        return Communicator.of_job(told, port=told.pop("port"), timeout=timeout, scaling=scaling)

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `Seat`."""
        threading.Thread(target=self._listen, args=(lost,), name="catchment-peers", daemon=True).start()

    def leave(self) -> None:
        """See `Seat`."""
        if not self._left.is_set():
            self._left.set()
            with contextlib.suppress(OSError):
                self._send({"goodbye": True})
                self._connection.shutdown(socket.SHUT_RDWR)
            self._connection.close()

    def _listen(self, lost: Callable[[Loss], None]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (told := self._next()) is not None:
                rank = int(told["lost"])
                lost(Loss(f"the process of rank {rank} has ended", (rank,)))
        if not self._left.is_set():
            lost(Loss("the switch of this group has ended"))

    def _send(self, message: dict[str, Any]) -> None:
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def _next(self) -> dict[str, Any] | None:
        line = self._messages.readline()
        return json.loads(line) if line else None


def _unavailable(message: str, hint: str) -> CollectiveError:
    return CollectiveError(message, kind="system", hint=hint)
