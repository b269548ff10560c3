"""Network namespaces of ranks with a NIC on each of several rails of limited rate, over which MPTCP spreads."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.limited_hosts import add_bridge, add_cable, limit_rate, run_tool

_SPACE: Final = "catchment-mptcp"
_SWITCHED_ON: Final = Path("/proc/sys/net/mptcp/enabled")


def missing() -> str:
    """Why this machine cannot do it; empty where it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not _SWITCHED_ON.exists() or _SWITCHED_ON.read_text().strip() != "1":
        return "this kernel has no MPTCP, or it is switched off (net.mptcp.enabled)"
    if subprocess.run(["ip", "mptcp", "limits", "show"], check=False, capture_output=True).returncode != 0:
        return "iproute2 has no `ip mptcp`"
    return ""


@contextmanager
def mptcp_hosts(ranks: int, rates: Sequence[int]) -> Iterator[list[list[str]]]:
    """Namespaces, one for each rank, with a NIC on each rail; connections to the first one spread over all.

    Args:
        ranks: in all.
        rates: of each rail's NICs, bits per second in each direction.

    Yields:
        What runs a command in the namespace of each rank.

    Raises:
        CalledProcessError: iproute2 refuses.
    """
    names = [f"{_SPACE}-{os.getpid()}-{rank}" for rank in range(ranks)]
    fabric = f"{_SPACE}-{os.getpid()}"
    try:
        for name in (fabric, *names):
            run_tool("ip", "netns", "add", name)
            run_tool("ip", "-n", name, "link", "set", "lo", "up")
        for rail in range(len(rates)):
            add_bridge(fabric, f"rail{rail}")
        for rank, name in enumerate(names):
            beyond = str(len(rates) - 1)
            run_tool("ip", "-n", name, "mptcp", "limits", "set", "subflows", beyond, "add_addr_accepted", beyond)
            for rail, rate in enumerate(rates):
                nic, port = f"nic{rail}", f"port{rail}x{rank}"
                add_cable(name, nic, fabric, port, bridge=f"rail{rail}")
                run_tool("ip", "-n", name, "address", "add", f"{address(rank, rail)}/24", "dev", nic)
                limit_rate(name, nic, rate)
                limit_rate(fabric, port, rate)
                if rail:  # the rank that accepts a connection says that it has this address, too
                    run_tool("ip", "-n", name, "mptcp", "endpoint", "add", address(rank, rail), "dev", nic, "signal")
        yield [["ip", "netns", "exec", name] for name in names]
    finally:
        for name in (fabric, *names):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def address(rank: int, rail: int) -> str:
    """A rank's address on a rail."""
    return f"10.78.{rail}.{rank + 1}"
