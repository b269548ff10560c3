"""Push and pull over real sockets and a slow switch: every byte right, whatever the network does."""

from __future__ import annotations

import random
import socket
import threading
from typing import Any

import numpy as np
import pytest
from cluster import LOCAL, PATIENCE, luwu, ring
from numpy.typing import NDArray
from relay import Job, Relay

from catchment.host import Endpoint, Request, Stream, _machines
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType, Flag, Header, Mode, PacketType

NEAR_WRAP = (1 << 32) - 5
CLEAN: dict[str, float] = {}
ROUGH = {"loss": 0.02, "duplicate": 0.02, "reorder": 0.05}
WILD = {"loss": 0.05, "duplicate": 0.1, "reorder": 0.2}


@pytest.fixture
def numbers(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64))


def integers(numbers: np.random.Generator, length: int) -> NDArray[np.int32]:
    return numbers.integers(-(1 << 31), 1 << 31, length).astype(np.int32)


def floats(numbers: np.random.Generator, length: int) -> NDArray[np.float32]:
    """Every magnitude from far below the unit to a little beyond 2**0, which saturates."""
    return (numbers.standard_normal(length) * 2.0 ** numbers.integers(-34, 0, length)).astype(np.float32)


def finish(*requests: Request) -> None:
    for request in requests:
        request.wait(PATIENCE)


@pytest.mark.parametrize("faults", [CLEAN, ROUGH, WILD], ids=["clean", "rough", "wild"])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_reduce_and_broadcast(workers: int, faults: dict[str, float], numbers: np.random.Generator, seed: int) -> None:
    """Several messages of odd lengths in flight at once in both directions, across the wrap of seq."""
    up, down = Stream(gen=7, workers=workers, base_seq=NEAR_WRAP), Stream(gen=8, workers=workers, base_seq=NEAR_WRAP)
    lengths = [1, 64, 65, 63, 129, 5000]
    gradients = [[integers(numbers, n) for n in lengths] for _ in range(workers)]
    layers = [numbers.bytes(n) for n in (1, 1408, 1409, 1407, 40_001)]
    with luwu(workers, gradients=up, parameters=down, seed=seed, **faults) as job:
        sums = [np.zeros(n, np.int32) for n in lengths]
        copies = [[bytearray(len(layer)) for layer in layers] for _ in range(workers)]
        requests = [job.root.pull(into) for into in sums]
        requests += [job.root.push(layer) for layer in layers]
        for worker, own, into in zip(job.workers, gradients, copies, strict=True):
            requests += [worker.push(array) for array in own]
            requests += [worker.pull(buffer) for buffer in into]
        finish(*requests)
    for index, into in enumerate(sums):
        assert np.array_equal(into, formats.add_lanes([own[index] for own in gradients]))
    assert all(bytes(buffer) == layer for own in copies for buffer, layer in zip(own, layers, strict=True))


@pytest.mark.parametrize("faults", [CLEAN, ROUGH, WILD], ids=["clean", "rough", "wild"])
@pytest.mark.parametrize("peers", [1, 2, 5])
def test_all_reduce(peers: int, faults: dict[str, float], numbers: np.random.Generator, seed: int) -> None:
    lengths = [1, 64, 65, 3000]
    vectors = [[integers(numbers, n) for n in lengths] for _ in range(peers)]
    with ring(peers, stream=Stream(gen=9, workers=peers, base_seq=NEAR_WRAP), seed=seed, **faults) as job:
        results = [[np.zeros(n, np.int32) for n in lengths] for _ in range(peers)]
        requests = []
        for peer, own, into in zip(job.peers, vectors, results, strict=True):
            for vector, result in zip(own, into, strict=True):
                requests += [peer.push(vector), peer.pull(result)]
        finish(*requests)
    for index in range(len(lengths)):
        total = formats.add_lanes([own[index] for own in vectors])
        assert all(np.array_equal(into[index], total) for into in results)


