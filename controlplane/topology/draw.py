"""A topology as a picture: SVG, one row a level of switches, racks in frames, each rail in a colour of its own."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from catchment.controlplane.topology.layout import (
    HOST_HEIGHT,
    HOST_WIDTH,
    MARGIN,
    NIC_HEIGHT,
    SWITCH_HEIGHT,
    SWITCH_WIDTH,
    Frame,
    lay_out,
)
from catchment.controlplane.topology.model import Host, Switch
from catchment.controlplane.topology.network import Topology
from catchment.svg import document

_NO_RAIL = "#555"
_COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b7791f", "#16858d", "#a1346c", "#5d6d1e")
_LEGEND = 18
_STYLE = (
    "text{font:11px sans-serif;text-anchor:middle;fill:#222}.name{font-weight:bold;font-size:13px}"
    ".port{font-size:9px;fill:#666}.switch{fill:#dbe9f6;stroke:#3b6ea5}.host{fill:#f5f0e1;stroke:#a08b4f}"
    ".rack{fill:#f7f7f7;stroke:#999;stroke-dasharray:5 3}.label{text-anchor:start;fill:#555;font-weight:bold}"
    "line{stroke-width:1.5}"
)
_Point = tuple[float, float]


def draw(topology: Topology) -> str:
    """The picture as an SVG document."""
    layout = lay_out(topology)
    places = layout.places
    right = [x + SWITCH_WIDTH / 2 for x, _ in places.values()] + [f.left + f.width for f in layout.frames]
    bottom = [y + SWITCH_HEIGHT / 2 for _, y in places.values()] + [f.top + f.height for f in layout.frames]
    width, height = max(right) + MARGIN, max(bottom) + MARGIN
    colours = {rail: _COLOURS[at % len(_COLOURS)] for at, rail in enumerate(topology.rails)}
    legend = _legend(colours, height)
    height += len(legend) * _LEGEND

    def cable(near: str, far: str, ports: tuple[int, int | None]) -> str:
        rail = topology.rail_of(near)
        return _link(places[near], places[far], ports, _NO_RAIL if rail is None else colours[rail])

    parts = [_frame(frame) for frame in layout.frames]
    parts += [cable(link.a.switch, link.b.switch, (link.a.port, link.b.port)) for link in topology.links]
    parts += [cable(nic.link.switch, nic.name, (nic.link.port, None)) for nic in topology.nics()]
    parts += [_switch(switch, places[switch.name]) for switch in topology.switches.values()]
    parts += [_host(host, places[host.name]) for host in topology.hosts.values()]
    return document(topology.name, width, height, _STYLE, [*parts, *legend])


def _legend(colours: Mapping[str, str], top: float) -> list[str]:
    """Which colour is which rail: a row each."""
    rows = []
    for at, (rail, colour) in enumerate(colours.items()):
        y = top + at * _LEGEND
        rows.append(
            f'<rect x="{MARGIN}" y="{y - 3:.0f}" width="30" height="4" fill="{colour}"/>'
            f'<text class="label" x="{MARGIN + 38}" y="{y + 4:.0f}">rail {escape(rail)}</text>'
        )
    return rows


def _frame(frame: Frame) -> str:
    return (
        f'<rect class="rack" x="{frame.left:.0f}" y="{frame.top:.0f}" width="{frame.width:.0f}" '
        f'height="{frame.height:.0f}" rx="8"/>'
        f'<text class="label" x="{frame.left + 8:.0f}" y="{frame.top + 14:.0f}">{escape(frame.name)}</text>'
    )


def _link(a: _Point, b: _Point, ports: tuple[int, int | None], colour: str) -> str:
    (ax, ay), (bx, by) = a, b
    text = f'<line x1="{ax:.0f}" y1="{ay:.0f}" x2="{bx:.0f}" y2="{by:.0f}" stroke="{colour}"/>'
    for port, near, far in ((ports[0], a, b), (ports[1], b, a)):
        if port is not None:
            x, y = near[0] + (far[0] - near[0]) * 0.36, near[1] + (far[1] - near[1]) * 0.36
            text += f'<text class="port" x="{x + 8:.0f}" y="{y:.0f}">{port}</text>'
    return text


def _box(kind: str, middle: _Point, size: tuple[int, int], lines: list[str]) -> str:
    (width, height), left, top = size, middle[0] - size[0] / 2, middle[1] - size[1] / 2
    text = f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{width}" height="{height}" rx="5"/>'
    for number, line in enumerate(lines):
        bold = ' class="name"' if number == 0 else ""
        text += f'<text{bold} x="{middle[0]:.0f}" y="{top + 16 + 14 * number:.0f}">{escape(line)}</text>'
    return text


def _switch(switch: Switch, middle: _Point) -> str:
    lines = [switch.name, str(switch.ip), f"{switch.target}, {switch.lanes} lanes, {switch.slots} slots"]
    return _box("switch", middle, (SWITCH_WIDTH, SWITCH_HEIGHT), lines)


def _host(host: Host, middle: _Point) -> str:
    lines = [host.name, *(str(nic.ip) for nic in host.nics)]
    return _box("host", middle, (HOST_WIDTH, HOST_HEIGHT + NIC_HEIGHT * (len(host.nics) - 1)), lines)
