"""The command from an empty machine to a checked sum and back, as a person would use it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from lab import ROOT
from verbs import FOUND, Catchment

from catchment.controlplane.networks.state import is_held, jobs_folder, read_state
from catchment.controlplane.topology import Target
from catchment.sim.lab.held_address import HeldAddress
from catchment.sim.lab.mininet.leftovers import marked_processes, own_interfaces
from catchment.sim.lab.mininet.naming import interface_name
from catchment.wire.run_folder import run_folder

LANES = 8


@pytest.fixture
def name() -> str:
    return f"cli-{os.getpid()}"


@pytest.fixture
def topology(target: Target, tmp_path: Path, name: str) -> Path:
    text = (ROOT / "sim" / "topologies" / "two-racks.yaml").read_text()
    text = text.replace("name: two-racks", f"name: {name}").replace("../../p4src", str(ROOT / "p4src"))
    text = text.replace("    program:", f"    target: {target}\n    lanes: {LANES}\n    program:")
    path = tmp_path / "net.yaml"
    path.write_text(text)
    return path


@pytest.mark.sampled(4)
def test_from_an_empty_machine_to_a_sum_and_back(
    catchment: Catchment, topology: Path, name: str, tmp_path: Path
) -> None:
    assert "is up" in catchment("net", "up", "-d", str(topology))
    assert "already up" in catchment("net", "up", "-d", str(topology), code=1)
    assert "is up" in (run_folder() / f"{name}.log").read_text()
    catchment("job", "create", "train", "--workers", "w0,w1,w2,w3", "--root", "opt", "--slots", "8")
    hosts = ("opt", "w0", "w1", "w2", "w3")
    shown = json.loads(catchment("job", "show", "train", "--json"))
    for host in hosts:
        (tmp_path / f"{host}.json").write_text(json.dumps(shown["members"][host]))
    running = []
    for host in hosts:
        description = tmp_path / f"{host}.json"
        play = ("catchment.sim.lab.traffic.play", "root" if host == "opt" else "worker", str(description))
        command = [sys.executable, "-m", "catchment.cli", "net", "exec", host, sys.executable, "-m", *play]
        running.append(
            subprocess.Popen(
                [*command, "--count", "40", "--patience", "120"],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    for process in running:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        assert json.loads(output)
    (spine, *_) = json.loads(catchment("stats", "sp", "--json"))
    traffic = {t["member"]: t["packets"] for t in spine["jobs"] if t["stream"] == "gradients"}
    assert traffic["r1:3"] >= 40
    assert traffic["r2:3"] >= 40
    assert "is silent after" in catchment("diagnose", "train", "--seconds", "0.2", code=FOUND)

    catchment("table", "add", "r1", "ingress_faults", "port=1", "type=1&&&0xf", "maybe_drop", "threshold=0xffffffff",
              "--priority", "5")  # fmt: skip
    (fault,) = json.loads(catchment("table", "list", "r1", "ingress_faults", "--json"))
    assert (fault["match"], fault["priority"]) == ({"port": 1, "type": "1&&&0xf"}, 5)
    catchment("job", "remove", "train")
    assert json.loads(catchment("table", "list", "r1", "jobs", "--json")) == []
    assert "is down" in catchment("net", "down")
    assert own_interfaces(name) == []
    assert marked_processes(name) == []
    assert not is_held(name)


@pytest.mark.sampled(4)
def test_leftovers_of_a_killed_network_are_cleaned_up(catchment: Catchment, topology: Path, name: str) -> None:
    catchment("net", "up", "-d", str(topology))
    state = read_state(name)
    assert state is not None
    catchment("job", "create", "x", "--workers", "w0", "--root", "opt")
    handle = os.pidfd_open(state.owner)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    select.select([handle], [], [], 60)
    os.close(handle)
    assert own_interfaces(name), "nothing was left: this test tests nothing"
    assert "no network is up" in catchment("job", "list", code=1)
    assert "left over" in catchment("net", "list")
    assert "removed interface" in catchment("net", "down", name)
    assert own_interfaces(name) == []
    assert marked_processes(name) == []
    assert "left nothing behind" in catchment("net", "down", name)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_in_the_foreground_or_a_closed_terminal(
    catchment: Catchment, topology: Path, name: str, number: signal.Signals
) -> None:
    command = ["env", "--default-signal=HUP", sys.executable, "-u", "-m", "catchment.cli", "net", "up", str(topology)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as owner:
        assert owner.stdout is not None
        assert "is up" in owner.stdout.readline()
        assert own_interfaces(name)
        owner.send_signal(number)
        assert owner.wait(120) == 0
    assert own_interfaces(name) == []
    assert marked_processes(name) == []


@pytest.mark.sampled(4)
def test_a_switch_that_dies_ends_the_network_with_its_name(catchment: Catchment, topology: Path, name: str) -> None:
    command = [sys.executable, "-u", "-m", "catchment.cli", "net", "up", str(topology)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as owner:
        assert owner.stdout is not None
        assert owner.stderr is not None
        assert "is up" in owner.stdout.readline()
        switches = [p for p in marked_processes(name) if "switch" in Path(f"/proc/{p}/cmdline").read_text()]
        os.kill(switches[0], signal.SIGKILL)
        assert owner.wait(120) == 1
        assert "ended with code -9" in owner.stderr.read()
    assert own_interfaces(name) == []
    assert marked_processes(name) == []


@pytest.mark.sampled(4)
def test_what_was_started_on_hosts_ends_with_its_caller_or_the_network(
    catchment: Catchment, topology: Path, name: str, tmp_path: Path
) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    catchment("net", "up", "-d", str(topology))
    catchment("job", "create", "train", "--workers", "w0,w1", "--root", "opt")
    start = partial(subprocess.Popen, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    env=os.environ | {"TMPDIR": str(scratch)})  # fmt: skip
    play = [sys.executable, "-m", "catchment.cli", "traffic", "worker", "train", "--patience", "100", "--json"]
    with start([*play, "--host", "w0"]) as ended, start([*play, "--host", "w1"]) as stays:
        for one in (ended, stays):
            assert one.stderr is not None
            assert "frames sent" in one.stderr.readline()
        assert len(list(scratch.glob("*.json"))) == 2
        ended.terminate()
        assert json.loads(ended.communicate(timeout=60)[0])["error"] == "ended by a signal"
        assert ended.returncode == 1
        assert len(list(scratch.glob("*.json"))) == 1
        with start([sys.executable, "-m", "catchment.cli", "net", "exec", "w0", "sh", "-c", "echo; cat"],
                   stdin=subprocess.PIPE) as program:  # fmt: skip
            assert program.stdout is not None
            assert program.stdout.readline()
            assert "is down" in catchment("net", "down")
            assert program.wait(60) == -signal.SIGTERM
        assert json.loads(stays.communicate(timeout=60)[0])["error"]
    assert marked_processes(name) == []


@pytest.mark.slow
def test_a_switch_is_killed_and_restarted_by_hand(
    catchment: Catchment, topology: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verb itself puts jobs back where there is no controller; else it waits until that has restored everything."""
    catchment("net", "up", "-d", str(topology))
    catchment("job", "create", "train", "--workers", "w0,w1,w2,w3", "--root", "opt", "--slots", "8")
    before = catchment("table", "dump", "r1")
    command = [sys.executable, "-m", "catchment.cli", "stats", "r1", "--watch", "0.2", "--json"]
    impatient = os.environ | {"CATCHMENT_TIMEOUT": "20"}  # it waits so long for who is dead
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=impatient) as watching:
        assert watching.stdout is not None
        (seen,) = json.loads(watching.stdout.readline())
        assert {one["job"] for one in seen["jobs"]} == {"train"}
        assert "is dead" in catchment("net", "kill", "r1")
        assert any(json.loads(line) == [{"switch": "r1", "up": False}] for line in watching.stdout)
        watching.kill()
    with monkeypatch.context() as patience:  # nobody needs to wait long for who is dead
        patience.setenv("CATCHMENT_TIMEOUT", "5")
        assert "r1" in catchment("table", "dump", "r1", code=1)
        assert "r1" in catchment("doctor", "train", code=FOUND)
    assert "no controller runs" in catchment("net", "restart", "r1")
    assert catchment("table", "dump", "r1") == before
    assert "sx" in catchment("net", "restart", "sx", code=1)

    command = [sys.executable, "-m", "catchment.cli", "controller", "run"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as controller:
        try:
            assert controller.stdout is not None
            assert "controller of" in controller.stdout.readline()
            catchment("table", "add", "r1", "l2", "dst=02:00:00:00:77:01", "forward", "port=1")
            with_mine = catchment("table", "dump", "r1")
            assert with_mine != before
            assert "restored by the controller" in catchment("net", "restart", "r1")
            assert catchment("table", "dump", "r1") == with_mine
            assert "is down" in catchment("net", "down")
            assert controller.wait(60) == 0, "it ends with its network"
        finally:
            controller.kill()
    assert not jobs_folder(name).exists()
    assert not (run_folder() / f"{name}.log").exists()


@pytest.mark.sampled(4)
def test_a_switch_on_interfaces_of_this_machine(catchment: Catchment, target: Target, name: str) -> None:
    """`switch run`, `p4 compile`, `switch load`, then entries by address: no topology at all."""
    ends = [interface_name(name, "x", port) for port in (1, 2)]
    subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
    for end in ends:
        subprocess.run(["ip", "link", "set", end, "up"], check=True)
    held = HeldAddress()
    address = held.address
    command = [sys.executable, "-m", "catchment.cli", "switch", "run", "-p", f"1:{ends[0]}", "--grpc", address,
               "--target", str(target)]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT) as switch:
        try:
            program = str(ROOT / "p4src" / "luwu.p4")
            made = json.loads(catchment("p4", "compile", program, "--target", str(target), "-D", "LANES=8", "--json"))
            assert "runs luwu" in catchment("switch", "load", address, made["p4info"], made["device_config"])
            catchment("table", "add", address, "l2", "dst=02:00:00:00:00:01", "forward", "port=1")
            (entry,) = json.loads(catchment("table", "list", address, "l2", "--json"))
            assert entry["params"] == {"port": 1}
        finally:
            switch.terminate()
            held.close()
            subprocess.run(["ip", "link", "delete", ends[0]], check=True)
