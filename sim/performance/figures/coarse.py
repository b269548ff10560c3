"""COARSE: what its proxies' ring costs against sums in a switch."""

from __future__ import annotations

from catchment.sim.performance.baselines import PAYLOAD
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.figures.claim import Claim, Source
from catchment.sim.performance.flow import flow_seconds
from catchment.sim.performance.models import frame_bytes

_SIZE = 1 << 30


def ring_by_switch(proxies: int) -> float:
    """The time of a ring of proxies by that of sums in their switch, frames' headers apart."""
    cluster = Cluster(rack_spine(racks=[[f"p{at}" for at in range(proxies)]], spines=0))
    ring, switch = (flow_seconds(kind, cluster, cluster.hosts, _SIZE) for kind in ("ring", "allreduce"))
    vector = cluster.switch.vector_bytes
    return ring / (frame_bytes(PAYLOAD) / PAYLOAD) / (switch / (frame_bytes(vector) / vector))


def claims() -> list[Claim]:
    """The bounds 2 (p - 1)/p of a ring, at 1 GiB."""
    note = "the ring's volume; the paper has no switch that adds"
    return [
        Claim("COARSE", "section 3", f"ring of {p} proxies by sums in a switch", 2 * (p - 1) / p, ring_by_switch(p),
              0.01, Source.SIMULATED, note=note)
        for p in (4, 8)
    ]  # fmt: skip
