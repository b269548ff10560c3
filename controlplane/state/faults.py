"""Loss on purpose, in the switch; mirrors p4src/include/faults.p4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from catchment.controlplane.client import SwitchClient, SwitchError, TableEntry
from catchment.wire.generated.constants import PacketType

PLAIN = 0
"""`type` of traffic that is not ours."""
_TYPE_MASK = 0xF


class Direction(StrEnum):
    """The side of the switch's port on which packets are lost."""

    INGRESS = "ingress"
    EGRESS = "egress"


class PortFaults(Protocol):
    """Reaches the ports of switches on this machine, whose faults lie below their programs."""

    def read(self, address: str) -> dict[int, str]:
        """The faults in force of the switch with this gRPC address; none where it has no admin socket."""

    def write(self, address: str, faults: Mapping[int, str]) -> None:
        """Put faults of some ports in force; ControlPlaneError when it has no admin socket, or no such fault."""


def set_loss(
    client: SwitchClient,
    ports: Iterable[int],
    probability: float,
    *,
    types: Iterable[int] | None = None,
    directions: Iterable[Direction] = tuple(Direction),
) -> None:
    """Lose packets of the given ports at random; replaces what was set for them before.

    Args:
        client: of the switch.
        ports: which ports.
        probability: 0 (off) to 1.
        types: packet types (`PacketType`, PLAIN for others); every type of ours by default, so
            that ARP and TCP are spared.
        directions: on arrival, on departure, or both (each then loses with this probability).

    Raises:
        SwitchError: probability out of range, or the switch refuses.
    """
    if not 0.0 <= probability <= 1.0:
        raise SwitchError(f"{client.where}: a loss probability is between 0 and 1, not {probability}")
    threshold = min(round(probability * (1 << 32)), (1 << 32) - 1)
    chosen = list(PacketType if types is None else types)
    wanted = set(ports)
    for direction in directions:
        table = f"{direction}_faults"
        old = [e for e in client.read(table) if e.match["port"] in wanted and _type(e) in chosen]
        if old:
            client.delete(*old)
        if threshold:
            client.insert(
                *(
                    TableEntry(
                        table,
                        {"port": port, "type": f"{int(kind)}&&&{_TYPE_MASK:#x}"},
                        "maybe_drop",
                        {"threshold": threshold},
                        priority=10,
                    )
                    for port in sorted(wanted)
                    for kind in chosen
                )
            )


def losses(client: SwitchClient) -> list[tuple[str, int, str, float]]:
    """What is lost on purpose: direction, port, packet type by name, probability."""
    names = {int(kind): kind.name for kind in PacketType} | {PLAIN: "PLAIN"}
    return [
        (
            str(direction),
            int(entry.match["port"]),
            names.get(_type(entry), "any"),
            int(entry.params["threshold"]) / (1 << 32),
        )
        for direction in Direction
        for entry in client.read(f"{direction}_faults")
    ]


def clear_loss(client: SwitchClient) -> None:
    """Take every injected loss off a switch."""
    for direction in Direction:
        entries = client.read(f"{direction}_faults")
        if entries:
            client.delete(*entries)


def _type(entry: TableEntry) -> int:
    return int(str(entry.match.get("type", "0")).partition("&&&")[0], 0)
