"""Endpoints on shared-memory ports of a real switch with luwu.p4: the sums of tests of UDP, sampled, and deaths."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from catchment.checkout import ROOT
from catchment.controlplane.state.faults import clear_loss, set_loss
from catchment.host import Endpoint, EndpointError, Stream
from catchment.sim.golden import formats
from catchment.sim.lab.shm_lab import ShmLab
from catchment.sim.lab.traffic.shm_port import ShmRawPort
from catchment.wire.generated.constants import DataType

PATIENCE = 240.0
HOSTS = ("w0", "w1", "w2", "opt")
VICTIM = """
import sys
import numpy as np
from catchment.host import Endpoint, Stream
path, gen, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
stream = Stream(gen=gen, workers=2, slots=64)
with Endpoint.worker(gradients=stream, wid=0, local=("10.0.0.1", port), switch=("10.0.0.254", 51836), port=path) as end:
    print("started", flush=True)
    end.push(np.ones(64 * 1_000_000, np.int32)).wait()
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(HOSTS) as lab:
        yield lab


@pytest.fixture
def numbers(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64))


def integers(numbers: np.random.Generator, length: int) -> NDArray[np.int32]:
    return numbers.integers(-(1 << 31), 1 << 31, length).astype(np.int32)


@pytest.mark.parametrize("loss", [0.0, 0.03])
def test_sums_and_parameters_are_exact(loss: float, lab: ShmLab, numbers: np.random.Generator) -> None:
    job = lab.luwu(HOSTS[:3], root="opt", slots=64)
    lengths = [1, 64, 65, 63, 129, 25_000]  # of so many frames some are lost
    gradients = [[integers(numbers, n) for n in lengths] for _ in range(3)]
    layers = [numbers.bytes(n) for n in (1, 1408, 1409, 1407, 40_001)]
    try:
        if loss:
            set_loss(lab.client, [1, 2, 3, 4], loss)
        with (
            lab.endpoint(job, "w0") as w0,
            lab.endpoint(job, "w1") as w1,
            lab.endpoint(job, "w2") as w2,
            lab.endpoint(job, "opt") as root,
        ):
            sums = [np.zeros(n, np.int32) for n in lengths]
            copies = [[bytearray(len(layer)) for layer in layers] for _ in range(3)]
            requests = [root.pull(into) for into in sums] + [root.push(layer) for layer in layers]
            for worker, own, into in zip((w0, w1, w2), gradients, copies, strict=True):
                requests += [worker.push(array) for array in own] + [worker.pull(buffer) for buffer in into]
            for request in requests:
                request.wait(PATIENCE)
            assert root.stats()["rejects"]["source"] == 0
            assert (w0.stats()["retransmissions"] > 0) >= (loss > 0)
    finally:
        clear_loss(lab.client)
    for index, into in enumerate(sums):
        assert np.array_equal(into, formats.add_lanes([own[index] for own in gradients]))
    assert all(bytes(buffer) == layer for own in copies for buffer, layer in zip(own, layers, strict=True))


def test_all_reduce_of_floats(lab: ShmLab, numbers: np.random.Generator) -> None:
    job = lab.allreduce(HOSTS[:3], slots=64)
    vectors = [numbers.standard_normal(3000).astype(np.float32) for _ in range(3)]
    lanes = [formats.quantize(vector, DataType.FP32, 3, 3).lanes for vector in vectors]
    total = formats.dequantize(formats.add_lanes(lanes), DataType.FP32, 3, 3)
    with lab.endpoint(job, "w0") as a, lab.endpoint(job, "w1") as b, lab.endpoint(job, "w2") as c:
        results = [np.zeros(3000, np.float32) for _ in range(3)]
        requests = [end.pull(into) for end, into in zip((a, b, c), results, strict=True)]
        requests += [end.push(vector, 3) for end, vector in zip((a, b, c), vectors, strict=True)]
        for request in requests:
            request.wait(PATIENCE)
    assert all(np.array_equal(into, total) for into in results)


