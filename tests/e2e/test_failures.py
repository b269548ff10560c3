"""What is dead is named, not waited for."""

from __future__ import annotations

import json
import random

import pytest
from lab import Lab, all_exact, missing
from test_sums import luwu

from catchment.controlplane.client import SwitchError
from catchment.controlplane.diagnosis.waiting import diagnose, waiting_for
from catchment.controlplane.jobs import deploy
from catchment.controlplane.programs.cache import program_for

WAITING = ("stalled", "unreachable")
"""Kinds of an endpoint's error when others are missing: it heard something before, or nothing ever."""


@pytest.mark.sampled(4)
def test_a_worker_that_never_comes(lab: Lab, rng: random.Random) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1", "w2"])) as job:
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=[5000], timeout=10.0, hosts=["w0", "w2", "opt"])
        for member in members.values():
            member.wait_started()
        assert missing(lab, job, 1) == [("w1", "s1")]
        (w1,) = (one for one in diagnose(job, lab.fabric.clients, interval=0.0) if one.member == "w1")
        assert w1.packets == 0
        assert "w1 (port 2 of switch s1) has never sent anything" in str(w1)
        waiting = waiting_for(job, lab.fabric.clients)
        if lab.has_registers:
            (first,) = waiting
            assert (first.switch, first.stream, first.seq, first.members) == ("s1", "gradients", 0, ("w1",))
        else:
            assert waiting == []
        for host, member in members.items():
            result = member.result()
            assert result.get("kind") in WAITING, (host, result)


@pytest.mark.sampled(4)
def test_a_worker_that_dies(lab: Lab, rng: random.Random) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1", "w2"], slots=4)) as job:
        sizes = [200_000] * 20
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=sizes, timeout=10.0)
        for member in members.values():
            member.wait_started()
        members["w2"].process.kill()
        members.pop("w2").process.wait()
        assert missing(lab, job, 1) == [("w2", "s1")]
        for host, member in members.items():
            result = member.result()
            assert result.get("kind") in WAITING, (host, result)
            assert "gen" in result["error"]


def test_a_job_that_runs_well_misses_nobody(lab: Lab, rng: random.Random) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1"], slots=4)) as job:
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=[200_000] * 60, timeout=10.0)
        for member in members.values():
            member.wait_started()
        assert missing(lab, job, 0, interval=0.5) == []
        for member in members.values():
            assert member.process.poll() is None, "the job was over too soon: this test tests nothing"
            member.process.kill()
            member.process.wait()


@pytest.mark.sampled(4)
def test_a_switch_that_dies_and_comes_back(own_lab: Lab, rng: random.Random) -> None:
    lab = own_lab
    job = luwu(lab, ["w0", "w1"])
    deploy(job, lab.topology, lab.fabric.clients)
    members = lab.start(job, seed=rng.randrange(1 << 32), sizes=[200_000] * 20, timeout=10.0)
    for member in members.values():
        member.wait_started()
    lab.network.kill_switch("s1")
    for host, member in members.items():
        result = member.result()
        assert result.get("kind") in WAITING, (host, result)
        assert str(lab.topology.switch("s1").ip) in result["error"]
    with pytest.raises(SwitchError, match=r"switch s1 \((unix:\S+|127\.0\.0\.1:\d+)\)"):
        lab.fabric.clients["s1"].read("jobs")

    lab.network.start_switch("s1")
    lab.fabric.restore_switch("s1", program_for(lab.topology.switch("s1")))
    with lab.deployed(luwu(lab, ["w0", "w1"], "again")) as again:
        all_exact(lab.run(again, seed=rng.randrange(1 << 32), sizes=[3000]))


def test_a_job_survives_the_restart_of_its_switch(own_lab: Lab, rng: random.Random) -> None:
    """The same generations, registers empty: the senders fill them again and every bit is right."""
    lab = own_lab
    program = program_for(lab.topology.switch("s1"))
    with lab.deployed(luwu(lab, ["w0", "w1"], slots=4)) as job:
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=[lab.most_elements] * 8, timeout=40.0)
        for member in members.values():
            member.wait_started()
        for _ in range(2):
            lab.network.kill_switch("s1")
            assert all(member.process.poll() is None for member in members.values()), "over before the restart"
            lab.network.start_switch("s1")
            lab.fabric.restore_switch("s1", program, [job])
        all_exact({host: member.result() for host, member in members.items()})


def test_scapy_members_meet_and_a_straggler_only_delays(lab: Lab) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1", "w2"], slots=8)) as job, lab.loss(0.01):
        started = []
        for host in job.ports:
            description = lab.write(job.describe(host))
            role = "root" if host == "opt" else "worker"
            late = ("--skew", "0.01") if host == "w1" else ()
            started.append(
                lab.python(
                    host,
                    role,
                    description,
                    "--count",
                    "40",
                    "--patience",
                    "90",
                    *late,
                    module="catchment.sim.lab.traffic.play",
                )
            )
        for process in started:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, [path.read_text() for path in lab.folder.glob("*.err")]
            assert json.loads(output)
