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
    workers: 64             # optional: the most that a job may have on this switch, racks below it counted as one each
    grpc: auto              # or host:port, unix:PATH, tls:FOLDER@host:port (PATH, FOLDER: relative to this file)
    device_id: 1
hosts:
  w0: {ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1}
  w2:                       # on the switch's own machine: its port is memory, s1 runs with --port 3=shm:/run/s1/w2
    {ip: 10.0.0.3/24, mac: 02:00:00:00:00:03, link: s1:3, shm: /run/s1/w2}
  w3: {ip: 10.0.0.4/24, mac: 02:00:00:00:00:04, link: s1:4, rate: 400mbit}    # its port passes no more, each way
  w1:                       # several NICs: a list, each on another rail
    - {ip: 10.0.0.2/24, mac: 02:00:00:00:00:02, link: s1:2}
    - {ip: 10.1.0.2/24, mac: 02:00:00:01:00:02, link: s9:2}
links:                      # between switches
  - [s1:9, s2:1]
  - [s1:10, s2:2, 1gbit]    # no more than that, each way
racks:                      # optional: rack -> its switches; a switch in no rack is a spine
  left: [s1]
rails:                      # optional: rail -> its switches, planes without a link between them
  even: [s1, s2]
  odd: [s9]
rings:                      # optional: a rail whose members add up among themselves, over the NICs of another one
  tcp: {over: odd}          # and `transport: mptcp`; tcp unless given
