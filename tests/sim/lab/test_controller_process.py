"""A controller that a program starts never outlives it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from os import pidfd_open
from pathlib import Path

from catchment.checkout import ROOT
from catchment.controlplane.topology import Topology
from catchment.sim.lab.controller_process import ControllerProcess


def test_a_controller_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    topology = Topology.load(ROOT / "sim/topologies/one-switch.yaml")
    ControllerProcess(topology, dict.fromkeys(topology.switches, "127.0.0.1:1"), tmp_path / "c")
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    command = [
        sys.executable,
        "-m",
        "catchment.sim.lab.controller_process",
        tmp_path / "c" / "settings",
        str(owner.pid),
    ]
    with owner, subprocess.Popen(command, cwd=ROOT) as controller:
        try:
            ended = pidfd_open(controller.pid)
            assert not select.select([ended], [], [], 0.5)[0], "it does not run at all"
            owner.kill()
            assert select.select([ended], [], [], 60)[0], "the controller goes on without its owner"
        finally:
            controller.kill()
            owner.kill()


def test_a_controller_whose_terminal_closes_ends_in_order(tmp_path: Path) -> None:
    topology = Topology.load(ROOT / "sim/topologies/one-switch.yaml")
    made = ControllerProcess(topology, dict.fromkeys(topology.switches, "127.0.0.1:1"), tmp_path / "c")
    command = ["env", "--default-signal=HUP", sys.executable, "-um", "catchment.sim.lab.controller_process"]
    words = [*command, str(tmp_path / "c" / "settings"), str(os.getpid())]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT) as controller:
        assert controller.stdout is not None
        assert made.address.encode() in controller.stdout.readline()
        controller.send_signal(signal.SIGHUP)
        assert controller.wait(60) == 0
