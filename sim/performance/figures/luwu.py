"""LuWu: volumes, counted on the lines of a simulation."""

from __future__ import annotations

from catchment.sim.performance.baselines import PAYLOAD
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.figures.claim import Claim, Source
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate
from catchment.wire.generated.constants import LANE_BYTES

_WORKERS = 8
_SIZE = 1 << 20


def claims() -> list[Claim]:
    """What LuWu says of volumes."""
    sent = sent_by_a_worker()
    ring = sent["ring"]
    return [
        Claim(
            "LuWu", "section 3.2", f"S by 2 (N - 1) S / N: less sent than in a ring of {_WORKERS}, %",
            100 * (1 - _WORKERS / (2 * (_WORKERS - 1))), 100 * (1 - sent["luwu"] / ring), 0.005, Source.SIMULATED,
            note="data bytes of a worker's line in frame mode, headers apart; Figure 3(b) has 42 % less time",
        ),
        Claim(
            "LuWu", "section 5", "traffic of fully sharded data parallelism by that of data parallelism", 1.5,
            3 * (_WORKERS - 1) / (2 * (_WORKERS - 1)), 0.0, Source.FORMULA,
            note="two gathers and a reduce-scatter of (N - 1)/N M against one of each",
        ),
    ]  # fmt: skip


def sent_by_a_worker() -> dict[str, float]:
    """Data bytes that a worker sends for 1 MiB of gradients: in a ring, and to LuWu's optimizer node."""
    topology = rack_spine(racks=[[f"h{at}" for at in range(_WORKERS)]], spines=0, above=["opt"])
    cluster = Cluster(topology)
    ring = simulate("ring", cluster, Rounds(_SIZE)).record
    luwu = simulate("luwu", cluster, Rounds(_SIZE)).record
    assert ring is not None
    assert luwu is not None
    # A frame of the ring is on two lines; a sum's vectors are on one each.
    return {
        "ring": ring.frames["PARAM"] / 2 / _WORKERS * PAYLOAD,
        "luwu": luwu.frames["PA"] / _WORKERS * cluster.switch.lanes * LANE_BYTES,
    }