```
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from catchment.controlplane.documents import DocumentError, Kind, Section, read
from catchment.controlplane.networks.address import UNIX, SwitchAddress
from catchment.controlplane.topology.errors import TopologyError
from catchment.controlplane.topology.model import AUTO_ADDRESS, BY_PORTS, Host, Link, PortRef, Ring, Switch, Target
from catchment.controlplane.topology.rate_text import bits_per_second
from catchment.wire.generated.constants import DEFAULT_LANES, MAX_WORKERS, SUPPORTED_LANES

MAX_PORT = 509
"""511 is the drop port of v1model, 510 the CPU port of the embedded switch."""
_POINT_TO_POINT = 31
"""Networks with so long a prefix, or a longer one, have neither an address of their own nor one for broadcast."""
_EVERYBODY = ipaddress.IPv4Address("255.255.255.255")
_SWITCH_NAME = re.compile(r"[a-z][a-z0-9]{0,3}")  # fits into an interface name
_HOST_NAME = re.compile(r"[a-z][a-z0-9-]{0,14}")
_GROUP_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,30}")  # of a rack or a rail
_TOPOLOGY_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,40}")
_KEYS = ("name", "mtu", "switches", "hosts", "links", "racks", "rails", "rings")
_SWITCH_KEYS = ("program", "ip", "mac", "target", "lanes", "slots", "workers", "grpc", "device_id", "tags")
TRANSPORTS = ("tcp", "mptcp")
"""What connections of a ring may be of."""
_KIND = Kind("topology", TopologyError)
_Fail = Callable[[str], DocumentError]
"""Makes the error of one place in the file."""


class Parts(NamedTuple):
    """What a topology file says."""

    name: str
    switches: dict[str, Switch]
    hosts: dict[str, Host]
    links: tuple[Link, ...]
    mtu: int
    racks: dict[str, tuple[str, ...]]
    rails: dict[str, tuple[str, ...]]
    rings: dict[str, Ring]


def read_topology(path: Path) -> Parts:
    """Read and check a topology file; see the module for its keys.

    Raises:
        TopologyError: with file and line of what is wrong.
    """
    root = Section.root(read(path, _KIND), "`switches` and `hosts`")
    root.finish(_KEYS)
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
        racks = self._groups("racks", "rack", switches)
        rails = self._groups("rails", "rail", switches)
        if rails:
            left_out = [name for name in switches if not any(name in members for members in rails.values())]
            if left_out:
                raise switches_section.error_at(left_out[0], "is in no rail; with `rails`, each switch is in one")
        rail_of = {name: rail for rail, names in rails.items() for name in names}
        hosts_section = root.section("hosts")
        hosts = {key: self._host(key, hosts_section, switches, rail_of) for key in hosts_section}
        links = tuple(self._links(switches, rail_of))
        return Parts(name, switches, hosts, links, mtu, racks, rails, self._rings(rails))

    def _rings(self, rails: Mapping[str, tuple[str, ...]]) -> dict[str, Ring]:
        if "rings" not in self._root:
            return {}
        sections = self._root.section("rings")
        found: dict[str, Ring] = {}
        for name in sections:
            if not _GROUP_NAME.fullmatch(name):
                raise sections.error_at(name, f"{name!r} cannot be the name of a ring: letters, digits, '-', '_', '.'")
            if name in rails:
                raise sections.error_at(name, f"there is a rail {name} already; rings and rails share names")
            section = sections.section(name)
            section.finish(("over", "transport"))
            over = section.text("over")
            if over not in rails:
                have = ", ".join(rails) or "none"
                raise section.error_at("over", f"no rail {over!r}, whose NICs the ring is to use; there are: {have}")
            found[name] = Ring(over, section.text("transport", TRANSPORTS[0], TRANSPORTS))
        return found

    def _links(self, switches: Mapping[str, Switch], rail_of: Mapping[str, str]) -> Iterator[Link]:
        for (first, second, *rate), node in self._root.lists(
            "links", 2, 3, "[switch:port, switch:port] or with a rate"
        ):
            fail = partial(self._root.error_in, node, "links")
            ends = self._port(first, switches, fail), self._port(second, switches, fail)
            link = Link(*ends, self._rate(rate[0], [switches[end.switch] for end in ends], fail) if rate else 0)
            if link.a.switch == link.b.switch:
                raise fail(f"[{link.a}, {link.b}] joins a switch to itself")
            rails = [rail_of.get(end.switch) for end in (link.a, link.b)]
            if rails[0] != rails[1]:
                raise fail(f"[{link.a}, {link.b}] joins rail {rails[0]} to rail {rails[1]}; rails share hosts only")
            yield link

    def _groups(self, key: str, kind: str, switches: Mapping[str, Switch]) -> dict[str, tuple[str, ...]]:
        """Racks or rails: name -> switches, no switch in two of them."""
        if key not in self._root:
            return {}
        section = self._root.section(key)
        found: dict[str, tuple[str, ...]] = {}
        owner: dict[str, str] = {}
        for name in section:
            if not _GROUP_NAME.fullmatch(name):
                raise section.error_at(name, f"{name!r} cannot be the name of a {kind}: letters, digits, '-', '_', '.'")
            for switch, node in section.names(name):
                if switch not in switches:
                    raise section.error_in(node, name, f"no switch {switch!r}; there are: {', '.join(switches)}")
                if switch in owner:
                    raise section.error_in(node, name, f"switch {switch} is already in {kind} {owner[switch]}")
                owner[switch] = name
            found[name] = tuple(switch for switch, _ in section.names(name))
        return found

    def _claim(self, what: str, owner: str, fail: _Fail) -> None:
        if what in self._taken:
            raise fail(f"{what} is already used by {self._taken[what]}")
        self._taken[what] = owner

    def _named(self, section: Section, name: str, pattern: re.Pattern[str]) -> None:
        if not pattern.fullmatch(name):
            raise section.error_at("", f"{name!r} cannot be a name here; it must match {pattern.pattern}")
        self._claim(f"the name {name}", "another node", partial(section.error_at, ""))

    def _switch(self, name: str, section: Section) -> Switch:
        self._named(section, name, _SWITCH_NAME)
        section.finish(_SWITCH_KEYS)
        text = section.text("ip")
        try:
            ip = ipaddress.IPv4Address(text)
        except ValueError:
            raise section.error_at("ip", f"{text} is not an IPv4 address (no prefix here)") from None
        _check_unicast(ip, section)
        mac = section.mac("mac")
        self._claim(f"address {ip}", name, partial(section.error_at, "ip"))
        self._claim(f"address {mac}", name, partial(section.error_at, "mac"))
        lanes = section.integer("lanes", DEFAULT_LANES, 1, 65535)
        if lanes not in SUPPORTED_LANES:
            raise section.error_at("lanes", f"{lanes} is not one of {_list(SUPPORTED_LANES)}")
        grpc = section.text("grpc", AUTO_ADDRESS)
        if grpc != AUTO_ADDRESS:
            grpc = self._address(grpc, section)
            self._claim(f"gRPC address {grpc}", name, partial(section.error_at, "grpc"))
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
            workers=section.integer("workers", 1, 1, MAX_WORKERS) if "workers" in section else BY_PORTS,
            grpc=grpc,
            device_id=section.integer("device_id", 1, 1, (1 << 63) - 1),
            tags=section.flag("tags"),
        )

    def _address(self, text: str, section: Section) -> str:
        address = SwitchAddress.parse(text)
        if address is None:
            raise section.error_at("grpc", f"{text} is neither `auto` nor host:port, unix:PATH or tls:FOLDER@host:port")
        if address.certificates is None:
            return text if address.socket_file is None else f"{UNIX}{self._folder.resolve() / address.socket_file}"
        if section.text("target", Target.EMBEDDED) == Target.BMV2:
            raise section.error_at("grpc", "BMv2 speaks no TLS; give it host:port on loopback")
        return str(replace(address, certificates=(self._folder / address.certificates).resolve()))

    def _host(self, name: str, hosts: Section, switches: Mapping[str, Switch], rail_of: Mapping[str, str]) -> Host:
        sections = hosts.sections(name)
        self._named(sections[0], name, _HOST_NAME)
        nics = [self._nic(name, section, switches) for section in sections]
        for at, (section, nic) in enumerate(zip(sections, nics, strict=True)):
            for earlier in nics[:at]:
                rail, other = (rail_of.get(each.link.switch) for each in (nic, earlier))
                if rail is None:
                    raise section.error_at("link", "a host with several NICs needs `rails`, to say which is in which")
                if rail == other:
                    raise section.error_at("link", f"{name} has a NIC in rail {rail} already, on {earlier.link}")
                if nic.ip.network.overlaps(earlier.ip.network):
                    raise section.error_at(
                        "ip", f"{nic.ip} is in the network of {name}'s NIC on {earlier.link}, {earlier.ip}"
                    )
        return replace(nics[0], others=tuple(nics[1:]))

    def _nic(self, name: str, section: Section, switches: Mapping[str, Switch]) -> Host:
        section.finish(("ip", "mac", "link", "shm", "rate"))
        ip, mac = section.interface("ip"), section.mac("mac")
        _check_unicast(ip.ip, section)
        if ip.network.prefixlen < _POINT_TO_POINT and ip.ip in (ip.network[0], ip.network[-1]):
            what = "the network itself" if ip.ip == ip.network[0] else "everybody in its network"
            raise section.error_at("ip", f"{ip} is the address of {what}, and no host's")
        self._claim(f"address {ip.ip}", name, partial(section.error_at, "ip"))
        self._claim(f"address {mac}", name, partial(section.error_at, "mac"))
        link = self._port(section.text("link"), switches, partial(section.error_at, "link"))
        switch = switches[link.switch]
        if switch.ip not in ip.network:
            raise section.error_at("ip", f"{ip} cannot reach its switch {switch.name} ({switch.ip}): other network")
        text = section.text("rate", "")
        rate = self._rate(text, [switch], partial(section.error_at, "rate")) if text else 0
        return Host(name, ip, mac, link, shm=self._shm(section, switch), rate=rate)

    def _rate(self, text: str, switches: Sequence[Switch], fail: _Fail) -> int:
        rate = bits_per_second(text)
        if rate is None:
            raise fail(f"{text} is not a rate from 1kbit to 400gbit with a unit (kbit, mbit, gbit)")
        for switch in switches:
            if switch.target is not Target.EMBEDDED:
                raise fail(f"{switch.name} is no embedded switch; others keep no port to a rate")
        return rate

    def _shm(self, section: Section, switch: Switch) -> str:
        path = section.text("shm", "")
        if not path:
            return ""
        fail = partial(section.error_at, "shm")
        if not path.startswith("/") or "," in path:
            raise fail(f"{path!r} is not the whole path of a socket (without a comma)")
        if switch.target is not Target.EMBEDDED:
            raise fail(f"{switch.name} is no embedded switch; others have no shared memory")
        self._claim(f"shared-memory port {path}", "another NIC", fail)
        return path

    def _port(self, text: str, switches: Mapping[str, Switch], fail: _Fail) -> PortRef:
        switch, _, port = text.partition(":")
        if not port.isdecimal():
            raise fail(f"{text} is not switch:port, as in s1:1")
        if switch not in switches:
            raise fail(f"no switch {switch!r}; there are: {', '.join(switches)}")
        if not 0 < int(port) <= MAX_PORT:
            raise fail(f"port {port} is not between 1 and {MAX_PORT}")
        ref = PortRef(switch, int(port))
        self._claim(f"port {ref}", "another link", fail)
        return ref


def _check_unicast(ip: ipaddress.IPv4Address, section: Section) -> None:
    if ip.is_multicast or ip.is_unspecified or ip == _EVERYBODY:
        raise section.error_at("ip", f"{ip} is no address that an interface can have")


def _list(values: tuple[int, ...]) -> str:
    return ", ".join(str(value) for value in values)
