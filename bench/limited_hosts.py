"""Network namespaces of ranks: a link of limited rate from each to the other nodes, and none of its ranks' own node."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LIMITED, UNLIMITED = "net", "node"
_SPACE: Final = "catchment-bench"
_BURST, _QUEUE = "16kb", "512kb"


@contextmanager
def limited_hosts(ranks: int, node_size: int, rate: int) -> Iterator[list[list[str]]]:
    """Namespaces, one for each rank, whose address is on the interface `LIMITED`.

    Ranks of a node reach each other by an interface of their own without a limit.

    Args:
        ranks: in all.
        node_size: ranks of a node, with consecutive numbers.
        rate: of each rank's link to other nodes, bits per second in each direction.

    Yields:
        What runs a command in the namespace of each rank.

    Raises:
        CalledProcessError: not root, or iproute2 refuses.
    """
    names = [f"{_SPACE}-{os.getpid()}-{rank}" for rank in range(ranks)]
    fabric = f"{_SPACE}-{os.getpid()}"
    try:
        for name in (fabric, *names):
            run_tool("ip", "netns", "add", name)
            run_tool("ip", "-n", name, "link", "set", "lo", "up")
            for key in ("all", "default"):
                run_tool("ip", "netns", "exec", name, "sysctl", "-q", "-w", f"net.ipv4.conf.{key}.rp_filter=0")
        add_bridge(fabric, LIMITED)
        for node in range(ranks // node_size):
            add_bridge(fabric, f"{UNLIMITED}{node}")
        for rank, name in enumerate(names):
            port = f"limited{rank}"
            add_cable(name, LIMITED, fabric, port, bridge=LIMITED)
            run_tool("ip", "-n", name, "address", "add", f"{_address(rank)}/24", "dev", LIMITED)
            for space, interface in ((name, LIMITED), (fabric, port)):
                limit_rate(space, interface, rate)
            add_cable(name, UNLIMITED, fabric, f"unlimited{rank}", bridge=f"{UNLIMITED}{rank // node_size}")
            first = rank - rank % node_size
            for other in range(first, first + node_size):
                if other != rank:
                    way = (f"{_address(other)}/32", "dev", UNLIMITED, "src", _address(rank))
                    run_tool("ip", "-n", name, "route", "add", *way)
        yield [["ip", "netns", "exec", name] for name in names]
    finally:
        for name in (fabric, *names):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def limit_rate(space: str, interface: str, rate: int) -> None:
    """Have what an interface of a namespace sends keep to a rate, in bits per second."""
    limit = ("rate", f"{rate // 1000}kbit", "burst", _BURST, "limit", _QUEUE)
    run_tool("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", interface, "root", "tbf", *limit)


def _address(rank: int) -> str:
    return f"10.77.0.{rank + 1}"


def add_bridge(space: str, name: str) -> None:
    """Add a bridge to a namespace."""
    run_tool("ip", "-n", space, "link", "add", name, "type", "bridge")
    run_tool("ip", "-n", space, "link", "set", name, "up")


def add_cable(host: str, interface: str, fabric: str, port: str, *, bridge: str) -> None:
    """Lay a cable from an interface of a host's namespace to a bridge's port in another one."""
    run_tool("ip", "-n", fabric, "link", "add", port, "type", "veth", "peer", "name", interface, "netns", host)
    run_tool("ip", "-n", fabric, "link", "set", port, "master", bridge, "up")
    run_tool("ip", "-n", host, "link", "set", interface, "up")


def run_tool(*command: str) -> None:
    """Run a tool.

    Raises:
        CalledProcessError: it refuses.
    """
    subprocess.run(command, check=True, capture_output=True, text=True)
