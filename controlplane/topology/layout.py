"""Places each node of a picture: without racks a switch over what is below it, with racks one column a rack."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from catchment.controlplane.topology.model import PortRef
from catchment.controlplane.topology.network import Topology

HOST_WIDTH, HOST_HEIGHT = 92, 40
NIC_HEIGHT = 14
"""What each further NIC adds to a host's box."""
SWITCH_WIDTH, SWITCH_HEIGHT = 190, 52
MARGIN = 24
_GAP, _LEVEL = 14, 120
_FRAME = 16  # between a rack's frame and what is in it
_TITLE = 14


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around a rack: left, top, width, height."""

    name: str
    left: float
    top: float
    width: float
    height: float


@dataclass(slots=True)
class Layout:
    """Positions of everything in the picture.

    Attributes:
        places: name of a switch or host -> its middle.
        frames: of the racks.
    """

    places: dict[str, tuple[float, float]] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)


def lay_out(topology: Topology) -> Layout:
    """Place every switch and host."""
    return _in_racks(topology) if topology.racks else _Trees(topology).layout


def levels(topology: Topology) -> dict[str, int]:
    """Switch -> how far below the top it is.

    With racks the top are the spines that are farthest from a rack; without, the switch from which the farthest is
    nearest, of each island.
    """
    distances = {name: _distances(topology, [name]) for name in topology.switches}
    if topology.racks:
        up = _distances(topology, [switch for names in topology.racks.values() for switch in names])
        up |= {name: 1 for name in topology.switches if name not in up}
        found = {}
        for name in topology.switches:
            island = max(up[other] for other in distances[name])
            found[name] = island - up[name]
        return found
    found = {}
    for name in sorted(distances, key=lambda n: (-len(distances[n]), max(distances[n].values()), n)):
        if name not in found:  # the top of its own island
            found |= {other: d for other, d in distances[name].items() if other not in found}
    return found


def islands(topology: Topology) -> int:
    """How many groups of switches there are without a link between them."""
    seen: set[str] = set()
    count = 0
    for name in topology.switches:
        if name not in seen:
            seen |= _distances(topology, [name]).keys()
            count += 1
    return count


def _distances(topology: Topology, starts: Sequence[str]) -> dict[str, int]:
    found = dict.fromkeys(starts, 0)
    queue = deque(starts)
    while queue:
        here = queue.popleft()
        for peer in topology.ports(here).values():
            if isinstance(peer, PortRef) and peer.switch not in found:
                found[peer.switch] = found[here] + 1
                queue.append(peer.switch)
    return found


def _row(names: Sequence[str], width: int, left: float, right: float) -> dict[str, float]:
    """Boxes of one width side by side, in the middle between two edges."""
    whole = len(names) * (width + _GAP) - _GAP
    first = (left + right - whole + width) / 2
    return {name: first + at * (width + _GAP) for at, name in enumerate(names)}


def _in_racks(topology: Topology) -> Layout:
    """Spines in rows by level, their hosts above them, and below them the racks: switches over hosts, in a frame."""
    layout = Layout()
    depth = levels(topology)
    spines = [name for name in topology.switches if topology.rack_of(name) is None]
    homes = {host.name: topology.rack_of(host.link.switch) for host in topology.hosts.values()}
    above = [name for name, rack in homes.items() if rack is None]
    top = MARGIN + HOST_HEIGHT / 2
    bottom = max((depth[name] for name in spines), default=-1) + 1  # the level of the racks
    if above:
        top += _LEVEL
    y = top + bottom * _LEVEL
    nics = max(len(host.others) for host in topology.hosts.values()) if topology.hosts else 0
    left = float(MARGIN)
    for rack, switches in topology.racks.items():
        hosts = [name for name, home in homes.items() if home == rack]
        inside = max(len(switches) * (SWITCH_WIDTH + _GAP), len(hosts) * (HOST_WIDTH + _GAP)) - _GAP
        right = left + inside + 2 * _FRAME
        layout.places |= {n: (x, y) for n, x in _row(switches, SWITCH_WIDTH, left, right).items()}
        layout.places |= {n: (x, y + _LEVEL) for n, x in _row(hosts, HOST_WIDTH, left, right).items()}
        rim = y - SWITCH_HEIGHT / 2 - _FRAME - _TITLE
        floor = y + _LEVEL + (HOST_HEIGHT + NIC_HEIGHT * nics) / 2 + _FRAME
        layout.frames.append(Frame(rack, left, rim, right - left, floor - rim))
        left = right + _GAP
    rows = [
        (above, HOST_WIDTH, top - _LEVEL),
        *(([n for n in spines if depth[n] == level], SWITCH_WIDTH, top + level * _LEVEL) for level in range(bottom)),
    ]
    right = left - _GAP
    for names, width, height in rows:
        # Longer than the racks are wide: it begins at the margin and goes on to the right.
        spread = max(right, MARGIN + len(names) * (width + _GAP) - _GAP)
        layout.places |= {name: (x, height) for name, x in _row(names, width, MARGIN, spread).items()}
    return layout


class _Trees:
    """Hosts in a row below their switch, a switch over what is below it."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._levels = levels(topology)
        self._right = float(MARGIN)
        self.layout = Layout()
        for name, level in sorted(self._levels.items(), key=lambda item: item[1]):
            if name not in self.layout.places:
                self._place(name, level)

    def _place(self, name: str, level: int) -> float:
        """Place a switch and everything below it; returns its middle."""
        places = self.layout.places
        y = MARGIN + SWITCH_HEIGHT / 2 + level * _LEVEL
        places[name] = (0.0, y)  # noted, so that a ring ends
        middles = []
        for peer in self._topology.ports(name).values():
            if isinstance(peer, PortRef):
                if peer.switch not in places and self._levels[peer.switch] > level:
                    middles.append(self._place(peer.switch, self._levels[peer.switch]))
            elif peer.name not in places:
                middle = self._right + HOST_WIDTH / 2
                places[peer.name] = (middle, y + _LEVEL)
                self._right += HOST_WIDTH + _GAP
                middles.append(middle)
        x = (min(middles) + max(middles)) / 2 if middles else self._right + SWITCH_WIDTH / 2
        # Its box may be wider than what is below it.
        x = max(x, MARGIN + SWITCH_WIDTH / 2)
        self._right = max(self._right, x + SWITCH_WIDTH / 2 + _GAP)
        places[name] = (x, y)
        return x