@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16, DataType.BF16])
@pytest.mark.parametrize("faults", [CLEAN, ROUGH], ids=["clean", "rough"])
def test_floats_are_summed_as_defined(
    dtype: DataType, faults: dict[str, float], numbers: np.random.Generator, seed: int
) -> None:
    workers, exponent, length = 3, -1, 1000
    values = [floats(numbers, length) for _ in range(workers)]
    into_words = {
        DataType.FP32: lambda v: v,
        DataType.FP16: lambda v: v.astype(np.float16),
        DataType.BF16: formats.bf16_words,
    }
    arrays: list[NDArray[Any]] = [into_words[dtype](v) for v in values]
    arrays[1][3] = {DataType.FP32: np.nan, DataType.FP16: np.inf, DataType.BF16: 0xFF80}[dtype]
    quantized = [formats.quantize(array, dtype, exponent, workers) for array in arrays]
    total = formats.add_lanes([q.lanes for q in quantized])
    with luwu(workers, seed=seed, **faults) as job:
        result = np.zeros(length, np.float32)
        pull = job.root.pull(result)
        pushes = [worker.push(array, exponent) for worker, array in zip(job.workers, arrays, strict=True)]
        finish(pull, *pushes)
    assert np.array_equal(result, formats.dequantize(total, DataType.FP32, exponent, workers))
    assert [push.saturated for push in pushes] == [q.saturated for q in quantized]
    assert [push.nonfinite for push in pushes] == [q.nonfinite for q in quantized] == [0, 1, 0]
    assert pull.flags & Flag.SAT
    assert pull.exponent == exponent
    assert pull.max_raw == int(np.abs(total.astype(np.int64)).max())
    assert pull.max_abs == pull.max_raw * 2.0 ** (exponent + 2 - 30)


def test_saturation_is_told_only_when_there_is_some(numbers: np.random.Generator) -> None:
    with luwu(2) as job:
        result = np.zeros(500, np.float32)
        pull = job.root.pull(result)
        pushes = [worker.push(numbers.random(500, np.float32), 0) for worker in job.workers]
        finish(pull, *pushes)
    assert not pull.flags & Flag.SAT
    assert sum(push.saturated for push in pushes) == 0


@pytest.mark.parametrize("lanes", [8, 64, 256, 1024])
def test_every_vector_size_and_jumbo_parameters(lanes: int, numbers: np.random.Generator) -> None:
    up = Stream(gen=7, workers=2, lanes=lanes)
    down = Stream(gen=8, workers=2, param_bytes=8192)
    own = [integers(numbers, 3 * lanes + 1) for _ in range(2)]
    layer = numbers.bytes(100_000)
    with luwu(2, gradients=up, parameters=down) as job:
        total, copies = np.zeros_like(own[0]), [bytearray(len(layer)) for _ in range(2)]
        requests = [job.root.pull(total), job.root.push(layer)]
        for worker, array, copy in zip(job.workers, own, copies, strict=True):
            requests += [worker.push(array), worker.pull(copy)]
        finish(*requests)
    assert np.array_equal(total, formats.add_lanes(own))
    assert copies == [layer, layer]


@pytest.mark.parametrize("window", [1, 2, 3, 7])
def test_small_windows(window: int, numbers: np.random.Generator, seed: int) -> None:
    own = [integers(numbers, 2000) for _ in range(2)]
    layer = numbers.bytes(20_000)
    with luwu(2, window=window, seed=seed, **ROUGH) as job:
        total, copies = np.zeros_like(own[0]), [bytearray(len(layer)) for _ in range(2)]
        requests = [job.root.pull(total), job.root.push(layer)]
        for worker, array, copy in zip(job.workers, own, copies, strict=True):
            requests += [worker.push(array), worker.pull(copy)]
        finish(*requests)
    assert np.array_equal(total, formats.add_lanes(own))
    assert copies == [layer, layer]


