"""NICs around one switch on lines that lose, duplicate and reorder frames, driven by one seed, in NIC clocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from transport_nic import Settings, StreamSettings

from catchment.checkout import ROOT
from catchment.sim.cosim import inprocess_tables
from catchment.sim.golden.switch_model import SwitchModel
from catchment.sim.golden.switch_tables import Receiver, Root, Tables, Worker
from catchment.sim.world.star import ClockedDevice, Hops, Inject, Star
from catchment.wire.generated.constants import UDP_PORT, Mode

SWITCH_MAC = 0x02_00_0A_00_00_FE
SWITCH_IP = 0x0A_00_00_FE
ROOT_PORT = 30
CALM = Hops(hop=100)


def some_faults(rng: random.Random, hop: int = 100) -> Hops:
    """Faults of all severities."""
    loss, duplicate = rng.choice([0, 0.01, 0.1, 0.25]), rng.choice([0, 0.1, 0.3])
    return Hops.with_stragglers(hop=hop, loss=loss, duplicate=duplicate, tail=rng.choice([0, 2, 20]))


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
    return inprocess_tables.embedded_switch(ROOT / "p4src" / "luwu.p4", tables)


def settings_of(port: int, tx: StreamSettings, rx: StreamSettings, **more: int | bool) -> Settings:
    """The settings of the NIC on `port`."""
    return Settings(
        tx, rx, local_mac=mac_of(port), local_ip=ip_of(port), peer_mac=SWITCH_MAC, peer_ip=SWITCH_IP, wid=port, **more
    )  # type: ignore[arg-type]


class Plugged(ClockedDevice, Protocol):
    """A device that says how it is when nothing moves any more."""

    def status(self) -> object: ...


class NicNetwork(Star):
    """NICs around one switch, in steps of 40 clocks."""

    def __init__(self, nics: Mapping[int, Plugged], inject: Inject, rng: random.Random, hops: Hops = CALM) -> None:
        self._nics = nics
        super().__init__(nics, inject, seed=rng.getrandbits(64), hops=hops, step=40)

    def run(self, done: Callable[[], bool], limit: int = 4_000_000) -> None:
        """AssertionError when it takes more than `limit` clocks."""
        end = self.now + limit
        while not done():
            assert self.now < end, f"no progress: {[nic.status() for nic in self._nics.values()]}"
            self.advance()
