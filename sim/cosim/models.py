"""What is not RTL and not P4: cables, the switch's pipeline, queues, memory. Sources: docs/explanation/cosim.md."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.rtl.harness.verilated_nic import Pace
from catchment.sim.cosim.errors import CosimError

PICOS_PER_NANO = 1000
CLOCK_NS = 4
PCIE_GBPS = 230.4
"""16 lanes of PCIe 4, less 10 % for the protocol."""


@dataclass(frozen=True, slots=True)
class LinkModel:
    """A cable and the Ethernet ports at its ends.

    Attributes:
        gbps: rate; a byte must take whole picoseconds.
        cable_ns: propagation: 5 ns a metre.
        ports_ns: PHY and MAC at both ends together, with RS-FEC.
    """

    gbps: float = 100.0
    cable_ns: float = 15.0
    ports_ns: float = 250.0

    def __post_init__(self) -> None:
        if self.gbps <= 0 or 8000 / self.gbps != self.byte_picos:
            raise CosimError(f"a link of {self.gbps} Gb/s: give a rate of which a byte takes whole picoseconds")
        if self.cable_ns < 0 or self.ports_ns < 0:
            raise CosimError(f"a link cannot take {self.cable_ns} + {self.ports_ns} ns")

    @property
    def byte_picos(self) -> int:
        """Time of a byte."""
        return round(8000 / self.gbps)

    @property
    def latency_ns(self) -> float:
        """The delay from first bit to first bit."""
        return self.cable_ns + self.ports_ns


@dataclass(frozen=True, slots=True)
class SwitchModel:
    """A switch around the P4 program.

    Attributes:
        pipeline_ns: from a frame's last bit to its place in the egress queue.
        queue_bytes: of each port; what does not fit is dropped and counted.
    """

    pipeline_ns: float = 400.0
    queue_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class HostModel:
    """A host around its NIC.

    Attributes:
        pages: pinned, of 2 MiB.
        pace: of the memory behind PCIe; its MAC settings have no meaning here.
        mac_fifo_bytes: the NIC's MAC takes beats while less than this waits for the link.
    """

    pages: int = 2
    pace: Pace = field(default_factory=lambda: Pace(latency=150))
    mac_fifo_bytes: int = 2048


@dataclass(frozen=True, slots=True)
class RingModel:
    """The memory devices of a ring and the links between them: by default 16 lanes of PCIe 4, less 10 % for CXL.

    Attributes:
        gbps: of a link, each way; a byte is rounded to whole picoseconds.
        latency_ns: from a flit's first bit leaving to it arriving.
        entries: of 64 bytes in each device's memory.
        memory_clocks: latency of that memory.
        least_segment: entries; as many as a hop has clocks.
    """

    gbps: float = PCIE_GBPS
    latency_ns: float = 150.0
    entries: int = 4096
    memory_clocks: int = 20
    least_segment: int = 64

    def __post_init__(self) -> None:
        if self.gbps <= 0 or self.latency_ns < CLOCK_NS or self.entries < 1:
            raise CosimError(
                f"a ring's link of {self.gbps} Gb/s and {self.latency_ns} ns, {self.entries} entries: positive, and a "
                "clock at least"
            )

    @property
    def byte_picos(self) -> int:
        """Time of a byte."""
        return round(8000 / self.gbps)

    @property
    def flit_ns(self) -> float:
        """Time of a flit of 74 bytes: an entry, its header and CRC."""
        return 74 * self.byte_picos / PICOS_PER_NANO


@dataclass(frozen=True, slots=True)
class StackModel:
    """A host whose endpoint is software.

    Attributes:
        receive_ns: from a frame's last bit until the program sees it.
        frame_ns: of processor for each frame, in or out; slower than the line, it is a straggler.
        ring_bytes: may wait for the line.
        ring_frames: may wait for the program; more are dropped.
    """

    receive_ns: float = 1000.0
    frame_ns: float = 100.0
    ring_bytes: int = 1 << 16
    ring_frames: int = 4096
