"""The simulator's times beside the RTL's, at sizes that nothing was calibrated on."""

from __future__ import annotations

import random

import numpy as np

from catchment.sim.cosim import Machine
from catchment.sim.cosim.rounds import gradients, parameters
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate
from catchment.wire.generated.constants import DataType

SIZES = (1024, 16384, 262144)


def test_push_to_memory_takes_as_long_as_in_the_cosimulation(rng: random.Random) -> None:
    cluster = Cluster(rack_spine(racks=[["w0", "w1", "w2"]], spines=0, above=["opt"]))
    with Machine.star(3, seed=rng.getrandbits(32)) as machine:
        job = machine.luwu(["w0", "w1", "w2"], root="opt", slots=1024)
        machine.run(4000)
        for size in SIZES:
            parts = [np.full(size // 4, float(at), np.float32) for at in range(3)]
            up = gradients(machine, job, parts, DataType.FP32, exponent=3)[1].latency
            machine.run(4000)
            down = parameters(machine, job, bytes(size)).latency
            machine.run(4000)
            simulated = simulate("luwu", cluster, Rounds(size)).rounds[0] * 1e9
            bound = 0.02 if size >= 65536 else 0.05
            assert abs(simulated / (up + down) - 1) <= bound, f"{size} B: {simulated} ns, the RTL {up} + {down}"
