"""What an emulated network needs of the machine, asked before anything is built.

Mininet itself waits for ever for a shell that could not start.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from catchment.controlplane.networks.state import NetworkError

_TOOLS = ("mnexec", "ip", "ethtool", "sysctl")


class NoNamespacesError(NetworkError):
    """Whoever asks may not make network namespaces here."""


def check() -> None:
    """Make sure that namespaces can be made here.

    Raises:
        NoNamespacesError: not root, or the kernel refuses (an unprivileged container).
        NetworkError: a tool is missing.
    """
    if os.geteuid() != 0:
        raise NoNamespacesError("an emulated network needs root: run it with sudo")
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise NetworkError(f"not installed: {', '.join(missing)}; run `make setup`")
    probe = subprocess.run(["mnexec", "-n", "true"], capture_output=True, text=True, timeout=30, check=False)
    if probe.returncode != 0:
        said = probe.stderr.strip() or f"exit status {probe.returncode}"
        raise NoNamespacesError(
            f"this machine does not let root make network namespaces ({said}): run on the host itself, in a virtual "
            "machine, or in a privileged container"
        )