@pytest.mark.parametrize(("worker_window", "root_window"), [(3, 64), (64, 3)])
def test_windows_that_differ(worker_window: int, root_window: int, numbers: np.random.Generator, seed: int) -> None:
    """The smaller one bounds what is in flight; what was sent beyond it is refused and sent again."""
    up, down = Stream(gen=7, workers=1), Stream(gen=8, workers=1)
    own, layer = integers(numbers, 3000), numbers.bytes(30_000)
    with Relay(seed=seed) as relay:
        jobs = [relay.add(Job(7, Mode.REDUCE, 64, 1)), relay.add(Job(8, Mode.BCAST, 64, 1))]
        common = {"gradients": up, "parameters": down, "local": LOCAL, "switch": relay.address}
        with (
            Endpoint.worker(wid=0, window=worker_window, **common) as worker,
            Endpoint.root(window=root_window, **common) as root,
        ):
            for job in jobs:
                job.members |= {worker.local: 0, root.local: None}
            total, copy = np.zeros_like(own), bytearray(len(layer))
            finish(root.pull(total), root.push(layer), worker.push(own), worker.pull(copy))
    assert np.array_equal(total, own)
    assert copy == layer


def test_a_million_elements(numbers: np.random.Generator) -> None:
    own = [integers(numbers, 1_000_000) for _ in range(2)]
    with luwu(2, gradients=Stream(gen=7, workers=2, slots=256)) as job:
        total = np.zeros_like(own[0])
        finish(job.root.pull(total), *(worker.push(array) for worker, array in zip(job.workers, own, strict=True)))
    assert np.array_equal(total, formats.add_lanes(own))


def test_pushed_before_it_is_pulled(numbers: np.random.Generator) -> None:
    """A window at most waits at the receiver, the rest at the sender; nothing is lost."""
    own = integers(numbers, 64 * 200)
    with luwu(1) as job:
        push = job.workers[0].push(own)
        while job.root.stats()["held"] < 64:
            assert not push.done()
        total = np.zeros_like(own)
        finish(job.root.pull(total), push)
        assert job.root.stats()["stalls"]["pull"]["count"] > 0
    assert np.array_equal(total, own)


def test_memory_is_kept_alive_and_requests_may_be_dropped(numbers: np.random.Generator) -> None:
    own = integers(numbers, 50_000)
    with luwu(1) as job:
        total = np.zeros_like(own)
        pull = job.root.pull(total)
        job.workers[0].push(own.copy())  # nobody else holds the copy or the request
        finish(pull)
    assert np.array_equal(total, own)


