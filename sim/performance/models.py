"""Constants of the models, each with its source. Times in picoseconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.sim.world import GAP_BYTES, Faults
from catchment.wire.generated.constants import HEADER_BYTES, HEADER_OFFSET, LANE_BYTES, MAX_WORKERS

FRAME_OVERHEAD = HEADER_OFFSET + HEADER_BYTES
"""Bytes of a frame before its payload."""
PICOS_PER_SECOND = 10**12
LONGEST = 10**16
"""Nothing runs longer than ten thousand simulated seconds, in ps."""
LONGEST_START = 5 * 10**11
"""A rail, or a further rail of a message, costs half a second at most, in ps: the balancer adds up 32 bits of ns."""


@dataclass(frozen=True, slots=True)
class NicModel:
    """A NIC of rtl/nic around its transport.

    `push`, `pull` and `respond` are the co-simulation's, measured at 256 B with two workers and checked at 64 KiB.

    Attributes:
        push: from the doorbell until the first vector can leave: register write, TLB, DMA read, conversion.
        pull: from a frame's last bit until the completion record behind its data is in memory.
        respond: from a frame's last bit to the first bit of a frame that it brings about.
        fifo_bytes: of the MAC (docs/explanation/cosim.md).
        frame: the host needs so long for each frame, in or out; 0: as fast as the line.
        least_rto: no timeout is shorter.
    """

    push: int = 759_000
    pull: int = 1_293_000
    respond: int = 33_000
    fifo_bytes: int = 2048
    frame: int = 0
    least_rto: int = 0


@dataclass(frozen=True, slots=True)
class ProgramModel:
    """A host whose endpoint is software, the project's own: as the co-simulation's (docs/explanation/cosim.md).

    Attributes:
        receive: from a frame's last bit until the program sees it.
        frame: of processor for each frame, in or out.
        ring_bytes: may wait for the line.
        ring_frames: may wait for the program; more are dropped.
    """

    receive: int = 1_000_000
    frame: int = 100_000
    ring_bytes: int = 1 << 16
    ring_frames: int = 4096


@dataclass(frozen=True, slots=True)
class SwitchModel:
    """A switch around its program.

    Attributes:
        pipeline: from a frame's last bit to its place in the egress queue; 400 ns (docs/explanation/cosim.md).
        queue_bytes: of each port.
        frame: between frames that the pipeline takes; 0: it takes what its ports bring.
        sram_bytes: for the slots of all jobs.
        lanes: of a vector.
        slots: of a job.
        max_workers: members of a job at one switch; the program is built for 64.
    """

    pipeline: int = 400_000
    queue_bytes: int = 1 << 20
    frame: int = 0
    sram_bytes: int = 48 << 20
    lanes: int = 64
    slots: int = 1024
    max_workers: int = MAX_WORKERS

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector's lanes."""
        return self.lanes * LANE_BYTES


@dataclass(frozen=True, slots=True)
class LinkModel:
    """Cables: to hosts, and between switches.

    Attributes:
        host_byte, up_byte: time of a byte; 80 is 100 Gb/s.
        latency: of PHY, MAC and cable, from first bit to first bit (docs/explanation/cosim.md).
        faults: of every line.
    """

    host_byte: int = 80
    up_byte: int = 80
    latency: int = 265_000
    faults: Faults = field(default_factory=Faults)


@dataclass(frozen=True, slots=True)
class Timers:
    """Latencies of the protocol for a stream (docs/explanation/protocol.md, Timeouts).

    Attributes:
        heartbeat: between heartbeats: a quarter of the time to send a window (LuWu, section 7).
        rto: first timeout: max(4 round trips, 2 heartbeats); `rto_most`: doubled up to this.
        resend_delay: each further worker waits longer by this.
    """

    heartbeat: int
    rto: int
    rto_most: int
    resend_delay: int

    @staticmethod
    def of(*, frame: int, way: int, slots: int, clock: int = 4000, least_rto: int = 0) -> Timers:
        """The timers of a NIC whose clock is `clock`, for a stream of `slots`.

        Args:
            frame: time of a data frame on the line.
            way: time from a host to another.
        """
        heartbeat = max(64, slots * frame // 4 // clock) * clock
        rto = max(8 * way // clock * clock, 2 * heartbeat, least_rto)
        return Timers(heartbeat, rto, 8 * rto, max(1, frame // clock) * clock)


def frame_bytes(payload: int) -> int:
    """Bytes that a frame takes on a line, with preamble, FCS and gap."""
    return FRAME_OVERHEAD + payload + GAP_BYTES
