"""A topology as a picture: SVG, one row a level of switches, hosts below their switch."""

from __future__ import annotations

from collections import deque
from html import escape

from controlplane.topology.model import Host, PortRef, Switch
from controlplane.topology.network import Topology

_HOST_WIDTH, _HOST_HEIGHT = 92, 40
_SWITCH_WIDTH, _SWITCH_HEIGHT = 150, 52
_GAP, _LEVEL = 14, 120
_MARGIN = 24
_STYLE = (
    "text{font:11px sans-serif;text-anchor:middle;fill:#222}.name{font-weight:bold;font-size:13px}"
    ".port{font-size:9px;fill:#666}.switch{fill:#dbe9f6;stroke:#3b6ea5}.host{fill:#f5f0e1;stroke:#a08b4f}"
    "line{stroke:#555;stroke-width:1.5}"
)


def draw(topology: Topology) -> str:
    """The picture as an SVG document."""
    places = _Layout(topology).places
    width = max(x for x, _ in places.values()) + _SWITCH_WIDTH / 2 + _MARGIN
    height = max(y for _, y in places.values()) + _SWITCH_HEIGHT / 2 + _MARGIN + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escape(topology.name)}</title><style>{_STYLE}</style>",
    ]
    parts += [_link(places[n.a.switch], places[n.b.switch], n.a.port, n.b.port) for n in topology.links]
    parts += [_link(places[h.link.switch], places[h.name], h.link.port, None) for h in topology.hosts.values()]
    parts += [_switch(switch, places[switch.name]) for switch in topology.switches.values()]
    parts += [_host(host, places[host.name]) for host in topology.hosts.values()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def levels(topology: Topology) -> dict[str, int]:
    """Switch -> how far below the top it is; the top is the switch from which the farthest is nearest."""
    distances = {name: _distances(topology, name) for name in topology.switches}
    found: dict[str, int] = {}
    for name in sorted(distances, key=lambda n: (-len(distances[n]), max(distances[n].values()), n)):
        if name not in found:  # the top of its own island
            found |= {other: d for other, d in distances[name].items() if other not in found}
    return found


def _distances(topology: Topology, start: str) -> dict[str, int]:
    found = {start: 0}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for peer in topology.ports(here).values():
            if isinstance(peer, PortRef) and peer.switch not in found:
                found[peer.switch] = found[here] + 1
                queue.append(peer.switch)
    return found


class _Layout:
    """Where each node's middle is: hosts in a row below their switch, a switch over what is below it."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._levels = levels(topology)
        self._right = float(_MARGIN)
        self.places: dict[str, tuple[float, float]] = {}
        for name, level in sorted(self._levels.items(), key=lambda item: item[1]):
            if name not in self.places:
                self._place(name, level)

    def _place(self, name: str, level: int) -> float:
        """Place a switch and everything below it; returns its middle."""
        y = _MARGIN + _SWITCH_HEIGHT / 2 + level * _LEVEL
        self.places[name] = (0.0, y)  # noted, so that a ring ends
        middles = []
        for peer in self._topology.ports(name).values():
            if isinstance(peer, PortRef):
                if peer.switch not in self.places and self._levels[peer.switch] > level:
                    middles.append(self._place(peer.switch, self._levels[peer.switch]))
            else:
                middle = self._right + _HOST_WIDTH / 2
                self.places[peer.name] = (middle, y + _LEVEL)
                self._right += _HOST_WIDTH + _GAP
                middles.append(middle)
        x = (min(middles) + max(middles)) / 2 if middles else self._right + _SWITCH_WIDTH / 2
        # Its box may be wider than what is below it.
        x = max(x, _MARGIN + _SWITCH_WIDTH / 2)
        self._right = max(self._right, x + _SWITCH_WIDTH / 2 + _GAP)
        self.places[name] = (x, y)
        return x


def _link(a: tuple[float, float], b: tuple[float, float], port_a: int, port_b: int | None) -> str:
    (ax, ay), (bx, by) = a, b
    text = f'<line x1="{ax:.0f}" y1="{ay:.0f}" x2="{bx:.0f}" y2="{by:.0f}"/>'
    for port, near, far in ((port_a, a, b), (port_b, b, a)):
        if port is not None:
            x, y = near[0] + (far[0] - near[0]) * 0.36, near[1] + (far[1] - near[1]) * 0.36
            text += f'<text class="port" x="{x + 8:.0f}" y="{y:.0f}">{port}</text>'
    return text


def _box(kind: str, middle: tuple[float, float], size: tuple[int, int], lines: list[str]) -> str:
    (width, height), left, top = size, middle[0] - size[0] / 2, middle[1] - size[1] / 2
    text = f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{width}" height="{height}" rx="5"/>'
    for number, line in enumerate(lines):
        bold = ' class="name"' if number == 0 else ""
        text += f'<text{bold} x="{middle[0]:.0f}" y="{top + 16 + 14 * number:.0f}">{escape(line)}</text>'
    return text


def _switch(switch: Switch, middle: tuple[float, float]) -> str:
    lines = [switch.name, str(switch.ip), f"{switch.target}, {switch.lanes} lanes, {switch.slots} slots"]
    return _box("switch", middle, (_SWITCH_WIDTH, _SWITCH_HEIGHT), lines)


def _host(host: Host, middle: tuple[float, float]) -> str:
    return _box("host", middle, (_HOST_WIDTH, _HOST_HEIGHT), [host.name, str(host.ip)])
