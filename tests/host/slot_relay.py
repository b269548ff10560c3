"""The golden model of p4sgd.p4 as a switch over UDP on loopback, a member's address standing for its port."""

from __future__ import annotations

from typing import Any

from relay import Address, Relay

from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_core import Drop
from catchment.sim.golden.switch_frames import PAYLOAD_OFFSET
from catchment.sim.golden.switch_tables import Receiver, Worker
from catchment.wire.generated.constants import HEADER_BYTES, HEADER_OFFSET, Header, Mode

_FRONT = bytes(HEADER_OFFSET)


class SlotRelay(Relay):
    """One job of `workers`; its members' addresses go into `members` in the order of their indices."""

    def __init__(self, *, gen: int, workers: int, slots: int, lanes: int = 8, **faults: Any) -> None:
        super().__init__(**faults)
        self.members: list[Address] = []
        self.model = SlotModel(lanes, slots)
        self.model.tables.groups[gen] = tuple(range(workers))
        for wid in range(workers):
            row = Worker(Mode.ALLREDUCE, wid, 1 << wid, 0, slots - 1, (1 << workers) - 1, 0, gen)
            self.model.tables.jobs[(gen, wid)] = row
            self.model.tables.receivers[(gen, wid)] = Receiver(0, 0, 0, 0, 0)

    def _switch(self, frame: bytes, source: Address) -> None:
        header = Header.unpack(frame)
        if source not in self.members:
            return
        port = self.members.index(source)
        row = self.model.tables.jobs.get((header.gen, port))
        if row is None:
            return
        try:
            output = self.model.job_frame(row, port, header, _FRONT + frame)
        except Drop:
            return
        for to, out in output:
            if to < len(self.members):
                self._emit([self.members[to]], Header.unpack(out, HEADER_OFFSET), out[PAYLOAD_OFFSET:])


assert HEADER_BYTES == PAYLOAD_OFFSET - HEADER_OFFSET
