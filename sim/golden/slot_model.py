"""The slow, obvious model of p4src/p4sgd.p4: P4SGD, Algorithm 2, corrected as docs/explanation/protocol.md says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catchment.sim.golden import switch_frames as frames
from catchment.sim.golden.switch_core import Drop, Output, SwitchCore
from catchment.sim.golden.switch_jobs import newer
from catchment.sim.golden.switch_tables import Root, Worker
from catchment.wire.generated.constants import MAX_WORKERS, DropReason, Flag, Header, Mode, PacketType


@dataclass(frozen=True, slots=True)
class Acks:
    """The workers that have said that they hold the sum of round `seq`: `workers` are bits."""

    gen: int = 0
    seq: int = 0
    workers: int = 0


class SlotModel(SwitchCore):
    """One switch that runs p4sgd.p4: `slots` hold the sums, `acks` the workers that have them."""

    def __init__(
        self,
        lanes: int = 8,
        slots: int = 65536,
        max_workers: int = MAX_WORKERS,
        jobs: int = 64,
        dice: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(lanes, slots, max_workers, jobs, dice)

    def restart(self) -> None:
        super().restart()
        self.acks = [Acks()] * self._slot_count

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

    def _vector(self, row: Worker, port: int, header: Header, frame: bytes) -> Output:
        slot, again = self.add_vector(row, header, frame)
        if slot.workers != row.full:
            return []
        merged = self.merged(header, slot)
        if row.mode == Mode.LEAF:
            up = frames.with_header(frame, _spoken(merged, row.up_wid), slot.sums())
            return self.send([row.up_port], up)
        full = _spoken(merged, row.wid)._replace(type=PacketType.FA)
        return self._answer(row, port, frames.with_header(frame, full, slot.sums()), again)

    def _acknowledge(self, row: Worker, port: int, header: Header, frame: bytes) -> Output:
        confirmed = frames.with_header(frame, _spoken(header, row.wid)._replace(type=PacketType.CNF))
        index = self.slot_index(row, header)
        slot, acks = self.slots.slots[index], self.acks[index]
        if slot.gen == header.gen and slot.seq != header.seq and not newer(header.seq, slot.seq):
            return self._answer(row, port, confirmed, again=True)  # nobody starts a round before the last is confirmed
        if acks.gen != header.gen or newer(header.seq, acks.seq):
            acks = Acks(header.gen, header.seq)
        elif acks.seq != header.seq:
            raise Drop(DropReason.OLD_SEQ)
        again = bool(acks.workers & row.own)
        self.acks[index] = Acks(acks.gen, acks.seq, acks.workers | row.own)
        if self.acks[index].workers != row.full:
            return []
        if row.mode == Mode.LEAF:
            return self.send([row.up_port], frames.with_header(frame, _spoken(header, row.up_wid)))
        return self._answer(row, port, confirmed, again)

    def _answer(self, row: Worker, port: int, frame: bytes, again: bool) -> Output:
        return self.send([port] if again else self.workers(row.group), frame)


def _spoken(header: Header, wid: int) -> Header:
    """What the switch answers for: the sender's index, and no window."""
    return header._replace(wid=wid, flags=header.flags & ~Flag.ACKV, ack=0, credit=0)