def test_torch_tensors_and_other_buffers(numbers: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    own = [torch.from_numpy(floats(numbers, 300)).to(torch.bfloat16) for _ in range(2)]
    total = torch.zeros(300)
    layer, copies = memoryview(bytes(range(256))), [torch.zeros(64), np.zeros((4, 64), np.uint8)]
    with luwu(2) as job:
        requests = [job.root.pull(total), job.root.push(layer)]
        for worker, tensor, copy in zip(job.workers, own, copies, strict=True):
            requests += [worker.push(tensor, 0), worker.pull(copy)]
        finish(*requests)
    lanes = [formats.quantize(t.view(torch.uint16).numpy(), DataType.BF16, 0, 2).lanes for t in own]
    assert np.array_equal(total.numpy(), formats.dequantize(formats.add_lanes(lanes), DataType.FP32, 0, 2))
    assert copies[0].numpy().tobytes() == copies[1].tobytes() == bytes(layer)


def test_a_socket_that_is_mostly_full(numbers: np.random.Generator, seed: int) -> None:
    own = integers(numbers, 64 * 300 + 5)
    with Relay(seed=seed, **ROUGH) as relay:
        job = relay.add(Job(9, Mode.ALLREDUCE, 64, 1))
        peer = _machines.ChokedPeer(9, 64, relay.address[1])
        job.members["127.0.0.1", peer.local] = 0
        assert peer.exchange(own.tobytes()) == own.tobytes()
    assert peer.socket_stalls > 10


def test_what_is_on_the_wire() -> None:
    """Every field of a frame, and zeros after the last element although the room was used before."""
    stream = Stream(gen=9, workers=2, base_seq=NEAR_WRAP)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch:
        switch.bind(LOCAL)
        switch.settimeout(PATIENCE)
        with Endpoint.worker(gradients=stream, wid=1, local=LOCAL, switch=switch.getsockname()) as worker:
            frames = {}
            for index, values in enumerate((np.full(64, -2.0, np.float32), np.array([1.0, 8.0], np.float32))):
                worker.push(values, exponent=3)
                while NEAR_WRAP + index not in frames:  # a retransmission may come in between
                    frame = switch.recv(65536)
                    frames.setdefault(Header.unpack(frame).seq, frame)
    fields = {
        "type": PacketType.PA,
        "flags": Flag.LAST,
        "gen": 9,
        "wid": 1,
        "dtype": DataType.FP32,
        "lanes": 64,
        "exp": 3,
    }
    full, short = (
        Header(**fields, seq=NEAR_WRAP).pack() + np.full(64, -(1 << 27), ">i4").tobytes(),
        Header(**fields, seq=NEAR_WRAP + 1).pack() + np.array([1 << 26, 1 << 29] + [0] * 62, ">i4").tobytes(),
    )
    assert list(frames.values()) == [full, short]


def test_peers_that_missed_the_last_acks_hear_them_again(numbers: np.random.Generator) -> None:
    """Peer 2 is a window ahead, so the slots have passed what the others resend; worker 0 is one of the others."""
    count = 16 * 64
    with ring(3, stream=Stream(gen=9, workers=3, slots=16), timeout=60.0) as job:
        vectors = [[integers(numbers, count) for _ in range(2)] for _ in job.peers]
        results = [[np.zeros(count, np.int32) for _ in range(2)] for _ in job.peers]
        job.relay.without_acks_for = 20
        job.relay.without_acks = {peer.local for peer in job.peers[:2]}
        requests = []
        for peer, own, into in zip(job.peers, vectors, results, strict=True):
            for vector, result in zip(own, into, strict=True):
                requests += [peer.push(vector), peer.pull(result)]
        finish(*requests)
    for index in range(2):
        total = formats.add_lanes([own[index] for own in vectors])
        assert all(np.array_equal(into[index], total) for into in results)


def test_a_peer_that_retransmits_still_says_where_it_is() -> None:
    """What the others are ahead of is old to the switch: only a heartbeat is answered with the ack that was lost."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch:
        switch.bind(LOCAL)
        switch.settimeout(PATIENCE)
        stream = Stream(gen=9, workers=2)
        with Endpoint.peer(stream=stream, wid=0, local=LOCAL, switch=switch.getsockname()) as peer:
            peer.push(np.zeros(64, np.int32))
            beats = retransmissions = 0
            while beats < 3:
                header = Header.unpack(switch.recv(65536))
                again = bool(header.type == PacketType.PA and header.flags & Flag.RETX)
                retransmissions += again
                beats += bool(header.type == PacketType.HB and retransmissions >= 30)
                assert retransmissions < 300, "the retransmissions keep the heartbeats back"


def test_statistics(numbers: np.random.Generator, seed: int) -> None:
    own = [integers(numbers, 30_000) for _ in range(2)]
    with luwu(2, seed=seed, **ROUGH) as job:
        total = np.zeros_like(own[0])
        pushes = [worker.push(array) for worker, array in zip(job.workers, own, strict=True)]
        finish(job.root.pull(total), *pushes)
        sent, received = job.workers[0].stats(), job.root.stats()
        pause = threading.Event()
        while received["held"]:  # noted once the last frame is put away, a moment after the pull is done
            pause.wait(0.001)
            received = job.root.stats()
    frames = -(-30_000 // 64)
    assert sent["frames_sent"] == frames + sent["retransmissions"] + sent["heartbeats_sent"]
    assert sent["retransmissions"] > 0
    assert sent["push_latency"]["count"] == received["pull_latency"]["count"] == 1
    assert 0 < sent["push_latency"]["max"] == pytest.approx(pushes[0].latency)
    trips = sent["round_trips"]
    bounds, at_most = zip(*trips["buckets"], strict=True)
    assert list(bounds) == [pytest.approx(2**k * 1e-6) for k in range(24)]
    assert sorted(at_most) == list(at_most) and 0 < at_most[-1] <= trips["count"]
    assert all((n == trips["count"]) == (bound >= trips["max"]) for bound, n in trips["buckets"])
    assert all((n == 0) == (bound < trips["min"]) for bound, n in trips["buckets"])
    assert received["frames_received"] >= frames
    assert sent["in_flight"] == received["held"] == 0
