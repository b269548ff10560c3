"""`catchment traffic` on a network that is up: members, a straggler and attackers, as a person would start them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from controlled import until
from lab import ROOT

from catchment.controlplane.topology import Target

COMMAND = [sys.executable, "-m", "catchment.cli"]
TOPOLOGY = """\
name: {name}
defaults: {{}}
switches:
  s1: {{program: {program}, target: {target}, lanes: 8, ip: 10.0.0.254, mac: 02:00:00:00:fe:01, grpc: auto}}
hosts:
  w0: {{ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1}}
  w1: {{ip: 10.0.0.2/24, mac: 02:00:00:00:00:02, link: s1:2}}
  opt: {{ip: 10.0.0.3/24, mac: 02:00:00:00:00:03, link: s1:3}}
  out: {{ip: 10.0.0.4/24, mac: 02:00:00:00:00:04, link: s1:4}}
"""
Network = Callable[..., None]


@pytest.fixture
def network(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "60")
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("CATCHMENT_STATE_DIR", str(tmp_path / "state"))
    name = f"traffic-{os.getpid()}"

    def up(program: str, *, tags: bool = False) -> None:
        path = tmp_path / "net.yaml"
        text = TOPOLOGY.format(name=name, program=ROOT / "p4src" / f"{program}.p4", target=target)
        if tags:
            text = text.replace("lanes: 8,", "lanes: 8, tags: true,")
        path.write_text(text.replace("defaults: {}\n", ""))
        catchment("net", "up", "-d", str(path))

    yield up
    subprocess.run([*COMMAND, "net", "down", name], cwd=ROOT, check=True)


def catchment(*words: str, code: int = 0) -> str:
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
    assert done.returncode == code, f"{words}: {done.stdout}\n{done.stderr}"
    return done.stderr if code else done.stdout


def traffic(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "traffic", *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


def outcome(process: subprocess.Popen[str]) -> Any:
    output, complaints = process.communicate(timeout=400)
    assert process.returncode == 0, f"{output}\n{complaints}"
    return json.loads(output)


def drops() -> dict[str, int]:
    (switch,) = json.loads(catchment("stats", "s1", "--json"))
    return dict(switch["drops"])


def until_dropped(reason: str, frames: int) -> None:
    """Wait until the switch has counted so many; it may look at the last a little after its sender has ended."""
    until(lambda: drops().get(reason, 0) >= frames, f"{frames} frames are dropped as {reason}")


@pytest.mark.sampled(4)
def test_members_meet_while_a_host_attacks(network: Network, seed: int) -> None:
    network("luwu")
    catchment("job", "create", "train", "--workers", "w0,w1", "--root", "opt", "--slots", "8")
    common = ("--count", "30", "--patience", "120", "--seed", str(seed))
    playing = [
        traffic("root", "train", "--host", "opt", *common),
        traffic("worker", "train", "--host", "w0", "--loss", "0.05", *common),
        traffic("straggler", "train", "--host", "w1", "--skew", "0..0.02", "--rate", "500", *common),
    ]
    attacks = {
        kind: outcome(traffic("attacker", "train", "--host", "out", "--kind", kind, "--count", "40"))
        for kind in ("spoofed", "arp", "flood")
    }
    root, lossy, straggler = map(outcome, playing)
    assert (root["right"], root["wrong"], root["error"]) == (30, 0, None)
    assert [worker["acknowledged"] for worker in (lossy, straggler)] == [30, 30]
    assert lossy["seed"] == seed
    for kind, done in attacks.items():
        ((reason, number),) = done["expected_drops"].items()
        assert number == 40, kind
        until_dropped(reason, 40)

    assert "is not in job train; in it are: w0, w1, opt" in catchment("traffic", "worker", "train", "--host", "out",
                                                                     code=1)  # fmt: skip
    assert "attack from one that is not" in catchment("traffic", "attacker", "train", "--host", "w0", code=1)
    assert "has the role root in job train" in catchment("traffic", "worker", "train", "--host", "opt", code=1)
    assert "loss 2 is not a probability" in catchment("traffic", "worker", "train", "--host", "w0", "--loss", "2",
                                                      code=1)  # fmt: skip
    assert "no host 'w9'" in catchment("traffic", "worker", "train", "--host", "w9", code=1)


@pytest.mark.sampled(4)
def test_every_stream_of_luwu_has_players(network: Network, seed: int) -> None:
    network("luwu")
    catchment("job", "create", "train", "--workers", "w0,w1", "--root", "opt", "--slots", "8")
    catchment("job", "create", "both", "--kind", "allreduce", "--workers", "w0,w1,out", "--slots", "8")
    common = ("--count", "30", "--patience", "120", "--seed", str(seed))
    layers = (*common, "--stream", "parameters")
    root, *takers = (
        traffic("root", "train", "--host", "opt", *layers),
        traffic("worker", "train", "--host", "w0", "--loss", "0.05", *layers),
        traffic("straggler", "train", "--host", "w1", "--skew", "0..0.02", *layers),
    )
    peers = (
        traffic("worker", "both", "--host", "w0", "--loss", "0.05", *common),
        traffic("straggler", "both", "--host", "w1", "--skew", "0..0.02", *common),
        traffic("worker", "both", "--host", "out", "--rate", "500", *common),
    )
    sent = outcome(root)
    assert (sent["started"], sent["acknowledged"]) == (30, 30)
    for taker in map(outcome, takers):
        assert (taker["right"], taker["wrong"]) == (30, 0)
    for peer in map(outcome, peers):
        assert (peer["acknowledged"], peer["right"], peer["wrong"]) == (30, 30, 0)
    assert "kind allreduce has no stream 'parameters'" in catchment(
        "traffic", "worker", "both", "--host", "w0", "--stream", "parameters", code=1
    )


@pytest.mark.sampled(4)
def test_members_of_a_job_with_tags_meet_while_one_s_host_attacks(network: Network, seed: int) -> None:
    network("luwu", tags=True)
    create = ("job", "create", "--slots", "8", "--workers", "w0,w1", "--root", "opt")
    catchment(*create, "train", "--tags")
    catchment(*create, "plain")
    common = ("--count", "30", "--patience", "120", "--seed", str(seed))
    keyless = ("attacker", "train", "--kind", "keyless", "--count", "40")
    forged = outcome(traffic(*keyless, "--host", "w0"))
    playing = [
        traffic("root", "train", "--host", "opt", *common),
        traffic("worker", "train", "--host", "w0", "--loss", "0.05", *common),
        traffic("straggler", "train", "--host", "w1", "--skew", "0..0.02", *common),
    ]
    assert forged["expected_drops"] == {"BAD_TAG": 40}
    root, *workers = map(outcome, playing)
    assert (root["right"], root["wrong"], root["frames"]["forged"]) == (30, 0, 0)
    assert [worker["acknowledged"] for worker in workers] == [30, 30]
    assert drops()["BAD_TAG"] == 40
    assert "needs a member's: w0, w1, opt" in catchment("traffic", *keyless, "--host", "out", code=1)
    said = catchment("traffic", "attacker", "plain", "--kind", "keyless", "--host", "w0", code=1)
    assert "the job has no tags" in said


@pytest.mark.sampled(4)
def test_workers_of_the_slots_check_every_sum(network: Network, seed: int) -> None:
    network("p4sgd")
    catchment("job", "create", "fast", "--kind", "slots", "--workers", "w0,w1,opt", "--slots", "8")
    common = ("--count", "30", "--patience", "120", "--seed", str(seed))
    playing = [
        traffic("worker", "fast", "--host", "w0", "--loss", "0.05", *common),
        traffic("straggler", "fast", "--host", "w1", "--skew", "0..0.02", *common),
        traffic("worker", "fast", "--host", "opt", "--rate", "1000", *common),
    ]
    stolen = outcome(traffic("attacker", "fast", "--host", "out", "--kind", "stolen", "--count", "40"))
    for worker in map(outcome, playing):
        assert (worker["right"], worker["wrong"], worker["confirmed"]) == (30, 0, 30)
    assert stolen["expected_drops"] == {"UNKNOWN_JOB": 40}
    until_dropped("UNKNOWN_JOB", 40)
    assert "cannot play the root" in catchment("traffic", "root", "fast", "--host", "w0", code=1)
    said = catchment("traffic", "worker", "fast", "--host", "w0", "--count", "100", "--patience", "0.5", code=1)
    assert "nothing new for 0.5 s; rounds that wait: " in said