def test_a_killed_worker_comes_back_on_its_port(lab: ShmLab, numbers: np.random.Generator) -> None:
    """The port is free at once, and the next job on it adds as if nothing had been."""
    job = lab.luwu(HOSTS[:2], root="opt", slots=64)
    description = job.describe("w0")
    arguments = [f"shm:{lab.path('w0')}", str(description["gradients"]["gen"]), str(description["local"][1])]
    with lab.endpoint(job, "w1", timeout=120.0) as w1, lab.endpoint(job, "opt", timeout=120.0) as root:
        w1.push(np.ones(64 * 1_000_000, np.int32))
        root.pull(np.zeros(64 * 1_000_000, np.int32))
        with subprocess.Popen(
            [sys.executable, "-c", VICTIM, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as victim:
            assert victim.stdout is not None
            assert victim.stdout.readline() == "started\n"
            while root.stats()["frames_received"] < 1000:
                assert victim.poll() is None
            victim.kill()
    again = lab.luwu(HOSTS[:2], root="opt", slots=64)
    vectors = [integers(numbers, 10_000) for _ in range(2)]
    with lab.endpoint(again, "w0") as w0, lab.endpoint(again, "w1") as w1, lab.endpoint(again, "opt") as root:
        into = np.zeros(10_000, np.int32)
        requests = [root.pull(into), w0.push(vectors[0]), w1.push(vectors[1])]
        for request in requests:
            request.wait(PATIENCE)
    assert np.array_equal(into, vectors[0] + vectors[1])


def test_a_killed_switch_costs_time_only(numbers: np.random.Generator) -> None:
    """SIGKILL in the middle, twice: the endpoints attach again, resend, and the sums are right to the bit.

    One worker gives its next third after the restart only: nobody is done before the switch is killed.
    """
    vectors = [[integers(numbers, 64 * 20_000) for _ in range(3)] for _ in range(2)]
    with ShmLab(("w0", "w1", "opt")) as lab:
        job = lab.luwu(("w0", "w1"), root="opt", slots=128)
        with (
            lab.endpoint(job, "w0", timeout=120.0) as w0,
            lab.endpoint(job, "w1", timeout=120.0) as w1,
            lab.endpoint(job, "opt", timeout=120.0) as root,
        ):
            into = [np.zeros(64 * 20_000, np.int32) for _ in range(3)]
            requests = [*map(root.pull, into), *map(w0.push, vectors[0]), w1.push(vectors[1][0])]
            for share, third in ((5_000, vectors[1][1]), (25_000, vectors[1][2])):
                while root.stats()["frames_received"] < share:
                    assert root.error is None
                lab.kill_switch()
                lab.restart_switch()
                requests.append(w1.push(third))
            for request in requests:
                request.wait(PATIENCE)
            assert root.stats()["socket_errors"] == 2
    for total, one, other in zip(into, *vectors, strict=True):
        assert np.array_equal(total, one + other)


STREAM = Stream(gen=7, workers=1)
ADDRESSES = {"local": ("10.0.0.1", 51836), "switch": ("10.0.0.254", 51836)}


@pytest.mark.parametrize("port", ["", "shm:", "/dev/shm/x", "udp:1"])
def test_a_port_that_is_none(port: str) -> None:
    with pytest.raises(EndpointError, match="a port") as caught:
        Endpoint.worker(gradients=STREAM, wid=0, port=port, **ADDRESSES)
    assert caught.value.kind == "argument"


def test_a_port_needs_addresses(lab: ShmLab) -> None:
    with pytest.raises(EndpointError, match="the local address"):
        Endpoint.worker(
            gradients=STREAM, wid=0, port=f"shm:{lab.path('w0')}", local=("10.0.0.1", 0), switch=("10.0.0.254", 51836)
        )


def test_no_switch_there(tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match="no switch to attach to: No such file") as caught:
        Endpoint.worker(gradients=STREAM, wid=0, port=f"shm:{tmp_path}/none", timeout=0.2, **ADDRESSES)
    assert caught.value.kind == "system"


def test_a_port_that_is_taken(lab: ShmLab) -> None:
    with lab.port("w0"), pytest.raises(EndpointError, match="port 1 belongs to process"):
        Endpoint.worker(gradients=STREAM, wid=0, port=f"shm:{lab.path('w0')}", timeout=0.2, **ADDRESSES)


def test_frames_that_a_port_cannot_carry() -> None:
    with ShmLab(["w0"], options="bytes=128") as lab, pytest.raises(EndpointError, match="bytes=N"):
        Endpoint.worker(gradients=STREAM, wid=0, port=f"shm:{lab.path('w0')}", **ADDRESSES)


def test_frames_from_elsewhere_are_dropped_and_counted(rng: random.Random) -> None:
    """Plain traffic that the switch floods is none of the endpoint's business; what still floats goes with the lab."""
    with (
        ShmLab(("w0", "w1")) as lab,
        Endpoint.worker(gradients=STREAM, wid=0, port=f"shm:{lab.path('w0')}", **ADDRESSES) as end,
    ):
        # The switch lets a host speak in its own name only.
        own = bytes.fromhex(lab.topology.host("w1").mac.replace(":", ""))
        stranger = b"\xff" * 6 + own + bytes.fromhex("88b5") + rng.randbytes(200)
        with lab.port("w1") as port:
            done = threading.Event()
            while end.stats()["rejects"]["source"] < 10 and not done.wait(0.001):
                port.send(stranger)
        assert end.stats()["frames_received"] == 0


def test_scapy_talks_on_a_port(lab: ShmLab) -> None:
    with ShmRawPort(lab.path("w0"), mac="02:00:00:00:00:01") as port:
        assert port.resolve("10.0.0.254", "10.0.0.1") == "02:00:00:00:fe:01"
