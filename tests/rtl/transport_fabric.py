"""NICs around one switch on links that lose, duplicate, delay and reorder frames, driven by one seed, in NIC clocks."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from transport_nic import Nic, Settings, StreamSettings

from catchment.checkout import ROOT
from catchment.sim.golden.switch_model import SwitchModel
from catchment.sim.golden.switch_tables import Receiver, Root, Tables, Worker
from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch
from catchment.wire.generated.constants import UDP_PORT, Mode

Inject = Callable[[int, bytes], list[tuple[int, bytes]]]
SWITCH_MAC = 0x02_00_0A_00_00_FE
SWITCH_IP = 0x0A_00_00_FE
ROOT_PORT = 30


@dataclass(frozen=True)
class Weather:
    """Probabilities per hop; `hop`: clocks of a hop; one frame in five takes up to `tail` hops more."""

    loss: float = 0.0
    duplicate: float = 0.0
    tail: float = 0.0
    hop: int = 100

    @staticmethod
    def random(rng: random.Random) -> Weather:
        return Weather(rng.choice([0, 0.01, 0.1, 0.25]), rng.choice([0, 0.1, 0.3]), rng.choice([0, 2, 20]))


@dataclass(frozen=True)
class Job:
    """A stream: its members are ports 0 .. workers-1, and ROOT_PORT unless it is an all-reduce."""

    gen: int
    mode: Mode
    workers: int
    slots: int = 64
    base_slot: int = 0
    row: int = 0


def mac_of(port: int) -> int:
    return 0x02_00_0A_00_00_00 | port + 1


def ip_of(port: int) -> int:
    return 0x0A_00_00_00 | port + 1


def install(tables: Tables, job: Job) -> None:
    """The rows of one stream."""
    ports = tuple(range(job.workers))
    tables.own_addresses[SWITCH_IP] = SWITCH_MAC
    tables.groups[job.gen] = ports
    for port in ports:
        tables.jobs[(job.gen, port)] = Worker(
            mode=job.mode, wid=port, own=1 << port, base=job.base_slot, mask=job.slots - 1,
            full=(1 << job.workers) - 1, job=job.row, group=job.gen, up_port=ROOT_PORT, src_ip=ip_of(port),
        )  # fmt: skip
    if job.mode != Mode.ALLREDUCE:
        tables.jobs[(job.gen, ROOT_PORT)] = Root(job.mode, job.row, job.gen, ip_of(ROOT_PORT))
    for port in (*ports, ROOT_PORT):
        tables.receivers[(job.gen, port)] = Receiver(mac_of(port), ip_of(port), UDP_PORT, SWITCH_MAC, SWITCH_IP)


def model_switch(*jobs: Job) -> Inject:
    """The slow model of p4src/luwu.p4."""
    switch = SwitchModel()
    for job in jobs:
        install(switch.tables, job)
    return switch.inject


def embedded_switch(*jobs: Job) -> Inject:
    """p4src/luwu.p4 itself, compiled."""

    tables = Tables()
    for job in jobs:
        install(tables, job)
    switch = Switch(build(ROOT / "p4src" / "luwu.p4"))
    for group, ports in tables.groups.items():
        switch.multicast(group, ports)
    for ip, mac in tables.own_addresses.items():
        switch.insert("own_addresses", {"target": ip}, "answer", mac=mac)
    for (gen, port), to in tables.receivers.items():
        switch.insert(
            "receivers", {"gen": gen, "port": port}, "rewrite",
            dst_mac=to.dst_mac, dst_ip=to.dst_ip, dst_udp=to.dst_udp, src_mac=to.src_mac, src_ip=to.src_ip,
        )  # fmt: skip
    for (gen, port), row in tables.jobs.items():
        if isinstance(row, Root):
            switch.insert("jobs", {"gen": gen, "port": port}, "root", **asdict(row))
        else:
            switch.insert("jobs", {"gen": gen, "port": port}, "worker", **asdict(row))
    return switch.inject


def settings_of(port: int, tx: StreamSettings, rx: StreamSettings, **more: int | bool) -> Settings:
    """Of the NIC on `port`."""
    return Settings(
        tx, rx, local_mac=mac_of(port), local_ip=ip_of(port), peer_mac=SWITCH_MAC, peer_ip=SWITCH_IP, wid=port, **more
    )  # type: ignore[arg-type]


@dataclass
class Fabric:
    """Runs until all is done."""

    nics: dict[int, Nic]
    inject: Inject
    rng: random.Random
    weather: Weather = Weather()
    step: int = 40
    taken: list[tuple[int, bytes]] = field(default_factory=list)  # every frame that reached the switch
    _events: list[tuple[int, int, int, bool, bytes]] = field(default_factory=list)
    _count: int = 0
    _now: int = 0

    def _hop(self, at: int, port: int, to_switch: bool, frame: bytes) -> None:
        for _ in range(2 if self.rng.random() < self.weather.duplicate else 1):
            if self.rng.random() < self.weather.loss:
                continue
            slow = self.rng.random() * self.weather.tail if self.rng.random() < 0.2 else 0
            self._count += 1
            due = at + int(self.weather.hop * (1 + slow))
            heapq.heappush(self._events, (due, self._count, port, to_switch, frame))

    def advance(self) -> None:
        """One step of all NICs, then what the switch and the links do meanwhile."""
        for port, nic in self.nics.items():
            nic.run(self.step)
            for _, frame in nic.frames():
                self._hop(self._now, port, True, frame)
        self._now += self.step
        while self._events and self._events[0][0] <= self._now:
            due, _, port, to_switch, frame = heapq.heappop(self._events)
            if not to_switch:
                self.nics[port].receive(frame)
                continue
            self.taken.append((port, frame))
            for out, answer in self.inject(port, frame):
                self._hop(due, out, False, answer)

    def run(self, done: Callable[[], bool], limit: int = 4_000_000) -> None:
        """AssertionError when it takes more than `limit` clocks."""
        end = self._now + limit
        while not done():
            assert self._now < end, f"no progress: {[nic.status() for nic in self.nics.values()]}"
            self.advance()
