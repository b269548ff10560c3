"""Workers of rtl/glm around one switch, in clocks, on links that may lose, duplicate and reorder frames."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from catchment.checkout import ROOT
from catchment.rtl.harness.glm_worker import Rounds, VerilatedWorker
from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_tables import Receiver, Tables, Worker
from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch
from catchment.wire.generated.constants import UDP_PORT, Mode
from catchment.wire.generated.glm_numbers import ROUND_SLOTS

P4SGD = ROOT / "p4src" / "p4sgd.p4"
Inject = Callable[[int, bytes], list[tuple[int, bytes]]]
SWITCH_MAC = 0x02_00_0A_00_00_FE
SWITCH_IP = 0x0A_00_00_FE


@dataclass(frozen=True, slots=True)
class Weather:
    """Faults of a hop: probabilities of loss and of a second copy; clocks, for one in five up to `tail` times more."""

    loss: float = 0.0
    duplicate: float = 0.0
    tail: float = 0.0
    hop: int = 50


@dataclass(frozen=True, slots=True)
class SlotJob:
    """A job of p4sgd.p4: its workers are ports 0 .. workers - 1."""

    workers: int
    gen: int = 7
    slots: int = ROUND_SLOTS
    base_seq: int = 0
    rto: int = 4000

    def rounds(self, wid: int) -> Rounds:
        """What a worker is told."""
        return Rounds(
            self.gen, wid, 0x02_00_0A_00_00_00 | wid + 1, 0x0A_00_00_00 | wid + 1, SWITCH_MAC, SWITCH_IP, self.slots,
            self.base_seq, self.rto,
        )  # fmt: skip

    def tables(self) -> Tables:
        """What the switch is told."""
        tables = Tables()
        tables.own_addresses[SWITCH_IP] = SWITCH_MAC
        tables.groups[self.gen] = tuple(range(self.workers))
        for port in range(self.workers):
            rounds = self.rounds(port)
            tables.jobs[(self.gen, port)] = Worker(
                mode=Mode.ALLREDUCE, wid=port, own=1 << port, base=0, mask=self.slots - 1,
                full=(1 << self.workers) - 1, job=0, group=self.gen, src_ip=rounds.local_ip,
            )  # fmt: skip
            tables.receivers[(self.gen, port)] = Receiver(
                rounds.local_mac, rounds.local_ip, UDP_PORT, SWITCH_MAC, SWITCH_IP
            )
        return tables


def model_switch(job: SlotJob) -> Inject:
    """The slow model of p4src/p4sgd.p4."""
    switch = SlotModel(slots=job.slots)
    switch.tables = job.tables()
    return switch.inject


def embedded_switch(job: SlotJob) -> Inject:
    """p4src/p4sgd.p4 itself, compiled."""
    tables = job.tables()
    switch = Switch(build(P4SGD))
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
        assert isinstance(row, Worker)
        switch.insert(
            "jobs", {"gen": gen, "port": port}, "worker",
            mode=row.mode, wid=row.wid, own=row.own, base=row.base, mask=row.mask, full=row.full, job=row.job,
            group=row.group, up_port=row.up_port, up_wid=row.up_wid, src_ip=row.src_ip, src_udp=row.src_udp,
        )  # fmt: skip
    return switch.inject


class StalledError(Exception):
    """The workers get nowhere."""


@dataclass
class GlmFabric:
    """Runs workers in steps of a few clocks; port i of the switch is worker i.

    Args:
        step: clocks of a step: frames arrive at its end, so a hop takes up to as much longer.
    """

    workers: Sequence[VerilatedWorker]
    inject: Inject
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    weather: Weather = Weather()
    step: int = 25
    now: int = 0
    lost: int = 0
    _events: list[tuple[int, int, int, bool, bytes]] = field(default_factory=list)
    _count: int = 0

    def _hop(self, at: int, port: int, to_switch: bool, frame: bytes) -> None:
        for _ in range(2 if self.rng.random() < self.weather.duplicate else 1):
            if self.rng.random() < self.weather.loss:
                self.lost += 1
                continue
            slow = self.rng.random() * self.weather.tail if self.rng.random() < 0.2 else 0
            self._count += 1
            heapq.heappush(self._events, (at + int(self.weather.hop * (1 + slow)), self._count, port, to_switch, frame))

    def advance(self) -> None:
        """One step of all workers, then what the switch and the links do meanwhile."""
        begin = [worker.now for worker in self.workers]
        for port, worker in enumerate(self.workers):
            worker.run(self.step)
            for clock, frame in worker.frames():
                self._hop(self.now + clock - begin[port], port, True, frame)
        self.now += self.step
        while self._events and self._events[0][0] <= self.now:
            due, _, port, to_switch, frame = heapq.heappop(self._events)
            if not to_switch:
                self.workers[port].receive(frame)
                continue
            for out, answer in self.inject(port, frame):
                self._hop(due, out, False, answer)

    def settle(self, patience: int = 2_000_000, on_sums: Callable[[int], None] | None = None) -> None:
        """Run until no worker is busy; `on_sums` hears how many sums the slowest has had since it began.

        Raises:
            StalledError: no sum for `patience` clocks.
        """
        first = min(worker.counts().sums for worker in self.workers)
        sums, since = -1, self.now
        while any(worker.busy for worker in self.workers):
            self.advance()
            if (now := sum(all_sums := [worker.counts().sums for worker in self.workers])) != sums:
                sums, since = now, self.now
                if on_sums is not None:
                    on_sums(min(all_sums) - first)
            elif self.now - since > patience:
                raise StalledError(f"no sum for {patience} clocks: {[worker.counts() for worker in self.workers]}")
