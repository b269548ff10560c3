"""What goes wrong in a rack, on the machine: loss, stalls, stragglers, resets; and shapes other than one star."""

from __future__ import annotations

import random

import numpy as np
import pytest

from catchment.controlplane.topology import racks
from catchment.rtl.harness.verilated_nic import Pace
from catchment.sim.cosim import CosimError, Faults, HostModel, Kind, LinkModel, Machine, StackModel
from catchment.sim.cosim.machine import LUWU
from catchment.sim.cosim.rounds import as_type, gradients, parameters, summed
from catchment.sim.world import WorldError
from catchment.wire.generated.constants import DataType, PacketType

pytestmark = pytest.mark.sampled(4)  # what it builds takes a minute

FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)


def random_parts(rng: random.Random, workers: int, count: int) -> list[np.ndarray]:
    numbers = np.random.default_rng(rng.getrandbits(64))
    return [numbers.normal(size=count).astype(np.float32) for _ in range(workers)]


def star(rng: random.Random, workers: int, **more: object) -> Machine:
    return Machine.star(workers, seed=rng.getrandbits(32), **more)


@pytest.mark.parametrize(
    "loss", [pytest.param(1e-4, marks=pytest.mark.slow), pytest.param(1e-3, marks=pytest.mark.slow), 1e-2]
)
def test_loss_duplication_and_reordering(loss: float, rng: random.Random) -> None:
    with star(rng, 2) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=256)
        for cable in machine.cables.values():
            cable.faults(Faults(loss=loss, damage=loss, duplicate=0.01, reorder=0.01))
        for dtype in FLOATS:
            parts = [as_type(part, dtype) for part in random_parts(rng, 2, rng.randrange(20_000, 30_000))]
            total, _ = gradients(machine, job, parts, dtype, exponent=3)
            parameters(machine, job, total.tobytes())
        counts = [line.counts() for cable in machine.cables.values() for line in (cable.up, cable.down)]
        assert sum(count["duplicated"] for count in counts) > 0
        assert sum(count["reordered"] for count in counts) > 0
        if loss == 1e-2:
            assert sum(count["lost"] for count in counts) > 0
            assert sum(sum(count["resent"].values()) for count in counts) > 0


def test_one_lost_frame_costs_a_round_trip_and_no_timeout(rng: random.Random) -> None:
    """The receiver asks for what is missing."""
    with star(rng, 2) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=256)
        parts = random_parts(rng, 2, 32_768)
        _, calm = gradients(machine, job, parts, DataType.FP32, exponent=3)
        machine.cables["w0"].up.lose(int(PacketType.PA), skip=200, count=1)
        _, lossy = gradients(machine, job, parts, DataType.FP32, exponent=3)
        assert machine.cables["w0"].up.counts()["lost"] == 1
        assert machine.cables["w0"].up.counts()["resent"] == {int(PacketType.PA): 1, int(PacketType.HB): 0}
        assert lossy.latency < calm.latency + 10_000  # of the simulation: the same everywhere


def test_a_receiver_that_stands_still_stops_its_senders_by_credit(rng: random.Random) -> None:
    with star(rng, 2) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=256)
        parts = random_parts(rng, 2, 64 * 2000)
        pushes = [machine[w].push(part, DataType.FP32, 3) for w, part in zip(job.workers, parts, strict=True)]
        machine.run(60_000)  # far more than 2000 vectors take
        assert not any(push.done for push in pushes)
        for worker in job.workers:
            counts = machine.nic(worker).driver.statistics()
            assert counts["tx_vectors"] == 256  # the window, and not one more
            assert counts["tx_credit_clocks"] > 30_000
        pull = machine["opt"].pull(parts[0].nbytes, DataType.FP32)
        machine.finish([pull, *pushes])
        assert pull.check() == summed(parts, DataType.FP32, 3, DataType.FP32).tobytes()
        resent = sum(machine.cables[w].up.counts()["resent"].get(int(PacketType.PA), 0) for w in job.workers)
        lost = sum(machine.switches["s1"].queue(port)[0] for port in (1, 2, 3))
        assert (resent, lost) == (0, 0)


