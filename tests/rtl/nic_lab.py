"""Whole NICs with their drivers around one switch: what a program on each host would do, in one process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from transport_network import CALM, ROOT_PORT, SWITCH_IP, SWITCH_MAC, Job, NicNetwork, ip_of, mac_of

from catchment.rtl.driver.memory import PAGE, Buffer, PinnedMemory
from catchment.rtl.driver.nic import Nic
from catchment.rtl.driver.request import Request
from catchment.rtl.driver.settings import NicSettings, StreamSettings
from catchment.rtl.generated.nic_regs import Role
from catchment.rtl.harness.verilated_nic import Pace, VerilatedNic
from catchment.sim.world.star import Hops, Inject
from catchment.wire.generated.constants import DataType

EVEN = Pace()
WORDS = {DataType.FP32: np.float32, DataType.FP16: np.float16, DataType.BF16: np.uint16, DataType.INT32: np.int32}


@dataclass
class Port:
    """A simulated NIC as the network wants it: a clock that runs, frames in and out."""

    nic: VerilatedNic
    cut: int = 0

    @property
    def now(self) -> int:
        return self.nic.now

    def run(self, clocks: int) -> None:
        self.nic.run(clocks)

    def frames(self) -> list[tuple[int, bytes]]:
        sent = self.nic.frames()
        self.cut += sum(frame.cut for frame in sent)
        return [(frame.first, frame.data) for frame in sent if not frame.cut]

    def receive(self, frame: bytes) -> None:
        self.nic.receive(frame)

    def status(self) -> str:
        return f"{self.nic.now} clocks, {self.nic.waiting} frames wait"


@dataclass
class Bus:
    """The registers of one NIC; while its driver waits, the whole laboratory goes on."""

    nic: VerilatedNic
    advance: Callable[[], None]

    def read(self, address: int) -> int:
        return self.nic.read(address)

    def write(self, address: int, value: int) -> None:
        self.nic.write(address, value)

    def relax(self) -> None:
        self.advance()


@dataclass
class Host:
    """One machine: memory, NIC, driver."""

    port: Port
    memory: PinnedMemory
    driver: Nic

    def push(self, values: NDArray[Any] | bytes, dtype: DataType, exponent: int = 0) -> Request:
        raw = values if isinstance(values, bytes) else values.tobytes()
        buffer = self.memory.allocate(len(raw))
        buffer.bytes[:] = np.frombuffer(raw, np.uint8)
        return self.driver.push(buffer, dtype, exponent)

    def pull(self, size: int, dtype: DataType) -> Request:
        return self.driver.pull(self._blank(size), dtype)

    def _blank(self, size: int) -> Buffer:
        buffer = self.memory.allocate(size)
        buffer.bytes[:] = 0xA5
        return buffer


@dataclass
class Lab:
    """`workers` WorkerNICs, and an AggNIC unless it is an all-reduce, around `inject`; a context manager."""

    inject: Inject
    up: Job
    down: Job
    rng: random.Random
    hops: Hops = CALM
    base_seq: int = 0
    all_reduce: bool = False
    packed: bool = False
    window: int = 0
    pace: Pace = EVEN
    pages: int = 1
    hosts: dict[int, Host] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        plugged: dict[int, Port] = {}
        self.network = NicNetwork(plugged, self.inject, self.rng, self.hops)
        ports = [*range(self.up.workers), *([] if self.all_reduce else [ROOT_PORT])]
        for port in ports:
            self.hosts[port] = self._host(port)
        for port, host in self.hosts.items():
            plugged[port] = host.port
        for port in ports:
            self.begin(port, self.up.gen, self.down.gen)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _host(self, port: int) -> Host:
        array = np.zeros(PAGE * self.pages, np.uint8)
        base = (port + 1) << 32
        nic = VerilatedNic(
            Role.ROOT if port == ROOT_PORT else Role.WORKER, array, base=base, seed=self.rng.getrandbits(32)
        )
        self._stack.enter_context(nic)
        nic.pace(self.pace)
        # Pages in memory in the opposite order of their virtual addresses would need an array of their own each.
        memory = PinnedMemory(array, 0x7F00_0000_0000 + PAGE * port, tuple(base + PAGE * i for i in range(self.pages)))
        return Host(Port(nic), memory, Nic(Bus(nic, self.network.advance), memory, patience=20_000))

    def begin(self, port: int, up: int, down: int) -> None:
        """Start a host's streams with these generations."""
        first = StreamSettings(up, self.base_seq, self.up.slots, self.window)
        second = first if self.all_reduce else StreamSettings(down, self.base_seq, self.down.slots, self.window)
        root = port == ROOT_PORT
        driver = self.hosts[port].driver
        driver.configure(
            NicSettings(
                second if root else first, first if root else second, self.up.workers,
                local_mac=mac_of(port), local_ip=ip_of(port), peer_mac=SWITCH_MAC, peer_ip=SWITCH_IP, wid=port & 0xFF,
                rto=6000, rto_most=24000, resend_delay=37 * port, heartbeat_interval=400, packed=self.packed,
            )
        )  # fmt: skip
        driver.start(all_reduce=self.all_reduce)

    def workers(self) -> list[Host]:
        return [host for port, host in self.hosts.items() if port != ROOT_PORT]

    def root(self) -> Host:
        return self.hosts[ROOT_PORT]

    def finish(self, requests: Iterable[Request], limit: int = 4_000_000) -> None:
        """Wait until all of them are done, and counted."""
        left = list(requests)
        self.network.run(lambda: all(request.done for request in left), limit)
        for host in self.hosts.values():
            host.port.run(64)
