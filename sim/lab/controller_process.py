"""A controller as a process of its own, for networks that a program makes.

usage: python -m catchment.sim.lab.controller_process FILE OWNER
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

from catchment.controlplane.controller import certificates
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.controller.run import run
from catchment.controlplane.controller.settings import Settings, Timing
from catchment.controlplane.networks.port_faults import SwitchPorts
from catchment.controlplane.topology import Topology
from catchment.softswitch.watched_process import WatchedProcess

_READY = "ready: "
_START_SECONDS = 240.0
_UP_SECONDS = 240.0
_POLL_SECONDS = 0.02


class ControllerProcess:
    """A context manager; `kill` and `start` make a crash and a restart.

    Args:
        topology: what it controls.
        addresses: gRPC address of every switch.
        folder: for its jobs, certificates, socket and log; short enough for a socket.
        timing: how soon it notices things.
        log: file that takes its output; one in the folder by default.

    Attributes:
        address: of its service: a socket, which is the same in every network namespace.
        certificates: folder with everybody's credentials.
    """

    def __init__(
        self,
        topology: Topology,
        addresses: Mapping[str, str],
        folder: Path,
        timing: Timing | None = None,
        *,
        log: Path | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.address = f"unix:{folder / 'controller.sock'}"
        self.certificates = folder / "certificates"
        self.log = log or folder / "controller.log"
        self._settings = folder / "settings"
        self._process: WatchedProcess | None = None
        certificates.make(self.certificates, topology.hosts)
        settings = Settings(
            topology, dict(addresses), folder, self.certificates, (self.address,), timing or Timing(), SwitchPorts()
        )
        self._settings.write_bytes(pickle.dumps(settings))

    def start(self) -> None:
        """Start it and wait until its service answers.

        Raises:
            ControllerError: it does not start; quotes its output.
        """
        self._process = WatchedProcess(
            [sys.executable, "-u", "-m", "catchment.sim.lab.controller_process", str(self._settings), str(os.getpid())],
            name="the controller",
            is_ready=lambda line: line.startswith(_READY),
            error=ControllerError,
            timeout=_START_SECONDS,
            log=self.log,
        )

    def kill(self) -> None:
        """End it at once, as a crash would."""
        assert self._process is not None
        self._process.kill()

    def stop(self) -> None:
        """End it in order; the switches and jobs stay as they are."""
        if self._process is not None:
            self._process.stop()

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._process is not None
        return self._process.pid

    def operator(self) -> OperatorClient:
        """A connection as an operator."""
        return OperatorClient(self.address, self.certificates)

    def wait_until_up(self, operator: OperatorClient, timeout: float = _UP_SECONDS) -> None:
        """Wait until every switch is as it should be.

        Raises:
            ControllerError: one is not in time; says why, and quotes the end of the log.
        """
        deadline = time.monotonic() + timeout
        while down := [switch.detail for switch in operator.switches() if switch.state != "up"]:
            if time.monotonic() > deadline:
                said = self.log.read_text("utf-8", errors="replace")[-2000:]
                raise ControllerError(f"after {timeout:g} s: {'; '.join(down)}; the controller said:\n{said}")
            time.sleep(_POLL_SECONDS)

    def __enter__(self) -> ControllerProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _end_with(owner: int) -> None:
    """A network that a program makes ends with that program, however it ends; nobody else would stop its controller."""
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(owner)], [], [])
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run a controller with the settings in a file that `ControllerProcess` wrote, until its owner's process ends."""
    Thread(target=_end_with, args=(int(sys.argv[2]),), name="the owner's end", daemon=True).start()
    settings: Settings = pickle.loads(Path(sys.argv[1]).read_bytes())
    run(settings, lambda addresses: print(_READY + " ".join(addresses), flush=True))


if __name__ == "__main__":
    main()
