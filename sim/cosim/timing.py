"""The NICs' timers for a machine's round trip (docs/protocol.md, Timeouts)."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.sim.cosim.models import CLOCK_NS, LinkModel, SwitchModel
from catchment.sim.world import GAP_BYTES
from catchment.wire.generated.constants import ETHERNET_BYTES, HEADER_BYTES, IPV4_BYTES, LANE_BYTES, UDP_BYTES

FRAME_OVERHEAD = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + HEADER_BYTES


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
        frame = (FRAME_OVERHEAD + lanes * LANE_BYTES + GAP_BYTES) * link.byte_picos / 1000
        way = (depth + 1) * (link.latency_ns + frame) + depth * switch.pipeline_ns
        heartbeat = max(64, int(slots * frame / 4 / CLOCK_NS))
        rto = max(int(4 * 2 * way / CLOCK_NS), 2 * heartbeat)
        return Timing(heartbeat, rto, 8 * rto, max(1, int(frame / CLOCK_NS)))
