"""The slow, obvious model of the switch program p4src/luwu.p4: frames in, frames out, every drop counted."""

from __future__ import annotations

from catchment.sim.golden import switch_frames as frames
from catchment.sim.golden.switch_core import Drop, Output, SwitchCore
from catchment.sim.golden.switch_jobs import M32, HeartbeatTable, Window, newer
from catchment.sim.golden.switch_tables import Root, Worker
from catchment.wire.generated.constants import DropReason, Flag, Header, Mode, PacketType

__all__ = ["Output", "SwitchModel"]


class SwitchModel(SwitchCore):
    """One switch that runs luwu.p4: slots, and the heartbeats of every job."""

    def restart(self) -> None:
        super().restart()
        self.heartbeats = HeartbeatTable()
        self.acked: dict[int, tuple[int, int]] = {}  # job -> generation and largest ack from above

    def type_fault(self, header: Header, payload: int) -> DropReason:
        return frames.stream_fault(header, payload)

    def job_frame(self, row: Worker | Root, port: int, header: Header, frame: bytes) -> Output:
        if isinstance(row, Root):
            return self._from_root(row, header, frame)
        if header.type == PacketType.PA and row.mode in (Mode.REDUCE, Mode.ALLREDUCE, Mode.LEAF):
            return self._vector(row, port, header, frame)
        if header.type == PacketType.HB and row.mode in (Mode.BCAST, Mode.ALLREDUCE, Mode.LEAF):
            return self._heartbeat(row, header, frame)
        raise Drop(DropReason.WRONG_DIRECTION)

    def _from_root(self, row: Root, header: Header, frame: bytes) -> Output:
        """One copy from above to every worker."""
        if row.mode == Mode.REDUCE and header.type == PacketType.HB:
            header = header._replace(type=PacketType.MH)
        elif not (row.mode == Mode.BCAST and header.type == PacketType.PARAM) and not (
            row.mode == Mode.LEAF and header.type in (PacketType.PARAM, PacketType.FA, PacketType.MH)
        ):
            raise Drop(DropReason.WRONG_DIRECTION)
        if header.flags & Flag.ACKV and header.type != PacketType.PARAM:
            gen, ack = self.acked.get(row.job, (0, 0))
            if gen != header.gen or newer(header.ack, ack):
                self.acked[row.job] = (header.gen, header.ack)
        return self.send(self.workers(row.group), frames.with_header(frame, header._replace(wid=0)))

    def _furthest(self, row: Worker, header: Header, minimum: Window | None) -> int | None:
        """The last sequence number that a sender may be at: less than a window beyond what every receiver has."""
        if row.mode == Mode.ALLREDUCE:
            return None if minimum is None else (minimum.ack + row.mask) % M32
        gen, ack = self.acked.get(row.job, (0, 0))
        return (ack + row.mask) % M32 if gen == header.gen else None

    def _heard(self, row: Worker, header: Header) -> Window | None:
        """Take the sender's (ack, credit) if it has one, and say the minimum over all workers if it is known."""
        if header.flags & Flag.ACKV and row.own.bit_count() == 1:
            self.heartbeats.hear(row.job, row.own, Window(header.gen, header.ack, header.credit))
        return self.heartbeats.minimum(row.job, header.gen, row.full)

    def _heartbeat(self, row: Worker, header: Header, frame: bytes) -> Output:
        minimum = self._heard(row, header)
        asks = bool(header.flags & Flag.RETX)
        if minimum is None:
            if not asks or row.mode != Mode.ALLREDUCE:
                return []
        elif not self.heartbeats.advance(row.job, minimum) and row.wid != 0 and not asks:
            return []
        header = _with_window(header._replace(wid=row.wid), minimum)
        if row.mode == Mode.LEAF:
            up = header._replace(type=PacketType.HB, wid=row.up_wid)
            return self.send([row.up_port], frames.with_header(frame, up))
        ports = [row.up_port] if row.mode == Mode.BCAST else self.workers(row.group)
        return self.send(ports, frames.with_header(frame, header._replace(type=PacketType.MH)))

    def _vector(self, row: Worker, port: int, header: Header, frame: bytes) -> Output:
        minimum = None if row.mode == Mode.REDUCE else self._heard(row, header)
        slot, again = self.add_vector(row, header, frame, self._furthest(row, header, minimum))
        if slot.workers != row.full:
            return []
        header = self.merged(_with_window(header, minimum), slot)._replace(wid=row.wid)
        if row.mode == Mode.LEAF:
            up = header._replace(type=PacketType.PA, wid=row.up_wid)
            return self.send([row.up_port], frames.with_header(frame, up, slot.sums()))
        full = frames.with_header(frame, header._replace(type=PacketType.FA), slot.sums())
        if row.mode == Mode.REDUCE:
            return self.send([row.up_port], full)
        return self.send([port] if again else self.workers(row.group), full)


def _with_window(header: Header, minimum: Window | None) -> Header:
    if minimum is None:
        return header._replace(flags=header.flags & ~Flag.ACKV, ack=0, credit=0)
    return header._replace(flags=header.flags | Flag.ACKV, ack=minimum.ack, credit=minimum.credit)
