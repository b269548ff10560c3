"""A job of two workers on luwu.p4 in this process, whose frames are sent by hand."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from catchment.checkout import ROOT
from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch
from catchment.wire.generated.constants import UDP_PORT, DataType, Mode, PacketType
from catchment.wire.generated.scapy_layers import Catchment, Lanes

WORKERS, SLOTS, LANES = 2, 4, 8
_GEN, _GROUP = 1, 2
_SWITCH_IP, _SWITCH_MAC = "10.0.0.254", "02:00:00:00:00:fe"


@dataclass(frozen=True, slots=True)
class Slot:
    """What the switch remembers of a slot: whose vectors are in it, a bit each, and the first lane of their sum."""

    workers: int
    total: int


class TwoWorkers:
    """The switch, and what its two workers send."""

    def __init__(self) -> None:
        defines = {"LANES": str(LANES), "SLOTS": "16", "MAX_WORKERS": str(WORKERS), "JOBS": "2"}
        self._switch = Switch(build(ROOT / "p4src" / "luwu.p4", defines=defines))
        self._switch.insert("own_addresses", {"target": _number(_SWITCH_IP)}, "answer", mac=_number(_SWITCH_MAC))
        self._switch.multicast(_GROUP, [worker + 1 for worker in range(WORKERS)])
        for worker in range(WORKERS):
            self._insert(worker)

    def _insert(self, worker: int) -> None:
        match = {"gen": _GEN, "port": worker + 1}
        place = {"base": 0, "mask": SLOTS - 1, "job": 0, "group": _GROUP, "up_port": 0, "up_wid": 0}
        own = {"wid": worker, "own": 1 << worker, "full": (1 << WORKERS) - 1}
        source = {"src_ip": _number(_ip(worker)), "src_udp": UDP_PORT}
        self._switch.insert("jobs", match, "worker", mode=Mode.ALLREDUCE, **own, **place, **source)
        self._switch.insert(
            "receivers",
            match,
            "rewrite",
            dst_mac=_number(_mac(worker)),
            dst_ip=_number(_ip(worker)),
            dst_udp=UDP_PORT,
            src_mac=_number(_SWITCH_MAC),
            src_ip=_number(_SWITCH_IP),
        )

    def vector(self, worker: int, seq: int, value: int) -> dict[int, int]:
        """A worker sends a vector of one value; the first lane of what comes out, by the worker that gets it."""
        header = Catchment(
            type=PacketType.PA, flags="ACKV", gen=_GEN, wid=worker, dtype=DataType.INT32, lanes=LANES, seq=seq,
            ack=seq, credit=seq + SLOTS,
        )  # fmt: skip
        out = self._inject(worker, header / Lanes(values=[value] * LANES))
        return {receiver: frame[Lanes].values[0] for receiver, frame in out.items()}

    def heartbeat(self, worker: int, ack: int, credit: int) -> dict[int, tuple[int, int]]:
        """A worker says what it has and has room for; (ack, credit) of what comes out, by the worker that gets it."""
        header = Catchment(type=PacketType.HB, flags="ACKV", gen=_GEN, wid=worker, ack=ack, credit=credit)
        out = self._inject(worker, header)
        return {receiver: (frame[Catchment].ack, frame[Catchment].credit) for receiver, frame in out.items()}

    def slot(self, number: int) -> Slot:
        """What is in a slot."""
        return Slot(self._switch.read_register("bitmap", number), self._switch.read_register("lane0.sum", number))

    def _inject(self, worker: int, payload: Packet) -> dict[int, Packet]:
        frame = (
            Ether(dst=_SWITCH_MAC, src=_mac(worker))
            / IP(src=_ip(worker), dst=_SWITCH_IP)
            / UDP(sport=UDP_PORT, dport=UDP_PORT, chksum=0)
            / payload
        )
        return {port - 1: Ether(raw) for port, raw in self._switch.inject(worker + 1, bytes(frame))}


def _number(address: str) -> int:
    return int(IPv4Address(address)) if "." in address else int(address.replace(":", ""), 16)


def _ip(worker: int) -> str:
    return f"10.0.0.{worker + 1}"


def _mac(worker: int) -> str:
    return f"02:00:00:00:00:0{worker + 1}"
