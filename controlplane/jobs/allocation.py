"""What jobs share on a switch: slots, rows, multicast groups, generations; nothing is given twice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.generations import MAX_GENERATION, GenerationOrder
from catchment.controlplane.topology import Topology
from catchment.wire.generated.constants import UDP_PORT, UDP_PORTS

JOB_ROWS = 64
"""JOBS of the switch program: streams at the same time on one switch."""
FLOOD_GROUP = 1
"""Multicast group of plain traffic; jobs get the ones after it."""
MAX_GROUP = 0x7FFF
"""BMv2 keeps the upper half for clone sessions."""
FIRST_PORT = UDP_PORT


@dataclass(frozen=True, slots=True)
class Share:
    """What a stream holds on one switch: slots [base, base + slots), a row and a group."""

    switch: str
    base: int
    slots: int
    row: int
    group: int


@dataclass(slots=True)
class _SwitchLedger:
    size: int
    slots: list[tuple[int, int]] = field(default_factory=list)  # (base, end), sorted
    rows: set[int] = field(default_factory=set)
    groups: set[int] = field(default_factory=lambda: {0, FLOOD_GROUP})

    def place(self, count: int) -> int | None:
        """First aligned gap of `count` slots."""
        base = 0
        for start, end in self.slots:
            if base + count <= start:
                break
            base = max(base, -(-end // count) * count)
        return base if base + count <= self.size else None


class Allocator:
    """Gives out what streams need on the switches of one topology.

    Args:
        topology: for the number of slots on each switch.
        held: shares of jobs that exist.
        next_generation: the place of the first generation to try in `order`; generations are unique over all
            switches and each is used once, until the 16-bit number wraps.
        order: of the generations; a new one by default, which is right for the only allocator of a topology.
        used_generations: those of jobs that exist.
        clean: how many more generations may be given out before the registers of the switches must be
            scrubbed of old ones (controlplane/state/scrub.py).
    """

    def __init__(
        self,
        topology: Topology,
        held: Iterable[Share] = (),
        *,
        next_generation: int = 1,
        order: GenerationOrder | None = None,
        used_generations: Iterable[int] = (),
        clean: int = MAX_GENERATION,
    ) -> None:
        self.next_generation = next_generation
        self.order = order or GenerationOrder()
        self.clean = clean
        self._used_generations = set(used_generations)
        self._ledgers = {n: _SwitchLedger(s.slots) for n, s in topology.switches.items()}
        self._ports: set[tuple[str, int]] = set()
        for share in held:
            self._enter(share)

    def generation(self) -> int:
        """A generation that no living job has.

        Raises:
            JobError: all of them are taken.
        """
        for _ in range(MAX_GENERATION):
            if self.clean <= 0:
                break
            generation = self.order.at(self.next_generation)
            self.next_generation = self.next_generation % MAX_GENERATION + 1
            self.clean -= 1
            if generation not in self._used_generations:
                self._used_generations.add(generation)
                return generation
        if self.clean <= 0 and len(self._used_generations) < MAX_GENERATION:
            raise JobError("every generation was used since the switches' registers were scrubbed; scrub them first")
        raise JobError("every generation is in use; remove jobs")

    def next_ones(self, count: int) -> list[int]:
        """The next `count` generations in order, those that living jobs have among them."""
        first = self.next_generation - 1
        return [self.order.at((first + ahead) % MAX_GENERATION + 1) for ahead in range(count)]

    def pass_over(self, count: int) -> None:
        """Give out none of the next `count` generations."""
        self.next_generation = (self.next_generation - 1 + count) % MAX_GENERATION + 1
        self.clean = max(0, self.clean - count)

    def share(self, switch: str, slots: int, *, group: int | None = None) -> Share:
        """A share of a switch for one stream.

        Args:
            switch: its name.
            slots: how many, a power of two; 0 for a stream that adds nothing up.
            group: take this multicast group, which another stream of the same job has there.

        Raises:
            JobError: the switch is full; says how much is free.
        """
        ledger = self._ledgers[switch]
        base = ledger.place(slots) if slots else 0
        if base is None:
            used = sum(end - start for start, end in ledger.slots)
            raise JobError(
                f"switch {switch} has no {slots} slots in a row: {used} of {ledger.size} are in use; remove a job, "
                "ask for fewer slots, or build the program with more"
            )
        row = next((r for r in range(JOB_ROWS) if r not in ledger.rows), None)
        if row is None:
            raise JobError(f"switch {switch} holds {JOB_ROWS} streams, which is all it has rows for; remove a job")
        if group is None:
            # A row never runs out of groups: there are more of them than rows.
            group = next(g for g in range(FLOOD_GROUP + 1, MAX_GROUP + 1) if g not in ledger.groups)
        share = Share(switch, base, slots, row, group)
        self._enter(share)
        return share

    def load(self, switch: str) -> tuple[int, int]:
        """How full a switch is: streams and slots in use."""
        ledger = self._ledgers[switch]
        return len(ledger.rows), sum(end - start for start, end in ledger.slots)

    def port(self, host: str) -> int:
        """A UDP port that no other job uses on a host.

        Raises:
            JobError: none is left.
        """
        for port in range(FIRST_PORT, FIRST_PORT + UDP_PORTS):
            if (host, port) not in self._ports:
                self.hold_port(host, port)
                return port
        raise JobError(f"host {host} is in {UDP_PORTS} jobs, which is all there are UDP ports for; remove a job")

    def hold_port(self, host: str, port: int) -> None:
        """Note that a job uses a port of a host."""
        self._ports.add((host, port))

    def release(self, share: Share) -> None:
        """Take a share back; a group that two streams have goes with the first of them."""
        ledger = self._ledgers[share.switch]
        if share.slots:
            ledger.slots.remove((share.base, share.base + share.slots))
        ledger.rows.remove(share.row)
        ledger.groups.discard(share.group)

    def release_generation(self, generation: int) -> None:
        """Take a generation back; it is given out again when all others were, and registers were scrubbed since.

        The last time that they were, it may have been in use: then they are to be scrubbed before its turn comes.
        """
        self._used_generations.discard(generation)
        self.clean = min(self.clean, (self.order.place(generation) - self.next_generation) % MAX_GENERATION)

    def release_port(self, host: str, port: int) -> None:
        """Take a port of a host back."""
        self._ports.discard((host, port))

    def _enter(self, share: Share) -> None:
        try:
            ledger = self._ledgers[share.switch]
        except KeyError:
            raise JobError(f"a job holds slots on switch {share.switch}, which the topology no longer has") from None
        if share.slots:
            ledger.slots.append((share.base, share.base + share.slots))
            ledger.slots.sort()
        ledger.rows.add(share.row)
        ledger.groups.add(share.group)
