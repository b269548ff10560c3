"""Hosts whose endpoint is software: the project's own Member, beside the co-simulation's, and under faults."""

from __future__ import annotations

import random

import numpy as np
import pytest

from catchment.sim.cosim import Machine
from catchment.sim.cosim.rounds import gradients, parameters
from catchment.sim.performance.cluster import Cluster, Failure, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import LinkModel, ProgramModel, SwitchModel
from catchment.sim.performance.network import Network
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import estimate, simulate, simulate_folded
from catchment.sim.performance.workload import Workload
from catchment.sim.world import Faults
from catchment.wire.generated.constants import DataType

NAMES = ["w0", "w1", "w2"]


def cluster_of(faults: Faults | None = None, **switch: int) -> Cluster:
    topology = rack_spine(racks=[NAMES], spines=0, above=["opt"])
    return Cluster(topology, LinkModel(faults=faults or Faults()), SwitchModel(**switch), ProgramModel())


@pytest.mark.parametrize("size", [4096, 65536, 262144])
def test_software_takes_as_long_as_in_the_cosimulation(size: int, rng: random.Random) -> None:
    with Machine.star(3, software=[*NAMES, "opt"], seed=rng.getrandbits(32)) as machine:
        job = machine.luwu(NAMES, root="opt", slots=1024)
        machine.run(4000)
        parts = [np.full(size // 4, float(at), np.float32) for at in range(3)]
        up = gradients(machine, job, parts, DataType.FP32, exponent=3)[1].latency
        machine.run(4000)
        down = parameters(machine, job, bytes(size)).latency
    simulated = simulate("luwu", cluster_of(), Rounds(size)).rounds[0] * 1e9
    assert simulated == pytest.approx(up + down, rel=0.05)


def test_every_sum_arrives_once_whatever_lines_do(rng: random.Random) -> None:
    def digests(faults: Faults | None) -> set[int]:
        network = Network(cluster_of(faults, slots=16), seed=rng.getrandbits(32))
        stream = network.allreduce(NAMES)
        workload = Workload()
        workload.transfer(stream, 30_000)
        workload.run(network)
        counts = [network.simulation.member(member) for member in stream.receivers]
        assert {each["received"] for each in counts} == {stream.frames(30_000)}
        return {each["digest"] for each in counts}

    calm = digests(None)
    assert len(calm) == 1
    for _ in range(5):
        assert digests(Faults(loss=0.02, damage=0.01, duplicate=0.02, reorder=0.05)) == calm


def test_what_software_cannot_be_asked(rng: random.Random) -> None:
    cluster = cluster_of()
    with pytest.raises(PerformanceError, match="timers of their own"):
        simulate_folded("allreduce", cluster, Rounds(1024))
    with pytest.raises(PerformanceError, match="endpoints in software"):
        estimate("allreduce", cluster, Rounds(1024))


def test_a_program_that_stops_for_a_while_is_waited_for() -> None:
    calm = cluster_of()
    gap = Failure("host", "w1", 20_000_000, 4_020_000_000)
    held = Cluster(calm.topology, nic=ProgramModel(), failures=(gap,))
    before, after = (simulate("allreduce", each, Rounds(1 << 18)).rounds[0] for each in (calm, held))
    assert after > before + 3e-3
