"""The topology file: its keys, and what must hold between them.

```yaml
name: one-switch            # optional, the file's name when left out
mtu: 1500                   # optional
switches:
  s1:
    program: ../../p4src/luwu.p4    # relative to this file
    ip: 10.0.0.254
    mac: 02:00:00:00:fe:01
    target: embedded        # or bmv2
    lanes: 64
    slots: 1024
    grpc: auto              # or host:port
    device_id: 1
hosts:
  w0: {ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1}
links:                      # between switches
  - [s1:9, s2:1]
```
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import NamedTuple

from controlplane.topology.errors import TopologyError
from controlplane.topology.model import AUTO_ADDRESS, Host, Link, PortRef, Switch, Target
from controlplane.topology.reader import Section, compose
from wire.generated.constants import DEFAULT_LANES, SUPPORTED_LANES

MAX_PORT = 509
"""511 is the drop port of v1model, 510 the CPU port of the embedded switch."""
_SWITCH_NAME = re.compile(r"[a-z][a-z0-9]{0,3}")  # fits into an interface name
_HOST_NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")
_TOPOLOGY_SWITCH_NAME = re.compile(r"[a-z][a-z0-9]{0,3}")  # fits into an interface name
_HOST_NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")
_TOPOLOGY_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,40}")
_SWITCH_KEYS = ("program", "ip", "mac", "target", "lanes", "slots", "grpc", "device_id")


class Parts(NamedTuple):
    """What a topology file says."""

    name: str
    switches: dict[str, Switch]
    hosts: dict[str, Host]
    links: tuple[Link, ...]
    mtu: int


def read_topology(path: Path) -> Parts:
    """Read and check a topology file; see the module for its keys.

    Raises:
        TopologyError: with file and line of what is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TopologyError(f"cannot read topology {path}: {error.strerror}") from None
    root = compose(text, str(path))
    root.finish(("name", "mtu", "switches", "hosts", "links"))
    name = root.text("name", path.stem)
    if not _TOPOLOGY_NAME.fullmatch(name):
        raise root.error_at("name", f"{name!r} may hold letters, digits, '-', '_', '.' only")
    return _Builder(root, path.parent).parts(name)


class _Builder:
    """Reads the sections in order and remembers what is already taken."""

    def __init__(self, root: Section, folder: Path) -> None:
        self._root = root
        self._folder = folder
        self._taken: dict[str, str] = {}

    def parts(self, name: str) -> Parts:
        root = self._root
        mtu = root.integer("mtu", 1500, 576, 65535)
        switches_section = root.section("switches")
        switches = {key: self._switch(key, switches_section.section(key)) for key in switches_section}
        if not switches:
            raise root.error_at("switches", "at least one switch is needed")
        hosts_section = root.section("hosts")
        hosts = {key: self._host(key, hosts_section.section(key), switches) for key in hosts_section}
        links = tuple(
            Link(self._port(root, "links", a, switches), self._port(root, "links", b, switches))
            for a, b in root.pairs("links")
        )
        for link in links:
            if link.a.switch == link.b.switch:
                raise root.error_at("links", f"[{link.a}, {link.b}] joins a switch to itself")
        return Parts(name, switches, hosts, links, mtu)

    def _claim(self, section: Section, key: str, what: str, owner: str) -> None:
        if what in self._taken:
            raise section.error_at(key, f"{what} is already used by {self._taken[what]}")
        self._taken[what] = owner

    def _named(self, section: Section, name: str, pattern: re.Pattern[str]) -> None:
        if not pattern.fullmatch(name):
            raise section.error_at("", f"{name!r} cannot be a name here; it must match {pattern.pattern}")
        self._claim(section, "", f"the name {name}", "another node")

    def _switch(self, name: str, section: Section) -> Switch:
        self._named(section, name, _SWITCH_NAME)
        section.finish(_SWITCH_KEYS)
        text = section.text("ip")
        try:
            ip = ipaddress.IPv4Address(text)
        except ValueError:
            raise section.error_at("ip", f"{text} is not an IPv4 address (no prefix here)") from None
        mac = section.mac("mac")
        self._claim(section, "ip", f"address {ip}", name)
        self._claim(section, "mac", f"address {mac}", name)
        lanes = section.integer("lanes", DEFAULT_LANES, 1, 65535)
        if lanes not in SUPPORTED_LANES:
            raise section.error_at("lanes", f"{lanes} is not one of {_list(SUPPORTED_LANES)}")
        grpc = section.text("grpc", AUTO_ADDRESS)
        if grpc != AUTO_ADDRESS:
            host, _, port = grpc.rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65536:
                raise section.error_at("grpc", f"{grpc} is neither `auto` nor host:port")
            self._claim(section, "grpc", f"gRPC address {grpc}", name)
        slots = section.integer("slots", 1024, 1, 1 << 20)
        if slots & (slots - 1):
            raise section.error_at("slots", f"{slots} is not a power of two")
        return Switch(
            name=name,
            program=(self._folder / section.text("program")).resolve(),
            ip=ip,
            mac=mac,
            target=Target(section.text("target", Target.EMBEDDED, tuple(Target))),
            lanes=lanes,
            slots=slots,
            grpc=grpc,
            device_id=section.integer("device_id", 1, 1, (1 << 63) - 1),
        )

    def _host(self, name: str, section: Section, switches: dict[str, Switch]) -> Host:
        self._named(section, name, _HOST_NAME)
        section.finish(("ip", "mac", "link"))
        ip, mac = section.interface("ip"), section.mac("mac")
        self._claim(section, "ip", f"address {ip.ip}", name)
        self._claim(section, "mac", f"address {mac}", name)
        link = self._port(section, "link", section.text("link"), switches)
        switch = switches[link.switch]
        if switch.ip not in ip.network:
            raise section.error_at("ip", f"{ip} cannot reach its switch {switch.name} ({switch.ip}): other network")
        return Host(name, ip, mac, link)

    def _port(self, section: Section, key: str, text: str, switches: dict[str, Switch]) -> PortRef:
        switch, _, port = text.partition(":")
        if not port.isdecimal():
            raise section.error_at(key, f"{text} is not switch:port, as in s1:1")
        if switch not in switches:
            raise section.error_at(key, f"no switch {switch!r}; there are: {', '.join(switches)}")
        if not 0 < int(port) <= MAX_PORT:
            raise section.error_at(key, f"port {port} is not between 1 and {MAX_PORT}")
        ref = PortRef(switch, int(port))
        self._claim(section, key, f"port {ref}", "another link")
        return ref


def _list(values: tuple[int, ...]) -> str:
    return ", ".join(str(value) for value in values)
