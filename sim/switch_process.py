"""A switch as a process: the embedded one or BMv2's, on given interfaces."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from controlplane.networks import NetworkError, state_folder
from controlplane.programs import cache_folder
from controlplane.topology import Target

_LOG_TAIL = 15


def free_address() -> str:
    """A loopback address whose port nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def embedded_command(address: str, device_id: int, ports: Mapping[int, str]) -> list[str]:
    """Command line of the embedded switch.

    Raises:
        NetworkError: it is not built.
    """
    binary = Path(__file__).parents[1] / "build" / "native" / "softswitch" / "server" / "catchment-switch"
    if not binary.is_file():
        raise NetworkError(f"{binary} does not exist; run `make native`")
    interfaces = [f"--port={port}={name}" for port, name in ports.items()]
    # The switch runs only code that is already on its machine; a client names it.
    programs = cache_folder()
    programs.mkdir(parents=True, exist_ok=True)
    return [
        str(binary), f"--grpc={address}", f"--device-id={device_id}", f"--program-dir={programs}", *interfaces
    ]  # fmt: skip


def bmv2_command(address: str, device_id: int, ports: Mapping[int, str]) -> list[str]:
    """Command line of BMv2, started without a program.

    Raises:
        NetworkError: it is not on the PATH.
    """
    binary = shutil.which("simple_switch_grpc")
    if binary is None:
        raise NetworkError("simple_switch_grpc is not on the PATH; see docs/bmv2.md, or use target: embedded")
    interfaces = [part for port, name in ports.items() for part in ("-i", f"{port}@{name}")]
    thrift = free_address().rpartition(":")[2]
    # Its default socket is named after the device id: two networks at once would share it.
    state_folder().mkdir(parents=True, exist_ok=True)
    notifications = state_folder() / f"bmv2-{address.rpartition(':')[2]}.ipc"
    return [
        binary, "--device-id", str(device_id), *interfaces, "--no-p4", "--thrift-port", thrift,
        "--notifications-addr", f"ipc://{notifications}",
        "--", "--grpc-server-addr", address,
    ]  # fmt: skip


COMMANDS = {Target.EMBEDDED: embedded_command, Target.BMV2: bmv2_command}


class SwitchProcess:
    """A running switch; `stop` ends it, `check` says whether it is alive.

    Args:
        name: the switch's name, for messages.
        command: what to run.
        address: where its P4Runtime server listens.
        log: file that takes its output.
        environment: of the process.
    """

    def __init__(
        self, name: str, command: list[str], *, address: str, log: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.address = address
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,  # Ctrl-C is for the owner, which then ends us in order
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def check(self) -> None:
        """Make sure that it runs.

        Raises:
            NetworkError: it ended; quotes the end of its log.
        """
        if not self.is_alive():
            raise NetworkError(f"switch {self.name} ended with code {self._process.returncode}:\n{self._tail()}")

    def wait_ready(self, timeout: float = 20.0) -> None:
        """Wait until the P4Runtime server accepts connections.

        Raises:
            NetworkError: it ended, or does not listen in time; quotes the end of its log.
        """
        host, _, port = self.address.rpartition(":")
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if not self.is_alive():
                raise NetworkError(
                    f"switch {self.name} ended with code {self._process.returncode} at its start:\n{self._tail()}"
                )
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1.0):
                return
            time.sleep(0.02)
        raise NetworkError(f"switch {self.name} does not listen on {self.address} after {timeout:g} s:\n{self._tail()}")

    def stop(self, grace: float = 5.0) -> None:
        """End it: politely, then by force."""
        if self.is_alive():
            self._process.terminate()
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def _tail(self) -> str:
        lines = self._log.read_text("utf-8", errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_LOG_TAIL:]) or f"  (empty log {self._log})"
