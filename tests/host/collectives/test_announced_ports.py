"""The controller tells a host on the switch's own machine of the memory they share, and the host takes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.jobs import JobPlan, JobRequest, plan_job
from catchment.controlplane.programs.cache import cache_folder
from catchment.controlplane.topology import star
from catchment.host.collectives import CollectiveError, Communicator
from catchment.host.collectives.ports import chosen_path
from catchment.host.membership import Credentials, Membership
from catchment.sim.lab.controller_process import ControllerProcess
from catchment.sim.lab.shm_lab import LUWU
from catchment.softswitch.process import SwitchProcess

PATIENT = Timing(silence=60.0, reunion=30.0, request=60.0, hang=60.0)
NAMES = ["w0", "w1"]


def test_members_of_a_controllers_job_take_the_memory(tmp_path: Path) -> None:
    topology = star(NAMES, program=LUWU, name="announced")
    hosts = {name: replace(host, shm=str(tmp_path / name)) for name, host in topology.hosts.items()}
    topology = replace(topology, hosts=hosts)
    cache_folder().mkdir(parents=True, exist_ok=True)
    ports = {host.link.port: f"shm:{host.shm}" for host in hosts.values()}
    with (
        SwitchProcess(ports=ports, program_dir=cache_folder()) as switch,
        ControllerProcess(topology, {"s1": switch.address}, tmp_path / "c", PATIENT) as controller,
        controller.operator() as operator,
    ):
        controller.wait_until_up(operator, 300.0)
        token = operator.create(JobRequest("sum", "allreduce", tuple(NAMES))).token
        results: dict[str, Any] = {}
        threads = [threading.Thread(target=_member, args=(controller, token, n, results)) for n in NAMES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(180)
    assert results == {name: (f"shm:{hosts[name].shm}", [3.0, 30.0]) for name in NAMES}


def _member(controller: ControllerProcess, token: str, host: str, results: dict[str, Any]) -> None:
    try:
        with Membership.join(
            controller=controller.address,
            job="sum",
            host=host,
            token=token,
            credentials=Credentials.of(controller.certificates, host),
            timeout=60.0,
        ) as member:
            ranks = member.take(lambda description: Communicator.of_description(description, timeout=60.0))
            member.wait_complete(120.0)
            array = np.array([1.0, 10.0], np.float32) * (1 + NAMES.index(host))
            ranks.all_reduce(array).wait(120.0)
            ranks.barrier().wait(120.0)
            results[host] = (ranks.port, array.tolist())
            ranks.close()
    except Exception as error:
        results[host] = repr(error)


def test_a_plan_keeps_what_it_was_told() -> None:
    topology = star(NAMES, program=LUWU)
    topology = replace(topology, hosts=topology.hosts | {"w1": replace(topology.hosts["w1"], shm="/run/s1/w1")})
    job = JobPlan.from_json(plan_job("allreduce", topology, name="job", workers=NAMES).to_json())
    assert job.describe("w1")["port"] == "shm:/run/s1/w1"
    assert "port" not in job.describe("w0")


def test_the_environment_comes_first_and_udp_last(lab_socket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announced = f"shm:{lab_socket}"
    monkeypatch.delenv("CATCHMENT_SHM_PORT", raising=False)
    assert chosen_path("auto", 0, announced) == str(lab_socket)
    assert chosen_path("auto", 0, "shm:/nowhere") is None
    to_come = lab_socket.with_name("to-come")
    assert chosen_path("auto", 0, f"shm:{to_come}") is None
    assert chosen_path("auto", 0, f"shm:{to_come}", "a") == str(to_come), "a rail waits for its switch"
    assert chosen_path("auto", 0, "shm:/no/folder/here", "a") is None
    assert chosen_path("udp", 0, announced) is None
    assert chosen_path("shm:/another", 0, announced) == "/another"
    monkeypatch.setenv("CATCHMENT_SHM_PORT", "/nowhere")
    assert chosen_path("auto", 0, announced) == str(lab_socket)
    other = lab_socket.with_name("other")
    other.symlink_to(lab_socket)
    monkeypatch.setenv("CATCHMENT_SHM_PORT", str(other))
    assert chosen_path("auto", 0, announced) == str(other)
    with pytest.raises(CollectiveError, match="serial"):
        chosen_path("auto", 0, "serial:1")


@pytest.fixture
def lab_socket(tmp_path: Path) -> Iterator[Path]:
    with SwitchProcess(ports={1: f"shm:{tmp_path}/w0"}, grpc=f"unix:{tmp_path}/grpc"):
        yield tmp_path / "w0"
