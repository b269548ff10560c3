"""NICs in hardware and endpoints in software in one job around p4src/luwu.p4: the same sums at both."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from transport_frames import colons, dots
from transport_network import ROOT_PORT, SWITCH_IP, Job, embedded_switch, ip_of, mac_of, settings_of
from transport_nic import VECTOR_BYTES, Meta, Nic, StreamSettings

from catchment.host import Endpoint, Stream
from catchment.rtl.generated.nic_regs import Role
from catchment.sim.world import Faults, FaultStream
from catchment.sim.world.star import Inject
from catchment.wire.generated.constants import UDP_PORT, DataType, Mode

LANES = VECTOR_BYTES // 4
BASE = 0xFFFF_FFE0
PATIENCE = 120.0
SWITCH_MAC_TEXT = "02:00:0a:00:00:fe"


class Bridge:
    """The switch's ports: some lead to NICs, one through a UDP socket to a software endpoint."""

    def __init__(self, inject: Inject, nics: dict[int, Nic], software: int, rng: random.Random, loss: float) -> None:
        self._inject, self._nics, self._software = inject, nics, software
        self._faults, seed = Faults(loss=loss), rng.getrandbits(64)
        ports = {*nics, software}
        self._up = {port: FaultStream(seed, 2 * port) for port in ports}
        self._down = {port: FaultStream(seed, 2 * port + 1) for port in ports}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.peer: tuple[str, int] | None = None

    def _wrapped(self, payload: bytes) -> bytes:
        from scapy.layers.inet import IP, UDP
        from scapy.layers.l2 import Ether
        from scapy.packet import Raw

        return bytes(
            Ether(dst=SWITCH_MAC_TEXT, src=colons(mac_of(self._software)))
            / IP(src=dots(ip_of(self._software)), dst=dots(SWITCH_IP))
            / UDP(sport=UDP_PORT, dport=UDP_PORT, chksum=0)
            / Raw(payload)
        )

    def _switch(self, port: int, frame: bytes) -> None:
        if self._up[port].next(self._faults).lost:
            return
        for out, answer in self._inject(port, frame):
            if self._down[out].next(self._faults).lost:
                continue
            if out != self._software:
                self._nics[out].receive(answer)
            elif self.peer is not None:
                self.socket.sendto(answer[42:], self.peer)

    def run(self, done: Callable[[], bool]) -> None:
        """Wait until `done`; AssertionError when it takes too long."""
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, f"no progress: {[nic.status() for nic in self._nics.values()]}"
            for port, nic in self._nics.items():
                nic.run(500)
                for _, frame in nic.frames():
                    self._switch(port, frame)
            while True:
                try:
                    payload, self.peer = self.socket.recvfrom(65536)
                except BlockingIOError:
                    break
                self._switch(self._software, self._wrapped(payload))


@contextmanager
def job_of(
    nics: dict[int, Nic], jobs: tuple[Job, ...], software: int, rng: random.Random, loss: float
) -> Iterator[Bridge]:
    with ExitStack() as stack:
        for nic in nics.values():
            stack.enter_context(nic)
            nic.start()
        bridge = Bridge(embedded_switch(*jobs), nics, software, rng, loss)
        stack.enter_context(bridge.socket)
        yield bridge


def vectors_of(values: np.ndarray) -> list[bytes]:
    data = np.ascontiguousarray(values).tobytes()
    return [data[at : at + VECTOR_BYTES] for at in range(0, len(data), VECTOR_BYTES)]


def push_all(nic: Nic, values: np.ndarray, dtype: DataType) -> None:
    vectors = vectors_of(values)
    for index, vector in enumerate(vectors):
        size = len(vector) if dtype == DataType.BYTES else VECTOR_BYTES
        nic.push(vector.ljust(VECTOR_BYTES, b"\0"), Meta(dtype, last=index == len(vectors) - 1, bytes=size))


def settled(nic: Nic, got: list[tuple[bytes, Meta]], count: int) -> bool:
    got += [(data, meta) for _, data, meta in nic.vectors()]
    return len(got) >= count


