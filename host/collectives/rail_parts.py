"""The rails of a job: what a rank needs of each, and how a group of jobs names its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catchment.host.collectives.errors import wrong
from catchment.host.given_several import in_order
from catchment.host.transport.addresses import Address
from catchment.host.transport.stream import Stream
from catchment.wire.rail_labels import control_label, spare_label


@dataclass(frozen=True, slots=True)
class RailPart:
    """A part of the job that a rail carries.

    Attributes:
        stream: of the part.
        local: own address for it, port 0 for any; in a ring, where the rank before connects to.
        next: where the next rank of a ring listens for it; None over a switch.
    """

    stream: Stream
    local: Address
    next: Address | None = None


@dataclass(frozen=True, slots=True)
class Rail:
    """One of the networks between the ranks, as one of them sees it.

    Attributes:
        name: for messages; the same on all ranks.
        stream: of the job on this rail.
        local: own address there, as a `RailPart`'s.
        switch: the rail's switch; of a ring, where the next rank listens.
        announced: ``shm:PATH`` where the control plane says that the switch shares memory with this host.
        port: ``auto``, ``udp`` or ``shm:PATH``, as `Communicator`'s.
        rate: nominal, in bits per second; 0: unknown. The same on all ranks.
        switch_name: of the switch, for messages.
        control: on which the ranks agree about rails that fail.
        spares: rail -> what carries the operations of that rail over this one's switch while that rail is broken. With
            `control` on every rail, and on each a spare for every other, a rail may fail; else that ends the set.
        ring: ``tcp`` or ``mptcp`` where the ranks add up the vectors themselves, in a ring of such connections;
            empty: a switch does.
    """

    name: str
    stream: Stream
    local: Address
    switch: Address
    announced: str = ""
    port: str = "auto"
    rate: int = 0
    switch_name: str = ""
    control: RailPart | None = None
    spares: Mapping[str, RailPart] = field(default_factory=dict)
    ring: str = ""


def checked_rails(rails: Any) -> list[Rail]:
    """The rails that a caller gave, each of which is one in all its parts.

    Raises:
        CollectiveError: kind ``argument``.
    """
    several = in_order(rails)
    if several is None:
        raise wrong(f"rails {rails!r:.80}", "give several host.collectives.Rail objects")
    for rail in several:
        if not isinstance(rail, Rail) or not isinstance(rail.name, str):
            raise wrong(f"rail {rail!r}", "give host.collectives.Rail objects, each with a name")
        if not isinstance(rail.spares, Mapping):
            raise wrong(f"rail {rail.name}: spares {rail.spares!r:.80}", "give a RailPart for each other rail's name")
        for what, part in (
            ("control", rail.control),
            *((f"a spare for {name}", one) for name, one in rail.spares.items()),
        ):
            if not isinstance(part, RailPart | None):
                raise wrong(f"rail {rail.name}: {what} is {part!r:.80}", "give a RailPart, or None")
    return several


def chosen_rails(rails: Any) -> list[str]:
    """The names of the rails of a job that a caller chose; none: all of them.

    Raises:
        CollectiveError: kind ``argument``: these are no names in an order.
    """
    names = [] if rails is None else in_order(rails)
    if names is None or not all(isinstance(name, str) for name in names):
        raise wrong(f"rails {rails!r:.80}", "give the names of those to use, or nothing for all")
    return names


def names_rails(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The rails in what the control plane says to a member: each part whose label is its rail's name."""
    return [label for label, part in parts.items() if part.get("rail") == label]


def rails_of(parts: Mapping[str, Mapping[str, Any]]) -> list[Rail]:
    """What a rank needs of each of the rails that `parts` names."""
    carried = {
        label: RailPart(Stream(**part["sums"]), tuple(part["local"]), tuple(part["next"]) if part.get("ring") else None)
        for label, part in parts.items()
    }
    names = names_rails(parts)
    return [
        Rail(
            name=name,
            stream=carried[name].stream,
            local=carried[name].local,
            switch=carried[name].next or tuple(parts[name]["switch"]),
            announced=parts[name].get("port", ""),
            rate=parts[name].get("rate", 0),
            switch_name=parts[name].get("switch_name", ""),
            ring=parts[name].get("ring", ""),
            control=carried.get(control_label(name)),
            spares={other: carried[spare_label(name, other)] for other in names if spare_label(name, other) in carried},
        )
        for name in names
    ]
