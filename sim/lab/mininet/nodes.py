"""Our Mininet nodes: a switch that runs nothing itself, and links named after the network."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path
from typing import Any

from mininet.node import Switch as MininetSwitch

from catchment.controlplane.networks.state import NetworkError

# Importing Mininet makes every later logger of the process one of Mininet's, which says warnings only.
logging.setLoggerClass(logging.Logger)

_OFFLOADS = ("tx", "rx", "sg", "gso", "tso", "gro")
_MERGED_UDP = ("tx", "sg", "tx-udp-segmentation")


class SwitchNode(MininetSwitch):  # type: ignore[misc]
    """A switch whose ports are interfaces of the root namespace.

    The process that forwards is started after all links exist, by `MininetNetwork`: Mininet starts
    and stops its switches while links come and go, and ours would see dead interfaces.
    """

    def start(self, controllers: Any) -> None:
        """Nothing: see the class."""

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803  the name is Mininet's
        """Delete the interfaces."""
        super().stop(deleteIntfs)

    def connected(self) -> bool:
        """There is no OpenFlow controller to wait for."""
        return True


def merged_udp_command(interface: str, *, on: bool) -> list[str]:
    """What lets UDP leave an interface merged, its checksums unfinished, or ends that."""
    return ["ethtool", "-K", interface, *(part for f in _MERGED_UDP for part in (f, "on" if on else "off"))]


def prepare_switch_interface(name: str, mtu: int) -> None:
    """Make a root-namespace interface carry nothing but what the switch sends.

    Raises:
        NetworkError: a tool failed.
    """
    ipv6 = Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
    if ipv6.exists():
        ipv6.write_text("1", "ascii")
    run(["ip", "link", "set", name, "mtu", str(mtu), "up"])
    run(["ethtool", "-K", name, *(part for f in _OFFLOADS for part in (f, "off"))])


def run(command: list[str]) -> str:
    """Run a tool and return its output.

    Raises:
        NetworkError: it is missing or failed; quotes what it said.
    """
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NetworkError(f"{command[0]} is not installed; run `make setup`") from None
    if result.returncode:
        raise NetworkError(f"`{' '.join(command)}` failed: {(result.stderr or result.stdout).strip()}")
    return result.stdout


def host_commands() -> list[list[str]]:
    """What prepares a host, to be run in its namespace when its interfaces are there."""
    return [
        ["sh", "-c", "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e $f ] || echo 1 >$f; done"],
        ["ip", "link", "set", "lo", "up"],
    ]


def nic_commands(interface: str, address: str, mtu: int) -> list[list[str]]:
    """What prepares an interface of a host, to be run in its namespace."""
    return [
        ["ip", "link", "set", interface, "mtu", str(mtu), "up"],
        ["ethtool", "-K", interface, *(part for f in _OFFLOADS for part in (f, "off"))],
        ["ip", "addr", "add", address, "dev", interface],
    ]
