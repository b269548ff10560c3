"""PyTorch on several machines: hosts of a network train through the switches between them."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from controlled import ControlledLab
from lab import ROOT

from catchment.controlplane.controller import messages

CASES = ROOT / "tests" / "host" / "torch" / "distributed"
PATIENCE = 480.0
MESH = (
    "case_a_mesh_goes_through_the_switch",
    "case_a_controller_makes_every_group",
    "case_a_groups_own_settings_do_not_lose_the_job",
    "case_a_group_that_a_switch_has_no_room_for_goes_by_gloo",
)
STAGES = ("gather.between", "gather.inside", "scatter.inside", "scatter.between", "replicas")
MICS = ("case_every_group_is_a_job_of_its_own", "case_a_checkpoint_loads_at_another_partition_size")
CHOSEN = (
    "case_all_reduce_sums_floats",
    "case_broadcast_carries_any_bytes",
    "case_all_gather",
    "case_reduce_leaves_the_others_alone",
    "case_reduce_scatter",
    "case_barrier_holds_everybody",
    "case_objects",
    "case_point_to_point",
    "case_subgroups_have_jobs_of_their_own",
)


def run_on(
    lab: ControlledLab, commands: Mapping[str, Sequence[str]], environment: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[int, str, str]]:
    """A process on each host, to its end: code, output, complaints."""
    processes = {
        host: lab.network.popen(
            host,
            ["env", "OMP_NUM_THREADS=1", *(f"{k}={v}" for k, v in environment[host].items()), sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for host, command in commands.items()
    }
    late = threading.Timer(PATIENCE, lambda: [process.kill() for process in processes.values()])
    late.start()
    try:
        said = {host: process.communicate() for host, process in processes.items()}
    finally:
        late.cancel()
        for process in processes.values():
            process.kill()
            process.wait()
    return {host: (processes[host].returncode, *said[host]) for host in processes}


def skip_on(lab: ControlledLab) -> None:
    """These cases move megabytes in frames of 8 lanes, which takes BMv2 hours."""
    if lab.is_slow:
        pytest.skip("BMv2 is too slow for what PyTorch moves; tests/e2e/test_sums.py has its all-reduces")


def access(lab: ControlledLab, token: str, host: str) -> dict[str, str]:
    """The environment of a host that joins through the controller."""
    return {
        "CATCHMENT_CONTROLLER": lab.controller.address,
        "CATCHMENT_CERTIFICATES": str(lab.controller.certificates),
        "CATCHMENT_JOB": "torch",
        "CATCHMENT_TOKEN": token,
        "CATCHMENT_HOST": host,
    }


def address(lab: ControlledLab, host: str) -> str:
    return str(lab.topology.host(host).ip.ip)


@pytest.mark.sampled(4)
def test_torchrun_on_machines_of_two_racks(controlled: ControlledLab) -> None:
    skip_on(controlled)
    hosts = ["w0", "w2"]
    with controlled.job("torch", hosts, root=None, slots=64) as token:
        commands = {
            host: [
                "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(rank),
                "--master-addr", address(controlled, hosts[0]), "--master-port", "29511",
                "-m", "catchment.demo.ddp", "--preset", "tiny", "--steps", "11",
            ]
            for rank, host in enumerate(hosts)
        }  # fmt: skip
        ended = run_on(controlled, commands, {host: access(controlled, token, host) for host in hosts})
    for code, output, complaint in ended.values():
        assert code == 0, output + complaint
    said = "".join(output for _, output, _ in ended.values())
    weights = re.findall(r"rank \d: weights (\w{16})", said)
    assert len(weights) == 2 and len(set(weights)) == 1, said


@pytest.mark.sampled(4)
def test_a_job_file_with_ranks_in_another_order(controlled: ControlledLab, tmp_path: Path) -> None:
    skip_on(controlled)
    hosts = ["w0", "w1", "w2"]
    with controlled.job("torch", hosts, root=None, slots=64):
        job = tmp_path / "job.json"
        job.write_text(json.dumps(describe(controlled)))
        commands = {
            host: [
                str(CASES / "member.py"), str(CASES / "collective_cases.py"), str(rank), "3", str(tmp_path / "store"),
                "120", ",".join(CHOSEN),
            ]
            for rank, host in enumerate(reversed(hosts))
        }  # fmt: skip
        ended = run_on(controlled, commands, {host: {"CATCHMENT_JOB": str(job)} for host in hosts})
    check_cases(ended, CHOSEN)


def check_cases(ended: Mapping[str, tuple[int, str, str]], cases: Sequence[str]) -> None:
    """Every case went well on every host."""
    for host, (code, output, complaint) in ended.items():
        said = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        assert code == 0 and len(said) == len(cases), f"{host}: {output}{complaint}"
        assert not [one for one in said if "error" in one], f"{host}: {said}"


@pytest.mark.sampled(4)
def test_groups_of_some_ranks_go_through_the_switches(controlled: ControlledLab, tmp_path: Path) -> None:
    """A mesh of 2 x 2 over two racks, its ranks in another order than the job's workers; then groups as they come."""
    skip_on(controlled)
    hosts = ["w0", "w1", "w2", "w3"]
    with controlled.job("torch", ["w2", "w0", "w3", "w1"], root=None, slots=64) as token:
        commands = {
            host: [
                str(CASES / "member.py"), str(CASES / "mesh_cases.py"), str(rank), "4", str(tmp_path / "store"), "120",
                ",".join(MESH),
            ]
            for rank, host in enumerate(hosts)
        }  # fmt: skip
        check_cases(run_on(controlled, commands, {host: access(controlled, token, host) for host in hosts}), MESH)


