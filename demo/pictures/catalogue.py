"""All pictures, by the names of their files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from catchment.checkout import ROOT
from catchment.controlplane.topology import Topology
from catchment.controlplane.topology.draw import draw
from catchment.demo.pictures import blocks, gather, pipeline, snapshot
from catchment.demo.pictures.exchanges import heartbeat_minimum, round_of_p4sgd, slot_over_time
from catchment.demo.pictures.rail_failure import rail_failure
from catchment.demo.pictures.simulated import retransmission, way_of_a_gradient

PICTURES: Final[dict[str, Callable[[], str]]] = {
    "slot-over-time": lambda: slot_over_time().svg(),
    "heartbeat-minimum": lambda: heartbeat_minimum().svg(),
    "round-of-p4sgd": lambda: round_of_p4sgd().svg(),
    "blocks-of-the-nic": lambda: blocks.draw("nic"),
    "pipeline-of-luwu": lambda: pipeline.draw(ROOT / "p4src" / "luwu.p4"),
    "pipeline-of-p4sgd": lambda: pipeline.draw(ROOT / "p4src" / "p4sgd.p4"),
    "rail-failure": lambda: rail_failure().svg(),
    "retransmission": lambda: retransmission().svg(),
    "way-of-a-gradient": lambda: way_of_a_gradient().svg(),
    "snapshot-of-a-store": snapshot.draw,
    "stages-of-a-gather": gather.draw,
    "two-racks": lambda: draw(Topology.load(ROOT / "sim" / "topologies" / "two-racks.yaml")),
}
