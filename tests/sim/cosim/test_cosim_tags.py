"""Jobs with tags on the machine: NICs in RTL beside endpoints in software, over cables that lose frames."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from catchment.controlplane.jobs import plan_job
from catchment.rtl.driver.errors import NicError
from catchment.sim.cosim import CosimError, Faults, Machine
from catchment.sim.cosim.rounds import gradients, parameters, summed
from catchment.wire.generated.constants import DataType

pytestmark = pytest.mark.sampled(12)  # what it builds takes three minutes

UNITS = {"TAG_UNITS": 2}


def parts_of(rng: random.Random, workers: int, count: int) -> list[np.ndarray]:
    numbers = np.random.default_rng(rng.getrandbits(64))
    return [numbers.normal(size=count).astype(np.float32) for _ in range(workers)]


def machine_of(rng: random.Random, workers: int, **more: object) -> Machine:
    return Machine.star(workers, seed=rng.getrandbits(32), tags=True, parameters=UNITS, **more)


def forged_of(machine: Machine) -> dict[str, int]:
    counts = {name: host.driver.statistics() for name, host in machine.hosts.items() if hasattr(host, "driver")}
    return {name: count["rejects.tag"] + count["tags_lost"] for name, count in counts.items()}


@pytest.mark.parametrize("software", [["w1"], ["w0", "opt"]])
def test_gradients_and_parameters_of_a_tagged_job(software: list[str], rng: random.Random) -> None:
    """Sums and parameters are those of a job without tags, bit for bit."""
    with machine_of(rng, 2, software=software) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=256, tags=True)
        assert job.tags
        for cable in machine.cables.values():
            cable.faults(Faults(loss=0.003, damage=0.003, duplicate=0.005, reorder=0.005))
        for _ in range(2):
            total, _ = gradients(machine, job, parts_of(rng, 2, rng.randrange(8000, 12_000)), DataType.FP32, exponent=3)
            parameters(machine, job, total.tobytes()[: rng.randrange(9000, 9999)])
        assert set(forged_of(machine).values()) == {0}


def test_all_reduce_of_a_tagged_job(rng: random.Random) -> None:
    with machine_of(rng, 3, software=["w1"]) as machine:
        job = machine.allreduce(["w0", "w1", "w2"], slots=256, tags=True)
        for cable in machine.cables.values():
            cable.faults(Faults(loss=0.003))
        parts = parts_of(rng, 3, rng.randrange(8000, 12_000))
        with machine.together():
            pulls = [machine[w].pull(parts[0].nbytes, DataType.FP32) for w in job.workers]
            pushes = [machine[w].push(part, DataType.FP32, 3) for w, part in zip(job.workers, parts, strict=True)]
        machine.finish([*pushes, *pulls])
        expected = summed(parts, DataType.FP32, 3, DataType.FP32).tobytes()
        assert [pull.check() == expected for pull in pulls] == [True] * 3
        assert set(forged_of(machine).values()) == {0}


def test_new_generations_have_new_keys(rng: random.Random) -> None:
    with machine_of(rng, 2, software=["w1"]) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=64, tags=True)
        parts = parts_of(rng, 2, 5000)
        gradients(machine, job, parts, DataType.FP32, exponent=3)
        renewed = machine.renew(job)
        assert {stream.key for stream in renewed.streams}.isdisjoint({stream.key for stream in job.streams})
        gradients(machine, renewed, parts, DataType.FP32, exponent=3)


def test_a_member_with_another_key_adds_nothing_and_takes_nothing(rng: random.Random) -> None:
    """The NIC refuses what comes, and the switch what it sends, until it has the right one."""
    with machine_of(rng, 2, software=["w1"]) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=64, tags=True)
        wrong = replace(job, streams=tuple(replace(stream, key="ab" * 16) for stream in job.streams))
        machine.join(wrong, "opt")
        parts = parts_of(rng, 2, 2000)
        pull = machine["opt"].pull(parts[0].nbytes, DataType.FP32)
        for worker, part in zip(job.workers, parts, strict=True):
            machine[worker].push(part, DataType.FP32, 3)
        machine.run(40_000)
        assert not pull.done
        counts = machine.nic("opt").driver.statistics()
        assert counts["rejects.tag"] > 0 and counts["rx_vectors"] == 0
        machine.nic("opt").driver.stop()


def test_a_job_with_tags_needs_nics_that_make_them() -> None:
    """It is refused before a table has it, and by the driver of the NIC as well."""
    with Machine.star(1, software=["w0"], tags=True) as machine:
        plan = plan_job("luwu", machine.topology, name="job", workers=["w0"], root="opt", tags=True)
        with pytest.raises(CosimError, match="job job has tags, and the NIC of opt is built without"):
            machine.begin(plan)
        with pytest.raises(NicError, match="this NIC makes no tags"):
            machine.join(plan, "opt")
        machine.begin(replace(plan, streams=tuple(replace(stream, key="") for stream in plan.streams)))
