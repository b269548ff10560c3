"""The points at which the simulator is compared with the co-simulation, and how the co-simulation plays one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catchment.controlplane.topology import racks, star
from catchment.sim.cosim.machine import LUWU, Kind, Machine
from catchment.sim.cosim.rounds import gradients, parameters
from catchment.sim.world import Faults
from catchment.wire.generated.constants import LANE_BYTES, DataType, PacketType

CALIBRATED = (256, 65536)
"""The sizes that the NIC's constants were taken from, with two workers: no row judges them."""
_QUIET = 5000  # clocks between messages: the first heartbeats have been merged


@dataclass(frozen=True, slots=True)
class Lost:
    """A frame that is lost: of this type, after `skip` others of it, on the cable of `host`, upwards or not."""

    host: str
    up: bool
    kind: PacketType
    skip: int


@dataclass(frozen=True, slots=True)
class Point:
    """A message up and one down.

    Attributes:
        workers: by rack; one rack is one switch, several are under a spine which has the root.
        size: bytes of each message.
        vector_bytes: of a frame.
        lost: one frame. `loss`: of every line. `seed`: of that.
    """

    workers: tuple[int, ...]
    size: int
    vector_bytes: int = 256
    lost: Lost | None = None
    loss: float = 0.0
    seed: int = 1

    @property
    def racks(self) -> list[list[str]]:
        """The workers' names by rack, w0, w1, ... through all of them."""
        first = [sum(self.workers[:at]) for at in range(len(self.workers))]
        return [[f"w{at}" for at in range(f, f + n)] for f, n in zip(first, self.workers, strict=True)]

    @property
    def names(self) -> list[str]:
        """All workers."""
        return [name for rack in self.racks for name in rack]


@dataclass(frozen=True, slots=True)
class Played:
    """What a point gave: times in ns, data frames on all lines by type, and heartbeats of hosts."""

    up: float
    down: float
    frames: dict[str, int]
    heartbeats: int


DATA = (PacketType.PA, PacketType.FA, PacketType.PARAM)


def play_in_rtl(point: Point) -> Played:
    """Play a point in the co-simulation, every byte compared with numpy's."""
    lanes = point.vector_bytes // LANE_BYTES
    if len(point.workers) == 1:
        topology = star([*point.names, "opt"], program=LUWU, lanes=lanes, slots=1024)
    else:
        topology = racks(point.racks, ["opt"], program=LUWU, lanes=lanes, slots=2048)
    kinds = {**dict.fromkeys(point.names, Kind.WORKER), "opt": Kind.ROOT}
    numbers = np.random.default_rng(point.seed)
    # The RTL's tests use the build of the default.
    parameters_of_rtl = None if point.vector_bytes == 256 else {"VECTOR_BYTES": point.vector_bytes}
    with Machine(topology, kinds, seed=point.seed, parameters=parameters_of_rtl) as machine:
        job = machine.luwu(point.names, root="opt", slots=1024)
        machine.run(_QUIET)
        for cable in machine.cables.values():
            cable.faults(Faults(loss=point.loss))
        if point.lost is not None:
            cable = machine.cables[point.lost.host]
            line = cable.up if point.lost.up else cable.down
            line.lose(int(point.lost.kind), point.lost.skip, 1)
        parts = [numbers.normal(size=point.size // 4).astype(np.float32) for _ in job.workers]
        up = gradients(machine, job, parts, DataType.FP32, exponent=3)[1].latency
        machine.run(_QUIET)
        down = parameters(machine, job, bytes(point.size)).latency
        counts = [line.counts()["frames"] for cable in machine.cables.values() for line in (cable.up, cable.down)]
    sums = {kind: sum(each.get(int(kind), 0) for each in counts) for kind in (*DATA, PacketType.HB)}
    return Played(up, down, {kind.name: sums[kind] for kind in DATA}, sums[PacketType.HB])
