"""Collectives over UDP on a real network: equal to numpy's bit for bit, and the dead are named."""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab import ROOT, Lab
from rank_results import results

from catchment.controlplane.jobs import JobPlan, plan_job
from catchment.controlplane.networks.state import admin_socket
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.topology import Target, star
from catchment.softswitch.admin import SwitchAdmin

MEMBER = ROOT / "tests" / "host" / "collectives" / "collective_member.py"
PATIENCE = 120.0


def start(lab: Lab, job: JobPlan, port: str = "udp", **task: Any) -> dict[str, Any]:
    """A process for every rank, in its host's namespace."""
    description = {
        name: {"description": job.describe(name), "port": port, "timeout": 30.0, **task} for name in job.workers
    }
    return {
        name: lab.network.popen(
            name, [sys.executable, str(MEMBER), json.dumps(one)], stdout=-1, stderr=-1, text=True, cwd=ROOT
        )
        for name, one in description.items()
    }


@contextmanager
def spoilt(lab: Lab, loss: float, rng: random.Random) -> Iterator[None]:
    """Loss, duplicates and disorder on every port of the switch."""
    path = admin_socket(lab.network.addresses["s1"])
    assert path is not None
    ports = list(lab.topology.ports("s1"))
    with SwitchAdmin(path) as admin:
        for port in ports if loss else ():
            admin.set_faults(port, f"loss={loss},dup={loss / 2},reorder={loss},seed={rng.randrange(1 << 16)}")
        try:
            yield
        finally:
            for port in ports:
                admin.set_faults(port, "off")


def check(lab: Lab, workers: list[str], loss: float, rng: random.Random, operations: int = 24) -> None:
    job = plan_job(
        "allreduce", lab.topology, name="ranks", workers=workers, slots=32, packed=True, allocator=lab.allocator
    )
    with lab.deployed(job), spoilt(lab, loss, rng):
        task = {"seed": rng.randrange(1 << 32), "operations": operations, "most": 30_000 // len(workers)}
        said = results(start(lab, job, **task), PATIENCE)
    assert {name: result.get("wrong", result) for name, result in said.items()} == {name: [] for name in said}


@pytest.fixture
def embedded(lab: Lab) -> Lab:
    """Only where the switch itself can inflict faults."""
    if not lab.has_registers:
        pytest.skip("BMv2's ports inflict no faults, and its queues hold 64 packets")
    return lab


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [0.0, 0.001, 0.01, 0.05])
def test_every_operation_is_exact(embedded: Lab, loss: float, rng: random.Random) -> None:
    workers = rng.sample([f"w{i}" for i in range(8)], rng.choice((2, 3, 4)))
    check(embedded, workers, loss, rng)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [0.0, 0.001, 0.01, 0.05])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_every_operation_is_exact_at_length(embedded: Lab, ranks: int, loss: float, rng: random.Random) -> None:
    check(embedded, [f"w{i}" for i in range(ranks)], loss, rng, operations=100)


@pytest.mark.slow
def test_sixteen_ranks_are_exact(target: Target, tmp_path: Path, rng: random.Random) -> None:
    if target is Target.BMV2:
        pytest.skip("sixteen ranks and their switch are too much for BMv2")
    names = [f"w{i}" for i in range(16)]
    topology = star(names, program=ROOT / "p4src" / "luwu.p4", name=f"e2e-sixteen-{os.getpid()}")
    with Lab(topology, tmp_path) as lab:
        for loss in (0.0, 0.001, 0.01, 0.05):
            check(lab, names, loss, rng)


def test_hosts_that_share_memory_with_their_switch_take_it(target: Target, tmp_path: Path, rng: random.Random) -> None:
    """Two hosts have no interface at all, so only what the plan announces can connect them."""
    if target is Target.BMV2:
        pytest.skip("BMv2 has no shared-memory ports")
    names = ["w0", "w1", "w2"]
    topology = star(names, program=ROOT / "p4src" / "luwu.p4", name=f"e2e-memory-{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:  # a socket's path is short
        shared = {name: replace(topology.hosts[name], shm=f"{folder}/{name}") for name in names[:2]}
        with Lab(replace(topology, hosts=topology.hosts | shared), tmp_path) as lab:
            job = plan_job("allreduce", lab.topology, name="ranks", workers=names, slots=32, allocator=lab.allocator)
            assert [job.describe(name).get("port") for name in names] == [f"shm:{folder}/w0", f"shm:{folder}/w1", None]
            with lab.deployed(job):
                task = {"seed": rng.randrange(1 << 32), "operations": 12, "most": 10_000}
                said = results(start(lab, job, "auto", **task), PATIENCE)
    assert {name: result.get("wrong", result) for name, result in said.items()} == {name: [] for name in said}


@pytest.mark.sampled(4)
def test_a_killed_rank_is_named_and_a_restarted_switch_is_not_noticed(own_lab: Lab) -> None:
    lab = own_lab
    if not lab.has_registers:
        pytest.skip("BMv2 takes too long to restart")
    job = plan_job(
        "allreduce", lab.topology, name="ranks", workers=["w0", "w1", "opt"], slots=32, allocator=lab.allocator
    )
    with lab.deployed(job):
        members = start(lab, job, forever=True, operations=1 << 30, most=20_000, seed=0, timeout=10.0)
        for member in members.values():
            assert member.stdout.readline() == "started\n"
        lab.network.kill_switch("s1")
        lab.network.start_switch("s1")
        lab.fabric.restore_switch("s1", programs_of(lab.topology)["s1"], [job])
        members["w1"].kill()
        members["w1"].communicate()
        said = results({name: members[name] for name in ("w0", "opt")}, PATIENCE)
    assert {name: (result["kind"], result["peers"]) for name, result in said.items()} == {
        "w0": ("missing", [1]),
        "opt": ("missing", [1]),
    }, said
