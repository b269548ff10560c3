"""Hosts and switch models on lines that lose, duplicate and reorder, driven by one seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from faulty_lines import HOP, line_faults, some_line_faults
from frame_builder import SWITCH_IP, SWITCH_MAC, host_ip, host_mac, job_frame
from protocol_endpoints import Consumer, Sender

from catchment.sim.golden.switch_frames import PAYLOAD_OFFSET, arp_target, ipv4
from catchment.sim.golden.switch_model import SwitchModel
from catchment.sim.golden.switch_tables import Receiver
from catchment.sim.world import Faults, Line, World
from catchment.wire.generated.constants import HEADER_OFFSET, UDP_PORT, Header, PacketType

CALM = line_faults()


@dataclass(frozen=True, slots=True)
class Trouble:
    """The faults of all lines, and the probability that a switch forgets everything, every twenty hops."""

    faults: Faults = CALM
    restart: float = 0.0

    @staticmethod
    def random(rng: random.Random) -> Trouble:
        return Trouble(some_line_faults(rng), rng.choice([0, 0, 0.01]))


@dataclass(slots=True)
class Host:
    """What runs on one switch port."""

    sender: Sender | None = None
    consumer: Consumer | None = None
    drain_limit: int = 99
    beats: bool = True
    wants: tuple[PacketType, ...] = ()
    received: list[Header] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return (self.sender is None or self.sender.done) and (self.consumer is None or self.consumer.done)


def default_switch(lanes: int) -> SwitchModel:
    return SwitchModel(lanes=lanes, slots=64, jobs=4)


class Network:
    """Switches by name; a port of a switch leads to a host or to a port of another switch."""

    def __init__(
        self,
        rng: random.Random,
        trouble: Trouble,
        limit: float = 200_000,
        make_switch: Callable[[int], SwitchModel] = default_switch,
    ) -> None:
        self.rng = rng
        self.trouble = trouble
        self.limit = limit
        self.make_switch = make_switch
        self.world = World(rng.getrandbits(64))
        self.lines: dict[tuple[str, int, bool], Line] = {}
        self.switches: dict[str, SwitchModel] = {}
        self.hosts: dict[tuple[str, int], Host] = {}
        self.cables: dict[tuple[str, int], tuple[str, int]] = {}

    def add_switch(self, name: str, lanes: int) -> SwitchModel:
        index = len(self.switches)
        switch = self.make_switch(lanes)
        switch.tables.own_addresses[SWITCH_IP + (index << 8)] = SWITCH_MAC + (index << 8)
        self.switches[name] = switch
        return switch

    def address(self, name: str) -> tuple[int, int]:
        """(MAC, IP) of a switch."""
        [(ip, mac)] = self.switches[name].tables.own_addresses.items()
        return mac, ip

    def connect(self, a: tuple[str, int], b: tuple[str, int]) -> None:
        self.cables[a], self.cables[b] = b, a

    def neighbour(self, name: str, port: int) -> tuple[int, int]:
        """(MAC, IP) of what is behind a port."""
        far = self.cables.get((name, port))
        return self.address(far[0]) if far else (host_mac(port), host_ip(port))

    def set_receiver(self, name: str, port: int, gen: int) -> None:
        """The `receivers` row for what is behind `port`."""
        mac, ip = self.address(name)
        to = self.neighbour(name, port)
        self.switches[name].tables.receivers[(gen, port)] = Receiver(to[0], to[1], UDP_PORT, mac, ip)

    # --- time

    @property
    def now(self) -> float:
        """The time, in hops."""
        return self.world.now / HOP

    def at(self, delay: float, what: Callable[[], None]) -> None:
        """Call `what` after so many hops."""
        self.world.after(round(delay * HOP), what)

    def _line(self, place: tuple[str, int], outward: bool, arrive: Callable[[bytes], None]) -> Line:
        """The line out of a switch's port, or into it from a host."""
        key = (*place, outward)
        if key not in self.lines:
            self.lines[key] = Line(self.world, arrive, latency=HOP, faults=self.trouble.faults)
        return self.lines[key]

    # --- frames

    def _into_switch(self, name: str, port: int, frame: bytes) -> None:
        for out_port, out in self.switches[name].inject(port, frame):
            place = (name, out_port)
            far = self.cables.get(place)
            if far is not None:
                self._line(place, True, lambda frame, far=far: self._into_switch(*far, frame)).send(out)
            elif place in self.hosts:
                self._line(place, True, lambda frame, place=place: self._into_host(place, frame)).send(out)

    def _into_host(self, place: tuple[str, int], frame: bytes) -> None:
        host = self.hosts[place]
        ip = ipv4(frame)
        assert arp_target(frame) is None and ip is not None and ip.checksum_good
        assert ip.dst == host_ip(place[1]) and int.from_bytes(frame[:6], "big") == host_mac(place[1])
        header, payload = Header.unpack(frame, HEADER_OFFSET), frame[PAYLOAD_OFFSET:]
        assert header.type in host.wants, f"{place} got a {header.type}"
        if host.sender is not None and header.type in (PacketType.FA, PacketType.MH):
            host.sender.heard(header)
        if host.consumer is not None and header.type in (PacketType.FA, PacketType.PARAM):
            host.consumer.take(header, payload)
            host.consumer.drain(self.rng.randrange(host.drain_limit + 1))
        self._pump(place)

    def _send(self, place: tuple[str, int], what: list[tuple[Header, bytes]]) -> None:
        mac, ip = self.address(place[0])
        for header, payload in what:
            frame = job_frame(header, payload, port=place[1], dst_mac=mac, dst_ip=ip)
            self._line(place, False, lambda frame: self._into_switch(*place, frame)).send(frame)

    def _pump(self, place: tuple[str, int]) -> None:
        sender = self.hosts[place].sender
        if sender is not None:
            self._send(place, sender.pump())

    # --- clockwork

    def _timer(self, place: tuple[str, int]) -> None:
        host = self.hosts[place]
        if host.sender is not None:
            self._send(place, host.sender.resend())
        self.at(60 + self.rng.random() * 20, lambda: self._timer(place))

    def _heartbeat(self, place: tuple[str, int]) -> None:
        host = self.hosts[place]
        if host.consumer is not None:
            host.consumer.drain(host.drain_limit)
            if host.beats:
                self._send(place, [host.consumer.heartbeat()])
        self._pump(place)
        self.at(15 + self.rng.random() * 5, lambda: self._heartbeat(place))

    def _chaos(self) -> None:
        for switch in self.switches.values():
            if self.rng.random() < self.trouble.restart:
                switch.restart()
        self.at(20, self._chaos)

    def run(self) -> None:
        """Run until every host is done.  AssertionError when anything is wrong, or nothing moves any more."""
        for place in self.hosts:
            self.at(self.rng.random(), lambda place=place: self._pump(place))
            self.at(40, lambda place=place: self._timer(place))
            self.at(10, lambda place=place: self._heartbeat(place))
        self.at(20, self._chaos)
        while not all(host.done for host in self.hosts.values()):
            assert self.world.step() and self.now < self.limit, "no progress"
