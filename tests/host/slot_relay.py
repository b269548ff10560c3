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
_FAR = 1 << 30


class SlotRelay(Relay):
    """One job of `workers`; its members' addresses go into `members` in the order of their indices.

    Args:
        forge: behind each frame of the first member, what another program at its address would send: garbage of a far
            round.
    """

    def __init__(
        self, *, gen: int, workers: int, slots: int, lanes: int = 8, forge: bool = False, **faults: Any
    ) -> None:
        super().__init__(**faults)
        self._forge = forge
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
        if (header.gen, port) not in self.model.tables.jobs:
            return
        self._handle(port, header, frame)
        if self._forge and port == 0:
            ahead = header._replace(seq=(header.seq + _FAR) % (1 << 32), ack=(header.ack + _FAR) % (1 << 32))
            self._handle(port, ahead, ahead.pack() + bytes(len(frame) - HEADER_BYTES))

    def _handle(self, port: int, header: Header, frame: bytes) -> None:
        row = self.model.tables.jobs[header.gen, port]
        try:
            output = self.model.job_frame(row, port, header, _FRONT + frame)
        except Drop as drop:
            self.model.drops[drop.reason] += 1
            return
        for to, out in output:
            if to < len(self.members):
                self._emit([self.members[to]], Header.unpack(out, HEADER_OFFSET), out[PAYLOAD_OFFSET:])


assert HEADER_BYTES == PAYLOAD_OFFSET - HEADER_OFFSET
