"""Workers of rtl/glm around one switch, in clocks, on lines that may lose, duplicate and reorder frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catchment.checkout import ROOT
from catchment.rtl.harness.glm_worker import Rounds, VerilatedWorker
from catchment.sim.cosim import inprocess_tables
from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_tables import Receiver, Tables, Worker
from catchment.sim.world.star import Hops, Inject, Star
from catchment.wire.generated.constants import UDP_PORT, Mode
from catchment.wire.generated.glm_numbers import ROUND_SLOTS

P4SGD = ROOT / "p4src" / "p4sgd.p4"
SWITCH_MAC = 0x02_00_0A_00_00_FE
SWITCH_IP = 0x0A_00_00_FE


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
    return inprocess_tables.embedded_switch(P4SGD, job.tables())


class StalledError(Exception):
    """The workers get nowhere."""


class GlmNetwork(Star):
    """Workers around one switch, in clocks; port i of the switch is worker i."""

    def __init__(
        self, workers: Sequence[VerilatedWorker], inject: Inject, *, seed: int, hops: Hops | None = None,
        step: int = 25,
    ) -> None:  # fmt: skip
        super().__init__(dict(enumerate(workers)), inject, seed=seed, hops=hops, step=step)
        self.workers = workers

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