@pytest.mark.slow
@pytest.mark.parametrize("case", MICS)  # each with a job of its own, since parts end with their job
def test_a_sharded_model_has_jobs_that_the_controller_makes(
    controlled: ControlledLab, case: str, tmp_path: Path
) -> None:
    """Two nodes of two ranks, each a host: lanes go between the racks."""
    skip_on(controlled)
    hosts = ["w0", "w1", "w2", "w3"]
    with controlled.job("torch", hosts, root=None, slots=8) as token:
        commands = {
            host: [
                str(CASES / "member.py"), str(CASES / "mics_cases.py"), str(rank), "4", str(tmp_path / "store"), "120",
                case,
            ]
            for rank, host in enumerate(hosts)
        }  # fmt: skip
        check_cases(run_on(controlled, commands, {host: access(controlled, token, host) for host in hosts}), [case])


def describe(lab: ControlledLab) -> dict[str, object]:
    """The job as `catchment job show --json` prints it."""
    job = lab.operator.job("torch")
    members = {member.host: messages.described(member.description) for member in job.members}
    return {"name": job.name, "kind": job.kind, "workers": list(job.workers), "members": members}


@pytest.mark.sampled(4)
def test_a_machine_that_dies_is_named(controlled: ControlledLab, tmp_path: Path) -> None:
    skip_on(controlled)
    hosts = ["w0", "w1", "w3"]
    with controlled.job("torch", hosts, root=None, slots=64) as token:
        commands = {
            host: [str(CASES / "victim.py"), str(rank), "3", str(tmp_path / "store"), "2"]
            for rank, host in enumerate(hosts)
        }
        ended = run_on(controlled, commands, {host: access(controlled, token, host) for host in hosts})
    assert ended["w3"][0] != 0
    for host in hosts[:2]:
        code, output, complaint = ended[host]
        assert code == 0, complaint
        for report in json.loads(output.splitlines()[-1])["errors"]:
            assert "w3" in report["error"] or "rank 2" in report["error"], report


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_machine_that_dies_in_a_stage_of_a_sharded_training_is_named_by_all(
    controlled: ControlledLab, stage: str, tmp_path: Path, rng: random.Random
) -> None:
    """Two nodes of two ranks, each a host: those that share no group with the victim name it, too."""
    skip_on(controlled)
    hosts = ["w0", "w1", "w2", "w3"]
    victim = rng.randrange(len(hosts))
    with controlled.job("torch", hosts, root=None, slots=8) as token:
        commands = {
            host: [str(CASES / "stage_victim.py"), str(rank), "4", str(tmp_path / "store"), str(victim), stage]
            for rank, host in enumerate(hosts)
        }
        ended = run_on(controlled, commands, {host: access(controlled, token, host) for host in hosts})
    for rank, host in enumerate(hosts):
        code, output, complaint = ended[host]
        if rank == victim:
            assert code == -signal.SIGKILL, complaint
            continue
        assert code == 0, complaint
        said = json.loads(output.splitlines()[-1])
        assert said["ranks"] == [victim], said
        assert f"(rank {victim} of the world)" in said["error"], said
