"""One packet thread serves network interfaces and shared memory together, and faults act on both."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from frame_ports import PROBE_TYPE, FramePorts
from server_programs import Program, compiled

from catchment.softswitch.process import SwitchProcess
from catchment.softswitch.shm import Port


@pytest.fixture(scope="session")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """wires.p4: port 1 to 2 and back, 3 to 4 and back."""
    return compiled("wires", tmp_path_factory.mktemp("wires"))


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("p")


@pytest.fixture
def interfaces() -> Iterator[FramePorts]:
    ports = FramePorts(1)
    yield ports
    ports.close()


def frame(rng: random.Random) -> bytes:
    return rng.randbytes(12) + PROBE_TYPE + rng.randbytes(rng.randrange(46, 1400))


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_an_interface_is_served_beside_busy_memory(
    interfaces: FramePorts, start: Callable[..., SwitchProcess], wires: Program, folder: Path, rng: random.Random
) -> None:
    """Ports 3 and 4 exchange frames without a pause; those between the interface and port 2 get through."""
    shared = {port: f"shm:{folder}/{port}" for port in (2, 3, 4)}
    start(
        ports=interfaces.interfaces | shared,
        grpc=f"unix:{folder}/grpc",
        prefix=interfaces.prefix,
        program=wires.shared_object,
        p4info=wires.p4info_file,
    )
    stop = threading.Event()
    passed = [0]

    def flood() -> None:
        with Port.attach(folder / "3", timeout=60.0) as three, Port.attach(folder / "4", timeout=60.0) as four:
            batch = [bytes(64)] * 64
            while not stop.is_set():
                three.send(batch, timeout=60.0)
                passed[0] += len(four.receive(timeout=1.0))

    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        with Port.attach(folder / "2", timeout=60.0) as two:
            for _ in range(200):
                there, back = frame(rng), frame(rng)
                interfaces.send(1, there)
                assert two.receive(timeout=60.0) == [there]
                two.send(back, timeout=60.0)
                assert interfaces.receive(1, timeout=60.0) == back
            while passed[0] <= 200:
                assert flooding.is_alive()
                flooding.join(0.01)
    finally:
        stop.set()
        flooding.join()


def test_faults_act_on_memory_too(
    start: Callable[..., SwitchProcess], wires: Program, folder: Path, rng: random.Random, seed: int
) -> None:
    start(
        ports={port: f"shm:{folder}/{port}" for port in (1, 2)},
        program=wires.shared_object,
        p4info=wires.p4info_file,
        extra=("--fault", f"1:loss=0.3,seed={seed}"),
    )
    sent = [frame(rng) for _ in range(1000)]
    last = bytes(12) + PROBE_TYPE + b"the last frame".ljust(46)
    got: list[bytes] = []
    with Port.attach(folder / "1", timeout=60.0) as one, Port.attach(folder / "2", timeout=60.0) as two:
        one.send(sent, timeout=60.0)
        while last not in got:  # it may be lost, too
            one.send(last, timeout=60.0)
            got += two.receive(timeout=0.1)
    got = got[: got.index(last)]
    assert 500 < len(got) < 900
    remaining = iter(sent)
    assert all(any(frame == other for other in remaining) for frame in got)
