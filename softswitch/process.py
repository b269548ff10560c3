"""Starts `catchment-switch`, waits until it serves, and ends it again."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import IO

DEFAULT_EXECUTABLE = Path(__file__).parents[1] / "build" / "native" / "softswitch" / "server" / "catchment-switch"
_STDERR_LINES = 200


class SwitchProcessError(Exception):
    """The switch did not start, or ended on its own; quotes what it wrote on stderr."""


class SwitchProcess:
    """A running switch, from the moment it serves P4Runtime: `with SwitchProcess(ports={1: "veth0"}) as switch`.

    Args:
        ports: network interface of each port number.
        grpc: where to listen; port 0 picks a free one, `address` then tells which.
        device_id: P4Runtime device id.
        program: compiled program (shared object) to run from the start; needs `p4info`.
        p4info: P4Info of `program`, protobuf text.
        program_dir: folder of compiled programs that clients may load.
        cpu_port: port number whose frames become packet-ins.
        extra: more command-line arguments.
        prefix: command put in front, such as one that enters a network namespace.
        executable: the switch to run.
        timeout: seconds to wait for it to serve.
        environment: of the process; this one's when left out.

    Raises:
        SwitchProcessError: it is not built, ended, or does not serve in time.
    """

    def __init__(
        self,
        *,
        ports: Mapping[int, str] | None = None,
        grpc: str = "127.0.0.1:0",
        device_id: int = 1,
        program: Path | None = None,
        p4info: Path | None = None,
        program_dir: Path | None = None,
        cpu_port: int | None = None,
        extra: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
        executable: Path = DEFAULT_EXECUTABLE,
        timeout: float = 20.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if not executable.is_file():
            raise SwitchProcessError(f"{executable} does not exist: run `make native`")
        command = [*prefix, str(executable), "--grpc", grpc, "--device-id", str(device_id)]
        for number, interface in (ports or {}).items():
            command += ["--port", f"{number}={interface}"]
        options = {"--program": program, "--p4info": p4info, "--program-dir": program_dir, "--cpu-port": cpu_port}
        for option, value in options.items():
            if value is not None:
                command += [option, str(value)]
        self._process = subprocess.Popen(
            [*command, *extra],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if environment is None else dict(environment),
            start_new_session=True,  # Ctrl-C is for the owner, which then ends us in order
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdout: IO[bytes] = self._process.stdout
        self._stderr: IO[bytes] = self._process.stderr
        self._lines: deque[str] = deque(maxlen=_STDERR_LINES)
        self._reader = Thread(target=self._read_stderr, daemon=True)
        self._reader.start()
        try:
            ready = self._wait_ready(timeout)
        except BaseException:
            self.stop()
            raise
        self.address: str = ready["grpc"]
        self.device_id = device_id

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """The last lines it wrote on stderr."""
        return "\n".join(self._lines)

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def check(self) -> None:
        """Make sure that it runs.

        Raises:
            SwitchProcessError: it ended.
        """
        if not self.is_alive():
            self._reader.join(1.0)
            raise SwitchProcessError(f"the switch ended with code {self._process.returncode}:\n{self.stderr}")

    def stop(self, timeout: float = 5.0) -> int:
        """End it (SIGTERM, after `timeout` seconds SIGKILL) and return its exit code; again: the same code."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(1.0)
        self._stdout.close()
        return self._process.returncode

    def __enter__(self) -> SwitchProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _read_stderr(self) -> None:
        with self._stderr:
            for line in self._stderr:
                self._lines.append(line.decode(errors="replace").rstrip("\n"))

    def _wait_ready(self, timeout: float) -> dict[str, str]:
        deadline = time.monotonic() + timeout
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise SwitchProcessError(f"the switch does not serve after {timeout} s:\n{self.stderr}")
                part = os.read(self._stdout.fileno(), 4096)
                if not part:
                    self._process.wait()
                    self.check()
                line += part
        ready: dict[str, str] = json.loads(line)
        return ready