def test_memory_that_stands_still_stops_the_senders_too(rng: random.Random) -> None:
    with star(rng, 2) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=256)
        parts = random_parts(rng, 2, 64 * 1500)
        with machine.together():
            pull = machine["opt"].pull(parts[0].nbytes, DataType.FP32)
            pushes = [machine[w].push(part, DataType.FP32, 3) for w, part in zip(job.workers, parts, strict=True)]
        machine.run(2000)
        machine.nic("opt").nic.pace(Pace(write_stall=256))
        machine.run(40_000)
        assert not pull.done
        machine.nic("opt").nic.pace(Pace())
        machine.finish([pull, *pushes])
        assert pull.check() == summed(parts, DataType.FP32, 3, DataType.FP32).tobytes()


def test_a_straggler_sets_the_pace_and_nothing_is_lost(rng: random.Random) -> None:
    """Its endpoint is software that needs 400 ns for each frame."""
    with star(rng, 3, software=["w1"], stack=StackModel(frame_ns=400)) as machine:
        job = machine.luwu(["w0", "w1", "w2"], root="opt", slots=256)
        _, times = gradients(machine, job, random_parts(rng, 3, 64 * 1000), DataType.FP32, exponent=3)
        assert times.latency > 1000 * 400
        assert machine.nic("w0").driver.statistics()["tx_retransmissions"] < 1000


def test_a_worker_that_comes_late_is_waited_for(rng: random.Random) -> None:
    with star(rng, 2) as machine:
        machine.luwu(["w0", "w1"], root="opt", slots=64)
        parts = random_parts(rng, 2, 64 * 300)
        pull = machine["opt"].pull(parts[0].nbytes, DataType.FP32)
        first = machine["w0"].push(parts[0], DataType.FP32, 3)
        machine.run(50_000)
        assert not pull.done
        second = machine["w1"].push(parts[1], DataType.FP32, 3)
        machine.finish([pull, first, second])
        assert pull.check() == summed(parts, DataType.FP32, 3, DataType.FP32).tobytes()


def test_a_nic_is_reset_in_the_middle_and_the_job_goes_on_in_a_new_generation(rng: random.Random) -> None:
    with star(rng, 2) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=256)
        parts = random_parts(rng, 2, 64 * 1000)
        for worker, part in zip(job.workers, parts, strict=True):
            machine[worker].push(part, DataType.FP32, 3)
        machine["opt"].pull(parts[0].nbytes, DataType.FP32)
        machine.run(rng.randrange(500, 6000))
        machine.nic("w0").driver.soft_reset()
        renewed = machine.renew(job)
        assert {s.gen for s in renewed.streams}.isdisjoint({s.gen for s in job.streams})
        total, _ = gradients(machine, renewed, parts, DataType.FP32, exponent=3)
        parameters(machine, renewed, total.tobytes())


def test_two_jobs_share_a_switch_and_nothing_else(rng: random.Random) -> None:
    from catchment.controlplane.topology import star as star_of

    kinds = {"a0": Kind.WORKER, "a1": Kind.WORKER, "aopt": Kind.ROOT, "b0": Kind.WORKER, "b1": Kind.WORKER,
             "bopt": Kind.ROOT}  # fmt: skip
    with Machine(star_of(list(kinds), program=LUWU), kinds, seed=rng.getrandbits(32)) as machine:
        jobs = [machine.luwu([f"{j}0", f"{j}1"], root=f"{j}opt", name=j, slots=256) for j in "ab"]
        for cable in machine.cables.values():
            cable.faults(Faults(loss=0.002))
        count = rng.randrange(10_000, 20_000)
        parts = {job.name: random_parts(rng, 2, count) for job in jobs}
        with machine.together():
            pulls = {job.name: machine[job.root or ""].pull(4 * count, DataType.FP32) for job in jobs}
            pushes = [
                machine[w].push(part, DataType.FP32, 3)
                for job in jobs
                for w, part in zip(job.workers, parts[job.name], strict=True)
            ]
        machine.finish([*pulls.values(), *pushes])
        for name, pull in pulls.items():
            assert pull.check() == summed(parts[name], DataType.FP32, 3, DataType.FP32).tobytes()


