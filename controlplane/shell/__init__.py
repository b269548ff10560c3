"""The interactive p4runtime-shell, in an environment of its own: it pins a protobuf that nothing else can use."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from catchment.checkout import SHELL
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.client.channel import parse
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.networks.address import SwitchAddress

_SESSION = Path(__file__).with_name("session.py")


def python() -> Path:
    """The interpreter that has p4runtime-shell.

    Raises:
        ControlPlaneError: its environment is missing.
    """
    found = SHELL / "bin" / "python"
    if not found.exists():
        raise ControlPlaneError(f"p4runtime-shell is not installed: there is no {found}; run `make setup`")
    return found


def run(address: str, device_id: int) -> int:
    """Run the shell until the user leaves it; returns its exit code.

    Args:
        address: the switch's gRPC address, as `SwitchClient.connect` takes it.
        device_id: its P4Runtime device id.

    Raises:
        ControlPlaneError: p4runtime-shell's environment is missing, or the switch does not answer.
    """
    with SwitchClient.connect(address, device_id) as client:  # the shell knows no other ids, and cannot bid again
        high, low = client.next_election_id
    parts = parse(address)
    command = [
        str(python()), "-P", str(_SESSION), "--grpc-addr", parts.target, "--device-id", str(device_id),
        "--election-id", f"{high},{low}", *_tls_options(parts),
    ]  # fmt: skip
    surroundings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    with subprocess.Popen(command, env=surroundings) as shell:
        while True:
            try:
                return shell.wait()
            except KeyboardInterrupt:  # Ctrl-C is for the shell, which shares our terminal
                continue


def _tls_options(address: SwitchAddress) -> list[str]:
    files = address.files()
    if files is None:
        return []
    authority, certificate, key = map(str, files)
    return ["--ssl", "--cacert", authority, "--cert", certificate, "--private-key", key]
