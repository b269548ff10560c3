"""Several packet threads give what one gives: sums exact, every frame counted, whatever the order of arrival."""

from __future__ import annotations

import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from frame_ports import FramePorts
from google.protobuf import text_format
from sanitizers import build_native, run_group
from server_programs import EXECUTABLE

from bench.aggregation import GROUP, ROOT_PORT, entries, frame
from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient, TableEntry
from catchment.softswitch.admin import SwitchAdmin
from catchment.softswitch.build import build
from catchment.softswitch.process import SwitchProcess

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

LANES, WORKERS, CHUNK, CHUNKS = 8, 4, 100, 8
HEADERS = 14 + 20 + 8 + 22
SEQ = 14 + 20 + 8 + 10
ROOT_NUMBER = WORKERS + 1  # of the interface


@pytest.fixture
def five() -> Iterator[FramePorts]:
    """Four workers' interfaces and the root's."""
    made = FramePorts(WORKERS + 1)
    yield made
    made.close()


def expected(seq: int) -> list[int]:
    return [sum((worker << 20) + seq + lane for worker in range(WORKERS)) for lane in range(LANES)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sums_are_exact_and_every_frame_is_counted(
    threads: int, five: FramePorts, start: Callable[..., SwitchProcess], tmp_path: Path, rng: random.Random
) -> None:
    built = build(ROOT / "p4src" / "luwu.p4", defines={"LANES": str(LANES), "SLOTS": "256"})
    info = tmp_path / "luwu.p4info.txt"
    info.write_text(text_format.MessageToString(built.p4info))
    names = {number: f"s{number}" for number in range(1, WORKERS + 1)} | {ROOT_PORT: f"s{ROOT_NUMBER}"}
    address = f"unix:{tmp_path}/switch.sock"
    switch = start(
        grpc=address, ports=names, prefix=five.prefix, program=built.shared_object, p4info=info,
        extra=("--admin", f"{tmp_path}/admin", "--workers", str(threads)),
    )  # fmt: skip
    with SwitchClient.connect(address, p4info=info, timeout=60.0) as client:
        client.insert(*(TableEntry(e.table, dict(e.match), e.action, dict(e.params)) for e in entries(WORKERS)))
        client.set_group(GROUP, range(1, WORKERS + 1))
    root = five.sockets[ROOT_NUMBER]
    sent = returned = 0
    for chunk in range(CHUNKS):
        seqs = range(chunk * CHUNK, (chunk + 1) * CHUNK)
        batch = [(worker, seq) for seq in seqs for worker in range(WORKERS)]
        batch += rng.choices(batch, k=len(batch) // 5)  # sent again
        rng.shuffle(batch)
        for worker, seq in batch:
            five.send(worker + 1, frame(LANES, worker, seq))
        sent += len(batch)
        missing = set(seqs)
        while missing:
            assert select.select([root], [], [], 60.0)[0], f"no sum of {sorted(missing)}: {switch.output}"
            data = root.recv(2048)
            returned += 1
            seq = int.from_bytes(data[SEQ : SEQ + 4], "big")
            lanes = [int.from_bytes(data[at : at + 4], "big") for at in range(HEADERS, HEADERS + 4 * LANES, 4)]
            assert lanes == expected(seq), seq
            missing.discard(seq)
    with SwitchAdmin(tmp_path / "admin") as admin:
        deadline = time.monotonic() + 60
        while True:
            ports = admin.ports()
            by_program = sum(port["drops"]["dropped by the program"] for port in ports)
            counted = (
                sum(port["rx_packets"] for port in ports),
                sum(port["tx_packets"] for port in ports) + by_program,
            )
            if counted == (sent, sent):
                break
            assert time.monotonic() < deadline and max(counted) <= sent, ports
            time.sleep(0.01)
    assert sum(port["missed"] + sum(port["drops"].values()) for port in ports) == by_program
    leaving = next(port["tx_packets"] for port in ports if port["port"] == ROOT_PORT)
    while returned < leaving:  # sums of frames that were sent again
        assert select.select([root], [], [], 60.0)[0], f"{returned} of {leaving}"
        root.recv(2048)
        returned += 1
    assert not select.select([root], [], [], 0.0)[0]


@pytest.mark.parametrize("threads", ["0", "65", "two"])
def test_a_wrong_number_of_threads_is_refused(threads: str) -> None:
    command = [str(EXECUTABLE), "--workers", threads]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert "--workers" in result.stderr


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_the_same_under_the_thread_sanitizer(seed: int) -> None:
    folder = ROOT / "build" / "thread-sanitizer"
    # Fences are not modelled; and protobuf lays its objects out differently when it is sanitized, which it is not here.
    flags = "-fsanitize=thread -U__SANITIZE_THREAD__ -Wno-tsan -g -O1"
    build_native(folder, ["catchment-switch"], "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_FLAGS={flags}")
    environment = {
        "CATCHMENT_SEED": str(seed),
        "CATCHMENT_SWITCH": str(folder / "softswitch" / "server" / "catchment-switch"),
        # gRPC and protobuf are not instrumented.
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:halt_on_error=1:exitcode=66",
    }
    tests = [__file__, str(Path(__file__).with_name("test_switch_ports.py"))]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    result = run_group(command, environment)
    assert result.returncode == 0, f"{result.stdout[-6000:]}"
