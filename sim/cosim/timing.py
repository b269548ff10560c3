"""The NICs' timers for a machine's round trip (docs/explanation/protocol.md, Timeouts)."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.sim.cosim.models import CLOCK_NS, PICOS_PER_NANO, LinkModel, SwitchModel
from catchment.sim.performance.models import Timers, frame_bytes
from catchment.wire.generated.constants import LANE_BYTES


@dataclass(frozen=True, slots=True)
class Timing:
    """Latencies of one NIC, in clocks.

    Attributes:
        heartbeat: between heartbeats: a quarter of the time to send a window (LuWu, section 7).
        rto: first timeout; `rto_most`: doubled up to this.
        resend_delay: each further worker waits longer by this.
    """

    heartbeat: int
    rto: int
    rto_most: int
    resend_delay: int

    @staticmethod
    def of(link: LinkModel, switch: SwitchModel, *, lanes: int, slots: int, depth: int) -> Timing:
        """The sum for a path through `depth` switches.

        max(4 round trips, 2 heartbeats), as the endpoint in software begins.
        """
        frame = frame_bytes(lanes * LANE_BYTES) * link.byte_picos
        hop, pipeline = round(link.latency_ns * PICOS_PER_NANO), round(switch.pipeline_ns * PICOS_PER_NANO)
        way = (depth + 1) * (hop + frame) + depth * pipeline
        clock = CLOCK_NS * PICOS_PER_NANO
        timers = Timers.of(frame=frame, way=way, slots=slots, clock=clock)
        return Timing(
            timers.heartbeat // clock, timers.rto // clock, timers.rto_most // clock, timers.resend_delay // clock
        )