@pytest.mark.parametrize("software", [(), ("b1",)])
def test_a_tree_of_switches(software: tuple[str, ...], rng: random.Random) -> None:
    kinds = {**dict.fromkeys(["a0", "a1", "b0", "b1"], Kind.WORKER), "opt": Kind.ROOT}
    kinds |= dict.fromkeys(software, Kind.SOFTWARE)
    topology = racks([["a0", "a1"], ["b0", "b1"]], ["opt"], program=LUWU)
    with Machine(topology, kinds, seed=rng.getrandbits(32)) as machine:
        job = machine.luwu(["a0", "b0", "a1", "b1"], root="opt", slots=256)
        for cable in machine.cables.values():
            cable.faults(Faults(loss=0.005, duplicate=0.01))
        total, _ = gradients(machine, job, random_parts(rng, 4, 12_000), DataType.FP32, exponent=3)
        parameters(machine, job, total.tobytes())
        assert sum(machine.cables["r1"].up.counts()["frames"].values()) > 12_000 // 64


def test_all_reduce_between_hardware_and_software(rng: random.Random) -> None:
    with star(rng, 3, software=["w2"]) as machine:
        job = machine.allreduce(["w0", "w1", "w2"], slots=256)
        parts = random_parts(rng, 3, 9000)
        pulls = [machine[w].pull(parts[0].nbytes, DataType.FP32) for w in job.workers]
        pushes = [machine[w].push(part, DataType.FP32, 3) for w, part in zip(job.workers, parts, strict=True)]
        machine.finish([*pulls, *pushes])
        expected = summed(parts, DataType.FP32, 3, DataType.FP32).tobytes()
        assert [pull.check() == expected for pull in pulls] == [True] * 3


@pytest.mark.slow  # NICs and a switch program of its own
@pytest.mark.timeout(1800)
def test_memory_with_gaps_and_long_vectors(rng: random.Random) -> None:
    """A NIC and a switch program of 256 lanes."""
    pace = Pace(latency=300, read_stall=60, write_stall=60, address_stall=60)
    more = {"parameters": {"VECTOR_BYTES": 1024}, "lanes": 256, "slots": 256, "host": HostModel(pace=pace)}
    with star(rng, 2, **more) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=128)
        total, _ = gradients(machine, job, random_parts(rng, 2, 20_001), DataType.FP32, exponent=3)
        parameters(machine, job, total.tobytes())


def test_what_cannot_be_is_refused(rng: random.Random) -> None:
    with star(rng, 2, software=["w0"]) as machine:
        with pytest.raises(CosimError, match="w0 has no NIC in RTL"):
            machine.nic("w0")
        job = machine.luwu(["w0", "w1"], root="opt")
        pull = machine["opt"].pull(64, DataType.FP32)
        with pytest.raises(CosimError, match="not done after 5000 clocks: opt: pull"):
            machine.finish([pull], limit=5000)
        with pytest.raises(CosimError, match="under way"):
            _ = pull.finished_ns
        with machine.together():
            machine["w1"].push(b"\0" * 64, DataType.FP32)
            with pytest.raises(CosimError, match="rung together"):
                machine["w1"].push(b"\0" * 64, DataType.FP32)
        assert job.root == "opt"
    with pytest.raises(RuntimeError, match="the machine is closed"):
        machine.run(1)
    with pytest.raises(CosimError, match="whole picoseconds"):
        Machine.star(2, link=LinkModel(gbps=3))
    with pytest.raises(WorldError, match="give a probability"):
        Faults(loss=2)
