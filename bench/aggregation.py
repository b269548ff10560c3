"""The aggregation that every switch benchmark runs: workers' frames, and the table entries that let them in."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from catchment.wire.generated.constants import UDP_PORT, Flag, Header, Mode, PacketType
from catchment.wire.udp_frame import UdpPeer, udp_frame

SLOTS = 256
GEN, PING_GEN = 7, 8  # of all workers; of worker 0 alone, whose frames come back at once
ROOT_PORT = 20
GROUP = 2
SEQ_OFFSET = 14 + 20 + 8 + 10
SWITCH_MAC, SWITCH_IP = 0x0200_0000_00FE, 0x0A00_00FE
HOST_IP = 0x0A00_0001  # of worker 0; the others have the next ones


@dataclass(frozen=True, slots=True)
class Entry:
    """A table entry by names."""

    table: str
    match: Mapping[str, int]
    action: str
    params: Mapping[str, int]


def frame(lanes: int, worker: int, seq: int, gen: int = GEN) -> bytes:
    """A worker's partial vector, every lane different; Ethernet to payload."""
    header = Header(
        type=PacketType.PA, flags=Flag.ACKV, gen=gen, wid=worker, dtype=1, lanes=lanes, seq=seq, credit=seq + SLOTS
    )
    payload = header.pack() + struct.pack(f"!{lanes}I", *((worker << 20) + seq + i for i in range(lanes)))
    source = UdpPeer(0x0200_0000_0001 + worker, HOST_IP + worker, UDP_PORT)
    return udp_frame(payload, source, UdpPeer(SWITCH_MAC, SWITCH_IP, UDP_PORT))


def entries(workers: int) -> list[Entry]:
    """Both jobs: worker k at port k + 1, sums to ROOT_PORT; group GROUP is to be ports 1 to `workers`."""
    result = [_worker(GEN, k, (1 << workers) - 1, 0) for k in range(workers)] + [_worker(PING_GEN, 0, 1, 1)]
    result.append(Entry("own_addresses", {"target": SWITCH_IP}, "answer", {"mac": SWITCH_MAC}))
    root = {
        "dst_mac": 0x0200_0000_0020,
        "dst_ip": 0x0A000020,
        "dst_udp": UDP_PORT,
        "src_mac": SWITCH_MAC,
        "src_ip": SWITCH_IP,
    }
    return result + [Entry("receivers", {"gen": gen, "port": ROOT_PORT}, "rewrite", root) for gen in (GEN, PING_GEN)]


def _worker(gen: int, worker: int, full: int, job: int) -> Entry:
    params = {
        "mode": int(Mode.REDUCE),
        "wid": worker,
        "own": 1 << worker,
        "base": 0,
        "mask": SLOTS - 1,
        "full": full,
        "job": job,
        "group": GROUP,
        "up_port": ROOT_PORT,
        "up_wid": 0,
        "src_ip": HOST_IP + worker,
        "src_udp": UDP_PORT,
    }
    return Entry("jobs", {"gen": gen, "port": worker + 1}, "worker", params)
