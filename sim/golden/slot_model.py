"""The slow, obvious model of p4src/p4sgd.p4: P4SGD, Algorithm 2, corrected as docs/explanation/protocol.md says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catchment.sim.golden import switch_frames as frames
from catchment.sim.golden.switch_core import Drop, Output, SwitchCore
from catchment.sim.golden.switch_jobs import M32, HeartbeatTable, Window, newer
from catchment.sim.golden.switch_tables import Root, Worker
from catchment.wire.generated.constants import MAX_WORKERS, DropReason, Flag, Header, Mode, PacketType


@dataclass(frozen=True, slots=True)
class Acks:
    """The workers that have said that they hold the sum of round `seq`: `workers` are bits."""

    gen: int = 0
    seq: int = 0
    workers: int = 0


class SlotModel(SwitchCore):
    """One switch that runs p4sgd.p4: `slots` hold the sums, `acks` the workers that have them.

    `heartbeats` hold the oldest round whose sum each worker lacks, as its frames say.
    """

    def __init__(
        self,
        lanes: int = 8,
        slots: int = 65536,
        max_workers: int = MAX_WORKERS,
        jobs: int = 64,
        dice: Callable[[], int] | None = None,
        *,
        tags: bool = False,
    ) -> None:
        super().__init__(lanes, slots, max_workers, jobs, dice, tags=tags)

    def restart(self) -> None:
        super().restart()
        self.acks = [Acks()] * self._slot_count
        self.heartbeats = HeartbeatTable()

    def type_fault(self, header: Header, payload: int) -> DropReason:
        return frames.round_fault(header, payload)

    def job_frame(self, row: Worker | Root, port: int, header: Header, frame: bytes) -> Output:
        if isinstance(row, Root):
            if row.mode == Mode.LEAF and header.type in (PacketType.FA, PacketType.CNF):
                return self.send(self.workers(row.group), frames.with_header(frame, _spoken(header, 0)))
        elif row.mode in (Mode.ALLREDUCE, Mode.LEAF):
            if header.type == PacketType.PA:
                return self._vector(row, port, header, frame)
            if header.type == PacketType.ACK:
                return self._acknowledge(row, port, header, frame)
        raise Drop(DropReason.WRONG_DIRECTION)

    def _lacks(self, row: Worker, header: Header) -> int | None:
        """Take what the sender lacks; returns the oldest sum that any worker lacks, None while one has not said."""
        if header.flags & Flag.ACKV and row.own.bit_count() == 1:
            self.heartbeats.hear(row.job, row.own, Window(header.gen, header.ack, header.credit))
        minimum = self.heartbeats.minimum(row.job, header.gen, row.full)
        return None if minimum is None else minimum.ack

    def _vector(self, row: Worker, port: int, header: Header, frame: bytes) -> Output:
        lacks = self._lacks(row, header)
        slot, again = self.add_vector(row, header, frame, _furthest(row, lacks))
        if slot.workers != row.full:
            return []
        merged = self.merged(header, slot)
        if row.mode == Mode.LEAF:
            up = frames.with_header(frame, _of_rack(merged, row, lacks), slot.sums())
            return self.send([row.up_port], up)
        full = _spoken(merged, row.wid)._replace(type=PacketType.FA)
        return self._answer(row, port, frames.with_header(frame, full, slot.sums()), again)

    def _acknowledge(self, row: Worker, port: int, header: Header, frame: bytes) -> Output:
        confirmed = frames.with_header(frame, _spoken(header, row.wid)._replace(type=PacketType.CNF))
        index = self.slot_index(row, header)
        slot, acks = self.slots.slots[index], self.acks[index]
        lacks = self._lacks(row, header)
        furthest = _furthest(row, lacks)
        this = (header.gen, header.seq)
        held = (slot.gen, slot.seq) == this and (acks.gen, acks.seq) == this
        if not held and _is_beyond(header.seq, furthest):
            raise Drop(DropReason.BEYOND_WINDOW)
        if _has_gone_on(slot.gen, slot.seq, header, furthest):
            if lacks is None and header.flags & Flag.ACKV:
                raise Drop(DropReason.OLD_SEQ)  # the slot may hold a round that no worker is at
            return self._answer(row, port, confirmed, again=True)  # nobody starts a round before the last is confirmed
        if _has_gone_on(acks.gen, acks.seq, header, furthest):
            raise Drop(DropReason.OLD_SEQ)
        if (acks.gen, acks.seq) != this:
            acks = Acks(*this)
        again = bool(acks.workers & row.own)
        self.acks[index] = Acks(acks.gen, acks.seq, acks.workers | row.own)
        if self.acks[index].workers != row.full:
            return []
        if row.mode == Mode.LEAF:
            return self.send([row.up_port], frames.with_header(frame, _of_rack(header, row, lacks)))
        return self._answer(row, port, confirmed, again)

    def _answer(self, row: Worker, port: int, frame: bytes, again: bool) -> Output:
        return self.send([port] if again else self.workers(row.group), frame)


def _furthest(row: Worker, lacks: int | None) -> int | None:
    """The last round that may have begun: the one before it in its slot is confirmed, so every worker has its sum."""
    return None if lacks is None else (lacks + row.mask) % M32


def _is_beyond(seq: int, furthest: int | None) -> bool:
    return furthest is not None and newer(seq, furthest)


def _has_gone_on(gen: int, seq: int, header: Header, furthest: int | None) -> bool:
    """Whether what holds (gen, seq) is past the round of `header`, and rightly so."""
    return gen == header.gen and seq != header.seq and not newer(header.seq, seq) and not _is_beyond(seq, furthest)


def _spoken(header: Header, wid: int) -> Header:
    """What the switch answers for: the sender's index, and no window."""
    return header._replace(wid=wid, flags=header.flags & ~Flag.ACKV, ack=0, credit=0)


def _of_rack(header: Header, row: Worker, lacks: int | None) -> Header:
    """What a leaf sends up for its workers: it lacks what any of them does, once all have said so."""
    header = _spoken(header, row.up_wid)
    return header if lacks is None else header._replace(flags=header.flags | Flag.ACKV, ack=lacks)
