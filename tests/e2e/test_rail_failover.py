"""A job on three rails over UDP, as a person would run it: rails fail and return, and the command says so."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from controlled import until
from lab import ROOT
from verbs import FOUND, Catchment

from catchment.controlplane.networks.state import admin_socket, read_state
from catchment.controlplane.topology import Target
from catchment.sim.lab.held_address import HeldAddress
from catchment.softswitch.admin import SwitchAdmin

MEMBER = Path(__file__).with_name("rail_member.py")
RANKS = ["w0", "w1", "w2"]


@pytest.fixture
def name(target: Target) -> str:
    if target is Target.BMV2:
        pytest.skip("BMv2's ports inflict no faults, and it is too slow for several rails")
    return f"rails-{os.getpid()}"


@pytest.fixture
def topology(tmp_path: Path, name: str) -> Path:
    text = (ROOT / "sim" / "topologies" / "three-rails.yaml").read_text()
    path = tmp_path / "net.yaml"
    path.write_text(text.replace("name: three-rails", f"name: {name}").replace("../../p4src", str(ROOT / "p4src")))
    return path


class Job:
    """A job over all rails, and its ranks as processes on their hosts."""

    def __init__(self, catchment: Catchment, folder: Path, seed: int) -> None:
        self._catchment = catchment
        self.stop = folder / "stop"
        words = ("--kind", "allreduce", "--workers", ",".join(RANKS), "--rails", "a,b,c", "--slots", "32")
        catchment("job", "create", "sums", *words)
        told = json.loads(catchment("job", "show", "sums", "--json"))["members"]
        self.members = []
        for host in RANKS:
            task = folder / f"{host}.json"
            body = {"description": told[host], "timeout": 120.0, "seed": seed, "elements": 50_000}
            task.write_text(json.dumps({**body, "stop": str(self.stop)}))
            command = [
                sys.executable,
                "-m",
                "catchment.cli",
                "net",
                "exec",
                host,
                sys.executable,
                str(MEMBER),
                str(task),
            ]
            self.members.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        for member in self.members:
            self._line(member, "started\n")

    def _line(self, member: subprocess.Popen[str], wanted: str) -> None:
        assert member.stdout is not None
        watchdog = threading.Timer(240.0, member.kill)
        watchdog.start()
        line = member.stdout.readline()
        watchdog.cancel()
        assert line == wanted

    def rails(self) -> list[dict[str, dict[str, Any]]]:
        """What each rank says of each rail."""
        ranks = json.loads(self._catchment("rails", "show", "sums", "--json"))["ranks"]
        assert [rank["rank"] for rank in ranks] == [0, 1, 2]
        return [{rail["name"]: rail for rail in rank["rails"]} for rank in ranks]

    def states(self, rail: str) -> set[str]:
        """The states of a rail, at each rank."""
        return {rails[rail]["state"] for rails in self.rails()}

    def end(self) -> list[dict[str, Any]]:
        """Let the ranks end; what they say."""
        self.stop.write_text("")
        return [json.loads(member.communicate(timeout=240)[0].splitlines()[-1]) for member in self.members]

    def kill(self) -> None:
        """Leave no process behind where something has failed."""
        for member in self.members:
            member.kill()
            member.wait()


def scraped(port: int) -> str:
    """What Prometheus gets; empty until it is served and every rail is in it."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
            page = str(reply.read().decode())
    except urllib.error.URLError:
        return ""
    return page if page.count("\ncatchment_rail_up{") >= 2 else ""


@pytest.mark.slow
def test_two_rails_of_three_fail_and_return_and_the_command_says_so(
    catchment: Catchment, topology: Path, name: str, tmp_path: Path, rng: random.Random
) -> None:
    catchment("net", "up", "-d", str(topology))
    with ExitStack() as exits:
        job = Job(catchment, tmp_path, rng.getrandbits(32))
        exits.callback(job.kill)
        catchment("net", "kill", "b1")
        until(lambda: job.states("b") == {"down"}, "all ranks say that b is down")
        assert all(rails["b"]["carrier"] != "b" and rails["b"]["incidents"] >= 1 for rails in job.rails())
        said = json.loads(catchment("doctor", "sums", "--seconds", "0.2", "--json", code=FOUND))["sums"]
        assert any(finding["what"].startswith("rail b of job sums is down") for finding in said)

        network = read_state(name)
        assert network is not None
        socket = admin_socket(network.addresses["a1"])
        assert socket is not None
        with SwitchAdmin(socket) as admin:
            before = next(port["faults"] for port in admin.ports() if port["port"] == 1)
            admin.set_faults(1, "loss=1")
            until(lambda: job.states("a") == {"down"}, "all ranks say that a is down")
            held = HeldAddress()
            port = held.address.rpartition(":")[2]
            command = [sys.executable, "-m", "catchment.cli", "stats", "--prometheus", held.address]
            server = exits.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL))
            exits.callback(server.kill)
            page = until(lambda: scraped(int(port)), "the metrics have the rails")
            held.close()
            assert 'catchment_rail_up{job="sums",rail="a",switch="a1"} 0.0' in page
            assert 'catchment_rail_up{job="sums",rail="c",switch="c1"} 1.0' in page
            rows = catchment("stats", "a1").splitlines()
            assert any("sums" in row and " a " in row and "down" in row for row in rows)
            admin.set_faults(1, before)
        catchment("net", "restart", "b1")
        until(lambda: job.states("a") == job.states("b") == {"up"}, "both rails return")
        said = job.end()
    assert [one.get("wrong", one) for one in said] == [[], [], []]
    assert len({one["operations"] for one in said}) == 1
