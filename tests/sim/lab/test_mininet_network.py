"""The emulated network itself, with a hub in place of the P4 switch: links, processes, clean-up."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from catchment.controlplane.networks.state import is_held, read_state
from catchment.controlplane.topology import Target, Topology, racks, star
from catchment.ending_signals import held_back
from catchment.sim.lab import switch_process
from catchment.sim.lab.mininet import MininetNetwork, NetworkError
from catchment.sim.lab.mininet.claim import Claim
from catchment.sim.lab.mininet.leftovers import marked_processes, own_interfaces, remove_leftovers
from catchment.sim.lab.mininet.naming import interface_prefix

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
HUB = Path(__file__).with_name("hub_switch.py")
ECHO = Path(__file__).with_name("udp_echo.py")


def hub_command(address: str, _device_id: int, ports: Mapping[int, str], _name: str) -> list[str]:
    return [sys.executable, str(HUB), address, *ports.values()]


@pytest.fixture(autouse=True)
def _hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(switch_process.COMMANDS, Target.EMBEDDED, hub_command)
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "run"))


def small(name: str) -> Topology:
    return star(["w0", "w1"], program=Path("none.p4"), name=name)


def network_name() -> str:
    return f"test-{os.getpid()}-{time.monotonic_ns()}"


def reach(net: MininetNetwork, source: str, destination: str, size: int = 64) -> None:
    """A datagram goes there and comes back, unfragmented."""
    address = str(net.topology.host(destination).ip.ip)
    server = net.popen(destination, [sys.executable, str(ECHO), "serve", address], stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    net.run(source, [sys.executable, str(ECHO), "ask", address, str(size)])
    server.kill()


def test_hosts_reach_each_other_and_nothing_remains() -> None:
    name = network_name()
    with MininetNetwork(small(name)) as net:
        reach(net, "w0", "w1")
        assert len(own_interfaces(name)) == 2
        pids = marked_processes(name)
        assert len(pids) >= 4  # two hosts, the switch's shell, the switch
        state = read_state(name)
        assert state is not None
        assert state.addresses == net.addresses
    assert own_interfaces(name) == []
    assert marked_processes(name) == []
    assert read_state(name) is None


def test_a_tree_connects_hosts_of_different_racks() -> None:
    name = network_name()
    topology = racks([["a0", "a1"], ["b0"]], ["opt"], program=Path("none.p4"), name=name, mtu=9000)
    with MininetNetwork(topology) as net:
        for other in ("b0", "opt"):
            reach(net, "a1", other, size=8900)


def test_hosts_have_loopback_and_no_ipv6() -> None:
    with MininetNetwork(small(network_name())) as net:
        addresses = net.run("w1", ["ip", "-oneline", "addr", "show", "up"])
    assert "127.0.0.1/8" in addresses
    assert "10.0.0.2/16" in addresses
    assert "inet6" not in addresses


def test_processes_of_hosts_end_with_the_network() -> None:
    with MininetNetwork(small(network_name())) as net:
        sleeper = net.popen("w1", ["sleep", "1000"])
        assert sleeper.poll() is None
    assert sleeper.poll() is not None


def test_the_same_name_twice_is_refused() -> None:
    name = network_name()
    with MininetNetwork(small(name)), pytest.raises(NetworkError, match="already up"):
        MininetNetwork(small(name)).start()


def test_a_live_network_is_untouched_by_one_of_its_name_in_another_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = network_name()
    with MininetNetwork(small(name)) as net:
        monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "other"))
        with pytest.raises(NetworkError, match=rf"network {name} is already up \(process {os.getpid()}, run folder"):
            MininetNetwork(small(name)).start()
        assert read_state(name) is None
        monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "run"))
        reach(net, "w0", "w1")


def test_a_live_network_is_untouched_by_one_whose_interfaces_would_have_its_names() -> None:
    name = network_name()
    twin = next(other for n in itertools.count() if interface_prefix(other := f"t{n}") == interface_prefix(name))
    with MininetNetwork(small(name)) as net:
        with pytest.raises(NetworkError, match=f"as those of network {name} are, which is up"):
            MininetNetwork(small(twin)).start()
        assert read_state(twin) is None
        reach(net, "w0", "w1")


def test_a_command_that_fails_quotes_its_output() -> None:
    with MininetNetwork(small(network_name())) as net:
        with pytest.raises(NetworkError, match=r"w0: .*failed \(3\):\nwhy"):
            net.run("w0", ["sh", "-c", "echo why; exit 3"])
        with pytest.raises(NetworkError, match="took over"):
            net.run("w0", ["sleep", "100"], timeout=0.1)


def test_a_switch_that_dies_at_start_is_named_and_nothing_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(switch_process.COMMANDS, Target.EMBEDDED, lambda *_: ["sh", "-c", "echo broken; exit 7"])
    name = network_name()
    with pytest.raises(NetworkError, match=r"switch s1 ended with code 7 at its start:\n  broken"):
        MininetNetwork(small(name)).start()
    assert own_interfaces(name) == []
    assert marked_processes(name) == []


OWNER = """
import select
import sys
sys.path.insert(0, {tests!r})
from test_mininet_network import hub_command, small
from catchment.controlplane.topology import Target
from catchment.sim.lab import switch_process
from catchment.sim.lab.mininet import MininetNetwork
switch_process.COMMANDS[Target.EMBEDDED] = hub_command
with MininetNetwork(small({name!r})) as net:
    net.popen("w0", ["sleep", "1000"])
    print("up", flush=True)
    while not select.select([sys.stdin], [], [], 0.5)[0]:
        pass  # a Ctrl-C that comes just before a wait is seen after it
"""


def start_owner(name: str) -> subprocess.Popen[str]:
    script = OWNER.format(tests=str(Path(__file__).parent), name=name)
    owner = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HUB.parents[2]
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    return owner


def test_ctrl_c_cleans_up() -> None:
    name = network_name()
    with start_owner(name) as owner:
        assert is_held(name)
        owner.send_signal(signal.SIGINT)
        owner.wait(120)
    assert own_interfaces(name) == []
    assert marked_processes(name) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_ends_a_program_waits_for_a_clean_up(number: signal.Signals) -> None:
    came: list[int] = []
    before = signal.signal(number, lambda *_: came.append(number))
    try:
        with held_back(even_ctrl_c_again=True):
            signal.raise_signal(number)
            assert came == []
    finally:
        signal.signal(number, before)
    assert came == [number]


def test_leftovers_of_a_killed_owner_are_found_and_removed() -> None:
    name = network_name()
    with start_owner(name) as owner:
        owner.kill()
        owner.wait(120)
    assert not is_held(name)
    assert marked_processes(name), "the killed owner left nothing: this test tests nothing"
    with Claim.acquire(name) as claim:
        assert remove_leftovers(claim)
    assert own_interfaces(name) == []
    assert marked_processes(name) == []
    with MininetNetwork(small(name)) as net:
        reach(net, "w1", "w0")
