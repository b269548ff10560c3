"""Thousands of updates from many clients at once, in every atomicity, while frames flow; long under the sanitizers."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from frame_ports import FramePorts, probe
from raw_client import Names, RawClient, UpdatesFailedError, update
from sanitizers import build_sanitized, run_group
from server_programs import Program

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

LONG = "CATCHMENT_LONG_LOAD" in os.environ  # set by the sanitizer run below
CLIENTS = 8
ROUNDS = 60 if LONG else 6
BATCH = 60
DST = 0x020000000001
IN_PORT, OUT_PORT = 1, 2
ATOMICITIES = ("CONTINUE_ON_ERROR", "ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")


@pytest.fixture
def wired(ports: FramePorts, start: Callable[..., SwitchProcess], kinds: Program, tmp_path: Path) -> SwitchProcess:
    """A switch on four interfaces."""
    return start(
        grpc=f"unix:{tmp_path}/switch.sock",
        ports=ports.interfaces,
        prefix=ports.prefix,
        program=kinds.shared_object,
        p4info=kinds.p4info_file,
        extra=("--log-level", "error"),
        timeout=60.0,
    )


class Owner:
    """A client that owns the keys of its number, and knows what the switch must hold of them."""

    def __init__(self, number: int, names: Names, rng: random.Random) -> None:
        self.number = number
        self.names = names
        self.rng = rng
        self.held: dict[int, int] = {}

    def entity(self, key: int, value: int) -> p4runtime_pb2.Entity:
        match = {1: self.number << 32 | key, 2: 7}
        return self.names.entry("exact_t", match, ("forward", [value]))

    def batch(self) -> list[tuple[str, int, int]]:
        """Random updates of its keys, some of them wrong."""
        kinds = self.rng.choices(("INSERT", "MODIFY", "DELETE"), k=BATCH)
        return [(kind, self.rng.randrange(300), self.rng.randrange(512)) for kind in kinds]

    def expected(self, batch: list[tuple[str, int, int]], atomicity: str) -> bool:
        """Applies the batch to what must be held; whether all of it succeeds."""
        after, fine = dict(self.held), True
        for kind, key, value in batch:
            right = (key in after) == (kind != "INSERT")
            fine &= right
            if not right and atomicity != "CONTINUE_ON_ERROR":
                return False
            if right and kind == "DELETE":
                del after[key]
            elif right:
                after[key] = value
        self.held = after
        return fine

    def work(self, address: str) -> None:
        role = f"role{self.number}"
        with RawClient(address) as client:
            assert client.arbitrate((0, 1), role=role) == 0
            for _ in range(ROUNDS):
                batch, atomicity = self.batch(), self.rng.choice(ATOMICITIES)
                fine = self.expected(batch, atomicity)
                request = client.write_request(
                    *[update(kind, self.entity(key, value)) for kind, key, value in batch], role=role
                )
                request.atomicity = p4runtime_pb2.WriteRequest.Atomicity.Value(atomicity)
                try:
                    client.send_write(request)
                    assert fine
                except UpdatesFailedError:
                    assert not fine


def held(client: RawClient, names: Names) -> dict[int, int]:
    found = {}
    for entity in client.read(names.entry("exact_t")):
        match = {field.field_id: int.from_bytes(field.exact.value, "big") for field in entity.table_entry.match}
        if match[2] == 7:
            found[match[1]] = int.from_bytes(entity.table_entry.action.action.params[0].value, "big")
    return found


@pytest.mark.sampled(4)
def test_many_clients_while_frames_flow(
    wired: SwitchProcess, ports: FramePorts, names: Names, rng: random.Random
) -> None:
    owners = [Owner(number, names, random.Random(rng.random())) for number in range(1, CLIENTS + 1)]
    done = threading.Event()
    with RawClient(wired.address) as watcher:
        assert watcher.arbitrate((0, 1)) == 0
        watcher.insert(names.entry("exact_t", {1: DST, 2: IN_PORT}, ("forward", [OUT_PORT])))

        def read() -> None:
            while not done.is_set():
                watcher.read(names.entry("exact_t"), p4runtime_pb2.Entity(counter_entry={}))

        def churn() -> None:
            """Streams that come and go, and what is no request at all."""
            while not done.is_set():
                with RawClient(wired.address) as client:
                    client.arbitrate((0, rng.randrange(1, 1 << 32)), role=f"passing{rng.randrange(4)}")
                    with pytest.raises(grpc.RpcError):
                        client.stub.Write(client.write_request(role="nobody"), timeout=120)

        with ThreadPoolExecutor(CLIENTS + 2) as pool:
            others = [pool.submit(read), pool.submit(churn)]
            work = [pool.submit(owner.work, wired.address) for owner in owners]
            sent = 0
            try:
                while not all(one.done() for one in work):
                    for _ in range(20):
                        ports.send(IN_PORT, probe(DST, tail=sent.to_bytes(4, "big")))
                        sent += 1
                    for number in range(sent - 20, sent):
                        assert ports.receive(OUT_PORT)[-4:] == number.to_bytes(4, "big")
            finally:
                done.set()
            for one in (*work, *others):
                one.result()
        expected = {owner.number << 32 | key: value for owner in owners for key, value in owner.held.items()}
        assert held(watcher, names) == expected
        assert sent > 0
    wired.check()


@pytest.mark.slow
def test_many_clients_under_the_sanitizers(seed: int) -> None:
    environment = {
        "CATCHMENT_SWITCH": str(build_sanitized("catchment-switch") / "softswitch" / "server" / "catchment-switch"),
        "CATCHMENT_LONG_LOAD": "1",
        "CATCHMENT_SEED": str(seed),
        # gRPC keeps its threads' things at exit; what is freed stays in memory for a while, and tests bound memory.
        "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    # Every test of the server, and this one longer: a finding ends the switch, which then fails them.
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", str(Path(__file__).parent)]
    result = run_group(command, environment)
    assert result.returncode == 0, f"seed {seed}\n{result.stdout[-6000:]}{result.stderr[-2000:]}"
