"""`make bench-control-entries`: table entries built from readable values and serialized, per second of processor time.

The reference is the protobuf that p4runtime-shell pins (3.20, pure Python), in its own environment: it only fills the
messages of the first kind of entry, from values that are encoded already.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence

from bench.report import Figure, publish
from catchment.checkout import ROOT
from catchment.controlplane import shell
from catchment.controlplane.client import P4Info, TableEntry
from catchment.controlplane.client.requests import batches, write_request
from catchment.softswitch.build import build
from catchment.wire.generated import p4info_pb2

GOAL = 200_000
ENTRIES, ROUNDS = 2000, 30
_OLD = f"""
import time
from p4.v1 import p4runtime_pb2
best = 0.0
for _ in range(5):
    began = time.process_time()
    request = p4runtime_pb2.WriteRequest()
    for number in range({ENTRIES}):
        entry = request.updates.add(type=1).entity.table_entry
        entry.table_id = 33554433
        entry.match.add(field_id=1).exact.value = (0x020000000000 + number).to_bytes(6, "big")
        entry.action.action.action_id = 16777217
        entry.action.action.params.add(param_id=1, value=bytes([number % 250 + 1]))
    request.SerializeToString()
    best = max(best, {ENTRIES} / (time.process_time() - began))
print(best)
"""


def forwarding() -> list[TableEntry]:
    """Entries with one key field and one parameter."""
    return [
        TableEntry("l2", {"dst": f"02:00:00:00:{n >> 8:02x}:{n & 255:02x}"}, "forward", {"port": n % 250 + 1})
        for n in range(ENTRIES)
    ]


def receivers() -> list[TableEntry]:
    """Entries with two key fields and five parameters, four of them addresses."""
    return [
        TableEntry(
            "receivers",
            {"gen": 1 + n // 64, "port": n % 64},
            "rewrite",
            {
                "dst_mac": f"02:00:00:00:01:{n % 64:02x}",
                "dst_ip": f"10.0.1.{n % 64}",
                "dst_udp": 51836 + n % 3,
                "src_mac": "02:00:00:00:02:01",
                "src_ip": "10.0.2.1",
            },
        )
        for n in range(ENTRIES)
    ]


def admissions() -> list[TableEntry]:
    """Entries of `jobs`, with two key fields and twelve parameters: what a job of 32 workers puts on a switch."""
    return [
        TableEntry(
            "jobs",
            {"gen": 1 + n // 32, "port": n % 32},
            "worker",
            {
                "mode": 1,
                "job": n // 32,
                "group": 1 + n // 32,
                "wid": n % 32,
                "own": 1 << n % 32,
                "base": 64 * (n // 32),
                "mask": 63,
                "full": (1 << 32) - 1,
                "up_port": 33,
                "up_wid": 0,
                "src_ip": f"10.0.1.{n % 32}",
                "src_udp": 51836 + n % 3,
            },
        )
        for n in range(ENTRIES)
    ]


def per_second(entries: Sequence[TableEntry], p4info: P4Info) -> float:
    """The best of some rounds: other load on the machine only ever takes away."""
    best = 0.0
    for _ in range(ROUNDS):
        began = time.process_time()
        for batch in batches((+entry for entry in entries), p4info):
            write_request(1, (1, 1), batch.serialized)
        best = max(best, len(entries) / (time.process_time() - began))
    return best


def old_per_second() -> float:
    """The same, of p4runtime-shell's protobuf."""
    run = subprocess.run([shell.python(), "-c", _OLD], capture_output=True, text=True, check=True)
    return float(run.stdout)


def figures() -> list[Figure]:
    """Entries per second beside the old protobuf, and beside what is aimed for."""
    built = build(ROOT / "p4src" / "luwu.p4", [], {}).p4info
    p4info = P4Info(p4info_pb2.P4Info.FromString(built.SerializeToString()))
    simple = per_second(forwarding(), p4info)
    return [
        Figure("entries of 1 key, 1 parameter", simple, "entries/s", "protobuf 3.20", old_per_second()),
        Figure("entries of 1 key, 1 parameter", simple, "entries/s", "aim", GOAL, 1.0),
        Figure("entries of 2 keys, 5 parameters", per_second(receivers(), p4info), "entries/s", "aim", GOAL, 1.0),
        Figure("entries of 2 keys, 12 parameters", per_second(admissions(), p4info), "entries/s", "aim", GOAL, 1.0),
    ]


if __name__ == "__main__":
    publish("bench-control-entries", figures())
