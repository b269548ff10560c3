"""`make bench-switch-updates`: table updates per second through P4Runtime, beside empty calls of the same size.

The figure is updates per second of the switch process's processor time, all its threads and gRPC included, so that
neither the Python client nor other load on the machine counts. The reference is what the same requests cost when the
switch refuses them at the door (wrong device id): gRPC and parsing alone.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from shutil import copyfile
from statistics import median

import grpc
from google.protobuf import text_format

from bench.report import Figure, publish
from catchment.checkout import ROOT
from catchment.softswitch.build import build
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2, p4runtime_pb2_grpc

ENTRIES, GOAL = 4000, 100_000
BATCHES = (1, 100, 1000)
ROUNDS = 5

Call = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Ids:
    """P4Info ids of the table that is written."""

    table: int
    action: int


def requests(ids: Ids, kind: str, batch: int, device_id: int) -> list[bytes]:
    """ENTRIES updates of `l2`, `batch` to a request, serialized."""
    result = []
    for first in range(0, ENTRIES, batch):
        request = p4runtime_pb2.WriteRequest(device_id=device_id)
        request.election_id.low = 1
        for number in range(first, min(first + batch, ENTRIES)):
            update = request.updates.add(type=p4runtime_pb2.Update.Type.Value(kind))
            entry = update.entity.table_entry
            entry.table_id = ids.table
            entry.match.add(field_id=1).exact.value = (0x020000000000 + number * 2654435761 % (1 << 40)).to_bytes(
                6, "big"
            )
            entry.action.action.action_id = ids.action
            value = (number + len(kind)) % 500 + 1
            entry.action.action.params.add(param_id=1).value = value.to_bytes(1 + value // 256, "big")
        result.append(request.SerializeToString())
    return result


def processor_time(pid: int) -> float:
    """Seconds of processor time that a process has used (Linux: the clock id of its CPU clock)."""
    return time.clock_gettime((~pid << 3) | 2)


def seconds(pid: int, call: Call, messages: Sequence[bytes]) -> float:
    """Processor time of the switch for all of them, one after the other."""
    start = processor_time(pid)
    for message in messages:
        call(message)
    return processor_time(pid) - start


def refused(call: Call) -> Call:
    """The same call, its refusal expected."""

    def one(message: bytes) -> None:
        with contextlib.suppress(grpc.RpcError):
            call(message)

    return one


def measure(pid: int, call: Call, ids: Ids, batch: int) -> list[Figure]:
    """Insert, modify and delete all entries, ROUNDS times; the medians count."""
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in ("INSERT", "MODIFY", "DELETE")}
    for _ in range(ROUNDS):
        for kind, results in times.items():
            took = seconds(pid, call, requests(ids, kind, batch, 1))
            results.append((took, seconds(pid, refused(call), requests(ids, kind, batch, 2))))
    figures = []
    for kind, results in times.items():
        took, empty = (median(column) for column in zip(*results, strict=True))
        name, value, unit = f"{kind}, {batch} a request", ENTRIES / took, "updates/s"
        figures.append(Figure(name, value, unit, "refused at the door", ENTRIES / empty))
        if batch > 1:
            figures.append(Figure(name, value, unit, f"goal {GOAL:,}", GOAL, goal=1.0))
    return figures


def measure_all(batches: Sequence[int] = BATCHES) -> list[Figure]:
    """Start a switch and measure it with each number of updates to a request."""
    built = build(ROOT / "p4src" / "luwu.p4")
    table = next(one for one in built.p4info.tables if one.preamble.alias == "l2")
    action = next(one for one in built.p4info.actions if one.preamble.alias == "forward")
    ids = Ids(table.preamble.id, action.preamble.id)
    with tempfile.TemporaryDirectory() as folder:
        program, p4info = Path(folder) / "luwu.so", Path(folder) / "luwu.p4info.txt"
        copyfile(built.shared_object, program)
        p4info.write_text(text_format.MessageToString(built.p4info))
        with SwitchProcess(program=program, p4info=p4info) as switch, grpc.insecure_channel(switch.address) as channel:
            bids: SimpleQueue[p4runtime_pb2.StreamMessageRequest | None] = SimpleQueue()
            bid = p4runtime_pb2.StreamMessageRequest()
            bid.arbitration.device_id = bid.arbitration.election_id.low = 1
            bids.put(bid)
            stream = p4runtime_pb2_grpc.P4RuntimeStub(channel).StreamChannel(iter(bids.get, None))
            next(stream)
            call = channel.unary_unary("/p4.v1.P4Runtime/Write")
            figures = [figure for batch in batches for figure in measure(switch.pid, call, ids, batch)]
            bids.put(None)
    return figures


def main() -> None:
    """Measure and publish."""
    notes = [f"one client, one request at a time, {ENTRIES} entries of table l2"]
    publish("switch_updates", measure_all(), notes)


if __name__ == "__main__":
    main()
