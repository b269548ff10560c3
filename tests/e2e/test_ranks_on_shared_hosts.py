"""Two machines with four ranks each, with a controller and a job file: a switch of each machine adds its ranks up."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from controlled import ControlledLab
from lab import ROOT, Lab
from test_torch_machines import CASES, access, address, run_on, skip_on

from catchment.controlplane.jobs import JobRequest, deploy, remove, renew
from catchment.controlplane.topology import Target

HOSTS = ("w0", "w2")  # of two racks
PER_HOST = 4
SIZE = len(HOSTS) * PER_HOST
PATIENCE = 480.0
GROUPS = (
    "case_all_ranks_of_all_hosts",
    "case_a_mesh_of_hosts_and_ranks",
    "case_groups_with_several_ranks_on_each_host",
)


def host_of(rank: int) -> str:
    """Ranks are numbered as torchrun does: one machine after the other."""
    return HOSTS[rank // PER_HOST]


def run_ranks(
    lab: ControlledLab | Lab, script: str, arguments: Sequence[str], environment: Mapping[str, Mapping[str, str]]
) -> list[tuple[int, list[dict[str, Any]], str]]:
    """A process for each rank, to its end: code, what it printed, complaints. Rank and size are its first arguments."""
    processes = []
    for rank in range(SIZE):
        first, *others = arguments
        given = [first, str(rank), str(SIZE), *others] if first else [str(rank), str(SIZE), *others]
        own = {**environment[host_of(rank)], "RANKS_OF_HOSTS": ",".join(map(host_of, range(SIZE)))}
        processes.append(
            lab.network.popen(
                host_of(rank),
                ["env", "OMP_NUM_THREADS=1", *(f"{k}={v}" for k, v in own.items()),
                 sys.executable, str(CASES / script), *given],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
        )  # fmt: skip
    late = threading.Timer(PATIENCE, lambda: [process.kill() for process in processes])
    late.start()
    try:
        said = [process.communicate() for process in processes]
    finally:
        late.cancel()
        for process in processes:
            process.kill()
            process.wait()
    return [
        (process.returncode, [json.loads(line) for line in output.splitlines() if line.startswith("{")], complaint)
        for process, (output, complaint) in zip(processes, said, strict=True)
    ]


def check_groups(lab: ControlledLab | Lab, environment: Mapping[str, Mapping[str, str]], store: Path) -> None:
    """Every case of groups goes well on every rank."""
    arguments = [str(CASES / "shared_group_cases.py"), str(store), "120", ",".join(GROUPS)]
    for rank, (code, said, complaint) in enumerate(run_ranks(lab, "member.py", arguments, environment)):
        assert code == 0 and len(said) == len(GROUPS), f"rank {rank}: {said}{complaint}"
        assert not [one for one in said if "error" in one], f"rank {rank}: {said}"


def lose(lab: ControlledLab, token: str, victim: int, store: Path) -> None:
    """Rank `victim` is killed; every other rank is told which, or which machine is lost with it."""
    environment = {host: access(lab, token, host) for host in HOSTS}
    ended = run_ranks(lab, "victim.py", ["", str(store), str(victim)], environment)
    assert ended[victim][0] != 0
    for rank, (code, said, complaint) in enumerate(ended):
        if rank != victim:
            assert code == 0 and said, f"rank {rank}: {complaint}"
            for report in said[-1]["errors"]:
                assert f"rank {victim}" in report["error"], f"rank {rank}: {report}"


@pytest.mark.sampled(4)
def test_torchrun_with_four_ranks_on_each_of_two_machines(controlled: ControlledLab) -> None:
    skip_on(controlled)
    with controlled.job("torch", HOSTS, root=None, slots=64) as token:
        commands = {
            host: [
                "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", str(PER_HOST), "--node-rank",
                str(rank), "--master-addr", address(controlled, HOSTS[0]), "--master-port", "29513",
                "-m", "catchment.demo.ddp", "--preset", "tiny", "--steps", "5",
            ]
            for rank, host in enumerate(HOSTS)
        }  # fmt: skip
        ended = run_on(controlled, commands, {host: access(controlled, token, host) for host in HOSTS})
    said = "".join(output for _, output, _ in ended.values())
    for code, _, complaint in ended.values():
        assert code == 0, said + complaint
    weights = re.findall(r"rank \d: weights (\w{16})", said)
    assert len(weights) == SIZE and len(set(weights)) == 1, said


@pytest.mark.slow
def test_groups_under_a_controller_before_and_after_a_rank_is_killed(controlled: ControlledLab, tmp_path: Path) -> None:
    """A rank that did not join for its machine is killed, then one that did; the next ranks find new generations."""
    skip_on(controlled)
    with controlled.job("torch", HOSTS, root=None, slots=16) as token:
        environment = {host: access(controlled, token, host) for host in HOSTS}
        check_groups(controlled, environment, tmp_path / "first")
        lose(controlled, token, PER_HOST + 1, tmp_path / "second")
        lose(controlled, token, PER_HOST, tmp_path / "third")
        assert controlled.operator.job("torch").epoch > 2
        check_groups(controlled, environment, tmp_path / "fourth")


@pytest.mark.slow
def test_groups_of_a_job_file_before_and_after_renewal(tree: Lab, tmp_path: Path) -> None:
    """The mesh's groups across the machines, and those of several ranks on each, are parts that a grid makes."""
    if tree.topology.switches["r1"].target is Target.BMV2:
        pytest.skip("BMv2 is too slow for what PyTorch moves")
    levels = tuple((f"across{place}", len(HOSTS)) for place in range(PER_HOST + 3))
    clients = tree.fabric.clients
    group = JobRequest("torch", "allreduce", HOSTS, slots=16, grid=levels).plan(tree.topology, tree.allocator)
    deploy(group, tree.topology, clients)
    try:
        file = tmp_path / "job.json"
        environment = {host: {"CATCHMENT_JOB": str(file)} for host in HOSTS}
        for run in ("first", "second"):
            file.write_text(json.dumps(group.describe_all()), encoding="utf-8")
            check_groups(tree, environment, tmp_path / run)
            renewed = group.renewed(tree.allocator)
            assert not renew(group, renewed, tree.topology, clients)
            group = renewed
    finally:
        remove(group, clients)
