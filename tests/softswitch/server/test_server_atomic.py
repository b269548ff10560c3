"""DATAPLANE_ATOMIC: a frame meets the tables as they were before a batch or after it, never in between."""

from __future__ import annotations

import os
import threading

import pytest
from frame_ports import FramePorts, probe, results
from raw_client import Names, RawClient, UpdatesFailedError, update

from catchment.wire.generated import p4runtime_pb2

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

ABORTED, ALREADY_EXISTS = 10, 6
DST, ADDRESS = 0x020000000001, 0x0A000001
IN_PORT, OUT_PORT = 1, 2
FILLERS = 300  # updates between the two that a frame sees


def write_atomic(client: RawClient, *updates: p4runtime_pb2.Update) -> None:
    request = client.write_request(*updates)
    request.atomicity = p4runtime_pb2.WriteRequest.DATAPLANE_ATOMIC
    client.send_write(request)


def visible(names: Names, value: int) -> list[p4runtime_pb2.Entity]:
    """The two entries that a probe meets, one at each end of a batch."""
    return [
        names.entry("lpm_t", {1: ("lpm", ADDRESS, 32)}, ("set_lpm", [value])),
        names.entry("optional_t", {}, ("set_optional", [value]), priority=1),
    ]


def batch(names: Names, value: int) -> list[p4runtime_pb2.Update]:
    first, last = visible(names, value)
    between = [names.entry("exact_t", {1: n, 2: 9}, ("forward", [value])) for n in range(FILLERS)]
    return [update("MODIFY", entity) for entity in (first, *between, last)]


@pytest.mark.sampled(4)
def test_frames_never_see_half_a_batch(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.insert(names.entry("exact_t", {1: DST, 2: IN_PORT}, ("forward", [OUT_PORT])), *visible(names, 0))
    wired.insert(*[names.entry("exact_t", {1: n, 2: 9}, ("forward", [0])) for n in range(FILLERS)])
    rounds = 40
    done = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        try:
            for value in range(1, rounds + 1):
                write_atomic(wired, *batch(names, value))
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        for _ in range(20):
            ports.send(IN_PORT, probe(DST, address=ADDRESS))
        for _ in range(20):
            result = results(ports.receive(OUT_PORT))
            seen.add((result["lpm"], result["optional"]))
    writer.join()
    assert not failed, failed
    assert {first for first, _ in seen} <= set(range(rounds + 1))
    assert [pair for pair in seen if pair[0] != pair[1]] == []
    assert len(seen) > 1, "no frame came between two batches: the test shows nothing"


@pytest.mark.sampled(4)
def test_a_batch_that_fails_leaves_no_trace(wired: RawClient, ports: FramePorts, names: Names) -> None:
    wired.insert(names.entry("exact_t", {1: DST, 2: IN_PORT}, ("forward", [OUT_PORT])), *visible(names, 0))
    twice = update("INSERT", visible(names, 2)[0])
    with pytest.raises(UpdatesFailedError) as caught:
        write_atomic(wired, *[update("MODIFY", entity) for entity in visible(names, 1)], twice)
    assert [code for code, _ in caught.value.errors] == [ABORTED, ABORTED, ALREADY_EXISTS]
    ports.send(IN_PORT, probe(DST, address=ADDRESS))
    result = results(ports.receive(OUT_PORT))
    assert (result["lpm"], result["optional"]) == (0, 0)
