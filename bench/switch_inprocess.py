"""Frames per second of luwu.p4 in-process on one core, beside a loop that only copies the same frames.

python -m bench.switch_inprocess [--lanes 64] [--workers 4] [--seconds 2]
"""

from __future__ import annotations

import argparse
import struct

from bench.report import Figure, publish
from softswitch import native
from softswitch.build import ROOT, build
from softswitch.inprocess import Switch
from wire.generated.constants import UDP_PORT, Flag, Header, Mode, PacketType

SLOTS = 256
GEN = 7
SWITCH_MAC, SWITCH_IP = 0x0200_0000_00FE, 0x0A00_00FE
SEQ_OFFSET = 14 + 20 + 8 + 10
ROOT_PORT = 20


def _frame(lanes: int, worker: int, seq: int) -> bytes:
    header = Header(
        type=PacketType.PA, flags=Flag.ACKV, gen=GEN, wid=worker, dtype=1, lanes=lanes, seq=seq, credit=seq + SLOTS
    )
    payload = header.pack() + struct.pack(f"!{lanes}I", *((worker << 20) + seq + i for i in range(lanes)))
    udp = struct.pack("!HHHH", 40000, UDP_PORT, 8 + len(payload), 0)
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 28 + len(payload), 7, 0x4000, 64, 17, 0, 0x0A000001 + worker, SWITCH_IP)
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + (0xFFFF - (total & 0xFFFF) - (total >> 16)).to_bytes(2, "big") + ip[12:]
    ethernet = SWITCH_MAC.to_bytes(6, "big") + (0x0200_0000_0001 + worker).to_bytes(6, "big") + b"\x08\x00"
    return bytes(ethernet + ip + udp + payload)


def _set_up(switch: Switch, workers: int) -> None:
    for worker in range(workers):
        switch.insert(
            "jobs",
            {"gen": GEN, "port": worker + 1},
            "worker",
            mode=int(Mode.REDUCE),
            wid=worker,
            own=1 << worker,
            base=0,
            mask=SLOTS - 1,
            full=(1 << workers) - 1,
            job=0,
            group=1,
            up_port=ROOT_PORT,
            up_wid=0,
        )
    switch.insert("own_addresses", {"target": SWITCH_IP}, "answer", mac=SWITCH_MAC)
    switch.insert(
        "receivers",
        {"gen": GEN, "port": ROOT_PORT},
        "rewrite",
        dst_mac=0x0200_0000_0020,
        dst_ip=0x0A000020,
        dst_udp=UDP_PORT,
        src_mac=SWITCH_MAC,
        src_ip=SWITCH_IP,
    )
    switch.multicast(1, range(1, workers + 1))


def measure(lanes: int, workers: int, seconds: float) -> Figure:
    """Every frame is a new contribution; every `workers`-th completes a slot and leaves as a sum."""
    program = build(ROOT / "p4src" / "luwu.p4", defines={"LANES": str(lanes), "SLOTS": str(SLOTS)})
    frames = [(worker + 1, _frame(lanes, worker, seq)) for seq in range(SLOTS) for worker in range(workers)]
    runtime = native.runtime()
    rounds = 20
    while True:
        switch = Switch(program, seed=1)  # sequence numbers begin anew
        _set_up(switch, workers)
        took, left = runtime.replay(switch.dataplane, frames, rounds, SEQ_OFFSET, SLOTS)
        if took > seconds / 3:
            break
        rounds *= 3
    done = rounds * len(frames)
    if left * workers != done:
        raise RuntimeError(f"{left} sums left for {done} contributions of {workers} workers")
    copied = done / runtime.copy_limit(frames, rounds)
    size = len(frames[0][1])
    return Figure(
        f"luwu.p4, {lanes} lanes, {workers} workers, {size} bytes", done / took, "frames/s", "a copy loop", copied
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, nargs="*", default=[8, 64, 256])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    figures = [measure(lanes, arguments.workers, arguments.seconds) for lanes in arguments.lanes]
    publish("switch_inprocess", figures, [f"{SLOTS} slots, one core, batches of 64"])


if __name__ == "__main__":
    main()
