"""Starts `catchment-switch`, waits until it serves, and ends it again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from catchment.checkout import NATIVE
from catchment.softswitch.watched_process import WatchedProcess
from catchment.wire.socket_folder import socket_folder

DEFAULT_EXECUTABLE = NATIVE / "softswitch" / "server" / "catchment-switch"


class SwitchProcessError(Exception):
    """The switch did not start, or ended on its own; quotes what it wrote."""


def is_ready_line(line: str) -> bool:
    """Whether this is the line with which the switch says that it serves."""
    return line.startswith('{"event": "ready"')


def command_line(
    *,
    ports: Mapping[int, str] | None = None,
    grpc: str,
    device_id: int = 1,
    program: Path | None = None,
    p4info: Path | None = None,
    program_dir: Path | None = None,
    cpu_port: int | None = None,
    executable: Path = DEFAULT_EXECUTABLE,
) -> list[str]:
    """The command that runs a switch which ends with this process; see SwitchProcess for the arguments.

    Raises:
        SwitchProcessError: it is not built.
    """
    if not executable.is_file():
        raise SwitchProcessError(f"{executable} does not exist: run `make native`")
    command = [str(executable), "--grpc", grpc, "--device-id", str(device_id), "--owner", str(os.getpid())]
    for number, interface in (ports or {}).items():
        command += ["--port", f"{number}={interface}"]
    options = {"--program": program, "--p4info": p4info, "--program-dir": program_dir, "--cpu-port": cpu_port}
    for option, value in options.items():
        if value is not None:
            command += [option, str(value)]
    return command


class SwitchProcess(WatchedProcess):
    """A running switch, from the moment it serves P4Runtime: `with SwitchProcess(ports={1: "veth0"}) as switch`.

    It ends with this process, however this one ends.

    Args:
        ports: network interface of each port number.
        grpc: where to listen: `unix:PATH` or `host:port` (port 0 picks a free one, `address` then tells which); a Unix
            socket in a folder of this user when left out, which goes with the switch.
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
        grpc: str | None = None,
        device_id: int = 1,
        program: Path | None = None,
        p4info: Path | None = None,
        program_dir: Path | None = None,
        cpu_port: int | None = None,
        extra: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
        executable: Path = DEFAULT_EXECUTABLE,
        timeout: float = 240.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        with ExitStack() as exits:
            self._exits = exits  # `stop` may be called before it is ready
            if grpc is None:
                grpc = f"unix:{exits.enter_context(socket_folder())}/p4runtime.sock"
            command = command_line(
                ports=ports, grpc=grpc, device_id=device_id, program=program, p4info=p4info,
                program_dir=program_dir, cpu_port=cpu_port, executable=executable,
            )  # fmt: skip
            super().__init__(
                [*prefix, *command, *extra],
                name="the switch",
                is_ready=is_ready_line,
                error=SwitchProcessError,
                timeout=timeout,
                environment=environment,
            )
            self._exits = exits.pop_all()
        self.address: str = json.loads(self.ready_line)["grpc"]
        self.device_id = device_id

    def stop(self, grace: float = 5.0) -> int:
        """End it, as `WatchedProcess.stop`, and remove the folder of its socket."""
        code = super().stop(grace)
        self._exits.close()
        return code