def numbers(rng: random.Random, count: int) -> np.ndarray:
    return np.random.default_rng(rng.getrandbits(64)).integers(-(1 << 31), 1 << 31, count).astype(np.int32)


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_all_reduce_of_a_nic_and_an_endpoint(loss: float, rng: random.Random) -> None:
    count = 60
    job = Job(gen=11, mode=Mode.ALLREDUCE, workers=2)
    stream = StreamSettings(gen=11, base_seq=BASE, window=64, slots=64)
    mine, theirs = numbers(rng, count * LANES), numbers(rng, count * LANES)
    nic = Nic(Role.WORKER, settings_of(0, stream, stream, all_reduce=True, rto=20_000), rng.getrandbits(32))
    with job_of({0: nic}, (job,), 1, rng, loss) as bridge:
        where = bridge.socket.getsockname()
        shared = Stream(gen=11, workers=2, slots=64, base_seq=BASE)
        with Endpoint.peer(stream=shared, wid=1, local=("127.0.0.1", 0), switch=where, timeout=PATIENCE) as peer:
            result = np.zeros(count * LANES, np.int32)
            requests = [peer.pull(result), peer.push(theirs)]
            push_all(nic, mine, DataType.INT32)
            got: list[tuple[bytes, Meta]] = []
            bridge.run(lambda: settled(nic, got, count) and all(request.done() for request in requests))
            with np.errstate(over="ignore"):
                expected = mine + theirs
            assert np.array_equal(result, expected)
            assert b"".join(data for data, _ in got) == expected.tobytes()
            assert [meta.last for _, meta in got] == [False] * (count - 1) + [True]
            assert all(meta.dtype == DataType.INT32 for _, meta in got)
        assert set(nic.rejects()) <= {"DUPLICATE", "WINDOW"}


@pytest.mark.parametrize("root_is_nic", [True, False], ids=["root-nic", "root-software"])
def test_gradients_and_parameters_between_nics_and_endpoints(root_is_nic: bool, rng: random.Random) -> None:
    """Two workers and a root, one of the three in software."""
    count, size, loss = 40, 40 * VECTOR_BYTES - 100, 0.03
    up = Job(gen=21, mode=Mode.REDUCE, workers=2)
    down = Job(gen=22, mode=Mode.BCAST, workers=2, base_slot=64, row=1)
    sums = StreamSettings(gen=21, base_seq=BASE, window=64, slots=64)
    weights = StreamSettings(gen=22, base_seq=5, window=64, slots=64)
    parts = [numbers(rng, count * LANES) for _ in range(2)]
    parameters = np.frombuffer(rng.randbytes(size), np.uint8)
    software = 1 if root_is_nic else ROOT_PORT
    nics = {
        port: Nic(
            Role.ROOT if port == ROOT_PORT else Role.WORKER,
            settings_of(port, *((weights, sums) if port == ROOT_PORT else (sums, weights)), rto=20_000),
            rng.getrandbits(32),
        )
        for port in {0, 1, ROOT_PORT} - {software}
    }
    gradients = Stream(gen=21, workers=2, slots=64, base_seq=BASE)
    layers = Stream(gen=22, workers=2, slots=64, base_seq=5, param_bytes=VECTOR_BYTES)
    with job_of(nics, (up, down), software, rng, loss) as bridge:
        common = {"local": ("127.0.0.1", 0), "switch": bridge.socket.getsockname(), "timeout": PATIENCE}
        if root_is_nic:
            endpoint = Endpoint.worker(gradients=gradients, parameters=layers, wid=1, **common)
        else:
            endpoint = Endpoint.root(gradients=gradients, parameters=layers, **common)
        with endpoint:
            pulled = np.zeros(size, np.uint8) if root_is_nic else np.zeros(count * LANES, np.int32)
            requests = [endpoint.pull(pulled), endpoint.push(parts[1] if root_is_nic else parameters)]
            for port, nic in nics.items():
                if port == ROOT_PORT:
                    push_all(nic, parameters, DataType.BYTES)
                else:
                    push_all(nic, parts[port], DataType.INT32)
            got: dict[int, list[tuple[bytes, Meta]]] = {port: [] for port in nics}
            bridge.run(
                lambda: (
                    min(settled(nic, got[port], count) for port, nic in nics.items())
                    and all(request.done() for request in requests)
                )
            )
            with np.errstate(over="ignore"):
                expected = (parts[0] + parts[1]).tobytes()
            for port in nics:
                data = b"".join(vector[: meta.bytes] for vector, meta in got[port])
                assert data == (expected if port == ROOT_PORT else parameters.tobytes())
                assert got[port][-1][1].last
            assert pulled.tobytes() == (parameters.tobytes() if root_is_nic else expected)
