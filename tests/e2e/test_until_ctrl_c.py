"""What runs until Ctrl-C ends with exit code 0 then: every verb of which docs/reference/cli.md says so."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab import ROOT, missing_tools

from catchment.controlplane.topology import Target
from catchment.sim.lab.held_address import HeldAddress

pytestmark = pytest.mark.slow  # each case starts a verb, and waits until that is at work

NETWORK = f"until-{os.getpid()}"
TOPOLOGY = f"""\
name: {NETWORK}
switches:
  s1: {{{{program: {ROOT}/p4src/luwu.p4, lanes: 8, ip: 10.0.0.254, mac: 02:00:00:00:fe:01, grpc: {{address}}}}}}
hosts:
  w0: {{{{ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1}}}}
  opt: {{{{ip: 10.0.0.2/24, mac: 02:00:00:00:00:02, link: s1:2}}}}
"""
AT_WORK = {
    "net up": (("net", "up", "net.yaml"), "is up"),
    "switch run": (("switch", "run", "-p", "1:lo"), '"ready"'),
    "controller run": (("controller", "run", "net.yaml"), "controller of"),
    "capture": (("capture", "iface=lo", "-o", "run.pcapng"), "capturing at lo"),
    "stats --watch": (("stats", "-t", "net.yaml", "--watch", "0.1"), "does not answer"),
    "stats --prometheus": (("stats", "-t", "net.yaml", "--prometheus", "0"), "metrics at"),
}
"""Verb: its command line, and words of the line that it prints once it is at work."""


@pytest.fixture
def name() -> str:
    return NETWORK


def test_these_are_the_verbs_of_the_page() -> None:
    text = " ".join((ROOT / "docs" / "reference" / "cli.md").read_text("utf-8").split())
    (promised,) = re.findall(r"what runs until Ctrl-C \(([^)]*)\) then ends with 0", text)
    assert re.findall(r"`([^`]+)`", promised) == list(AT_WORK)


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and packet sockets need root")
@pytest.mark.parametrize("verb", AT_WORK)
@pytest.mark.usefixtures("catchment")
def test_ctrl_c_is_how_it_ends(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if verb == "net up" and (reason := missing_tools(Target.EMBEDDED)):
        pytest.skip(reason)
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "0.5" if verb == "stats --watch" else "60")  # no switch answers that
    words, sign = AT_WORK[verb]
    with HeldAddress() as held:
        (tmp_path / "net.yaml").write_text(TOPOLOGY.format(address=held.address))
        with subprocess.Popen(
            [sys.executable, "-u", "-m", "catchment.cli", *words],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            assert running.stdout is not None
            said = []
            while not said or sign not in said[-1]:
                said.append(running.stdout.readline())
                assert said[-1], f"it ended before it was at work: {''.join(said)}"
            running.send_signal(signal.SIGINT)
            rest, _ = running.communicate(timeout=120)
    assert (running.returncode, "Traceback" in rest) == (0, False), rest
