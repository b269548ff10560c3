"""Names that tell what belongs to which emulated network, so that leftovers can be found."""

from __future__ import annotations

import zlib

ENVIRONMENT_MARK = "CATCHMENT_NETWORK"
"""Environment variable that every process of a network carries; its value is the network's name."""

_TAG = "ct"


def host_interface(nic: int) -> str:
    """A host's own name for its NIC number `nic`, in its namespace."""
    return f"eth{nic}"


def interface_prefix(network: str) -> str:
    """What the switch-side interface names of one network begin with (7 characters)."""
    return f"{_TAG}{zlib.crc32(network.encode()) & 0xFFFF:04x}-"


def interface_name(network: str, switch: str, port: int) -> str:
    """Switch-side interface of a port, at most 15 characters: ``ct1a2b-s1-3``."""
    return f"{interface_prefix(network)}{switch}-{port}"
