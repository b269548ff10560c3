"""A topology as network namespaces, links and switch processes on this machine."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host as MininetHost

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.networks.state import NetworkError, NetworkState, StateFile, switch_socket
from catchment.controlplane.topology import AUTO_ADDRESS, PortRef, Target, Topology
from catchment.controlplane.topology.rates import port_faults
from catchment.ending_signals import held_back
from catchment.sim.lab.held_address import HeldAddress
from catchment.sim.lab.mininet import preflight
from catchment.sim.lab.mininet.claim import Claim
from catchment.sim.lab.mininet.leftovers import remove_leftovers
from catchment.sim.lab.mininet.naming import ENVIRONMENT_MARK, host_interface, interface_name
from catchment.sim.lab.mininet.nodes import (
    SwitchNode,
    host_commands,
    merged_udp_command,
    nic_commands,
    prepare_switch_interface,
    run,
)
from catchment.sim.lab.switch_process import COMMANDS, splitting_ports, start_switch
from catchment.softswitch.watched_process import WatchedProcess
from catchment.wire.run_folder import run_folder
from catchment.wire.socket_folder import socket_folder


class MininetNetwork:
    """A running network; a context manager that leaves nothing behind.

    Args:
        topology: what to build.
        name: names of interfaces and the state file derive from it; the topology's by default. Two
            networks can be up at once under different names.
        log_folder: takes each switch's log and is kept; by default one that goes with the network.
        source: file the topology was read from, for the state file.
    """

    def __init__(
        self, topology: Topology, *, name: str | None = None, log_folder: Path | None = None, source: str = ""
    ) -> None:
        self.topology = topology
        self.name = name or topology.name
        self._keep_logs = log_folder is not None
        self.log_folder = log_folder or run_folder() / f"{self.name}.logs"
        self._source = source
        self._ready = False
        self._addresses: dict[str, str] = {}
        self._processes: dict[str, WatchedProcess] = {}
        self._killed: set[str] = set()  # switches whose end is no accident
        self._popen: list[subprocess.Popen[Any]] = []
        self._merged: set[PortRef] = set()  # links to hosts on which UDP passes merged
        self._folders = contextlib.ExitStack()  # of sockets whose path would be too long elsewhere
        self._held: list[HeldAddress] = []  # of switches whose address we chose, which they have after a restart, too
        self._net: Any = None
        self._state: StateFile | None = None
        self._claim: Claim | None = None

    # Life

    def start(self) -> Self:
        """Bring everything up; removes leftovers of an earlier network of this name first.

        Raises:
            NetworkError: not root, a live network of this machine has the name or the names of its
                interfaces, a tool or a switch failed. Nothing is left behind.
        """
        preflight.check()
        self._state = StateFile.acquire(self.name)
        try:
            self._claim = Claim.acquire(self.name)
            remove_leftovers(self._claim)
            self.log_folder.mkdir(parents=True, exist_ok=True)
            with self._marked_environment():
                self._build()
            for switch in self.topology.switches:
                self.start_switch(switch)
            self._state.write(self.state())
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Take everything down; safe to call twice and on a half-built network."""
        with held_back(even_ctrl_c_again=True):  # a clean-up cut short leaves things behind
            for process in self._popen:
                if process.poll() is None:
                    process.kill()
                process.wait()
            self._popen.clear()
            for switch in self._processes.values():
                switch.stop()
            self._processes.clear()
            for held in self._held:
                held.close()
            self._folders.close()
            if self._net is not None:
                net, self._net = self._net, None
                net.stop()
            if self._claim is not None:
                remove_leftovers(self._claim)
                self._claim.drop()
                self._claim = None
            if self._state is not None:
                if not self._keep_logs:
                    shutil.rmtree(self.log_folder, ignore_errors=True)
                self._state.release()
                self._state = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def state(self) -> NetworkState:
        """What other processes may know of this network."""
        hosts = {name: self._net.getNodeByName(name).pid for name in self.topology.hosts}
        return NetworkState(self.name, os.getpid(), self._source, dict(self._addresses), hosts, self._ready)

    def announce_ready(self) -> None:
        """Tell other processes that the switches have their programs."""
        assert self._state is not None
        self._ready = True
        self._state.write(self.state())

    # Switches

    def start_switch(self, name: str) -> None:
        """Start (or start again) the process of a switch; it comes up without a program.

        Raises:
            NetworkError: it runs already, or does not start.
        """
        if name in self._processes and self._processes[name].is_alive():
            raise NetworkError(f"switch {name} is already running")
        switch = self.topology.switch(name)
        if name not in self._addresses:
            self._addresses[name] = self._choose_address(name) if switch.grpc == AUTO_ADDRESS else switch.grpc
        address = self._addresses[name]
        ports = self.interfaces(name) | self._memory(name)
        command = COMMANDS[switch.target](address, switch.device_id, ports, name)
        for port, limit in port_faults(self.topology, name).items():
            command += ["--fault", f"{port}:{limit}"]
        log = self.log_folder / f"{name}.log"
        self._processes[name] = start_switch(name, command, log=log, environment=self.environment())
        self._killed.discard(name)
        self._merge_udp(name)

    def _choose_address(self, switch: str) -> str:
        """A Unix socket, which is for this user alone; BMv2's server takes a TCP port of loopback."""
        if self.topology.switch(switch).target is Target.BMV2:
            self._held.append(HeldAddress())
            return self._held[-1].address
        chosen = switch_socket(self.name, switch)
        return f"unix:{chosen or Path(self._folders.enter_context(socket_folder())) / 'switch.sock'}"

    def _merge_udp(self, switch: str) -> None:
        """Let UDP pass merged between a switch that splits it and its hosts; frames stay what they are elsewhere."""
        splits = splitting_ports(self._addresses[switch])
        for host in self.topology.hosts.values():
            for number, nic in enumerate(host.nics):
                if nic.link.switch != switch or nic.shm:
                    continue
                on = nic.link.port in splits
                if on == (nic.link in self._merged):
                    continue
                run(merged_udp_command(interface_name(self.name, switch, nic.link.port), on=on))
                own = merged_udp_command(host_interface(number), on=on)
                run(["mnexec", "-a", str(self._net.getNodeByName(host.name).pid), *own])
                (self._merged.add if on else self._merged.discard)(nic.link)

    def check_switch(self, name: str) -> None:
        """Make sure that a switch still runs.

        Raises:
            NetworkError: it ended by itself; quotes the end of its log.
        """
        self._processes[name].check()

    def watch(self, *descriptors: int) -> int:
        """Wait until one of some descriptors is readable, and return it.

        Raises:
            NetworkError: a switch ended by itself; quotes the end of its log.
        """
        with contextlib.ExitStack() as stack:
            ends = {}
            for name in self._processes.keys() - self._killed:
                self.check_switch(name)
                descriptor = self._processes[name].end_descriptor()
                stack.callback(os.close, descriptor)
                ends[descriptor] = name
            ready, _, _ = select.select([*descriptors, *ends], [], [])
        first: int = ready[0]  # of the order in which they were given
        if first in ends:
            self.check_switch(ends[first])
        return first

    def kill_switch(self, name: str) -> None:
        """End a switch at once, as a crash or a power cut would."""
        self._killed.add(name)
        self._processes[name].kill()

    def restart_switch(self, name: str) -> None:
        """Start a switch again, without a program; one that runs is killed first.

        Raises:
            NetworkError: it does not start.
        """
        if self._processes[name].is_alive():
            self.kill_switch(name)
        self.start_switch(name)

    @contextlib.contextmanager
    def stopped_switch(self, name: str) -> Iterator[None]:
        """A switch that hangs for the length of a block: its process stands still, its connections stay."""
        pid = self._processes[name].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def address(self, switch: str) -> str:
        """gRPC address of a switch."""
        self.topology.switch(switch)
        return self._addresses[switch]

    @property
    def addresses(self) -> Mapping[str, str]:
        """gRPC address of every switch."""
        return dict(self._addresses)

    def connect(self, switch: str, **options: Any) -> SwitchClient:
        """A P4Runtime client of a switch; options as `SwitchClient.connect`."""
        device = self.topology.switch(switch).device_id
        return SwitchClient.connect(self.address(switch), device, name=switch, **options)

    def interfaces(self, switch: str) -> dict[int, str]:
        """Port number -> interface in this namespace, e.g. for a capture; a port that is memory has none."""
        cables = [port for port in self.topology.ports(switch) if port not in self._memory(switch)]
        return {port: interface_name(self.name, switch, port) for port in cables}

    def _memory(self, switch: str) -> dict[int, str]:
        """Port number -> what the switch is told of a port whose host shares memory with it."""
        nics = [nic for host in self.topology.hosts.values() for nic in host.nics]
        return {nic.link.port: f"shm:{nic.shm}" for nic in nics if nic.shm and nic.link.switch == switch}

    # Hosts

    def environment(self) -> dict[str, str]:
        """Environment of every process of this network."""
        return {**os.environ, ENVIRONMENT_MARK: self.name}

    def popen(self, host: str, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a program in a host's namespace; it is ended with the network at the latest.

        Args:
            host: where.
            argv: program and arguments.
            options: as `subprocess.Popen`; `env` is completed with the network's mark.
        """
        self.topology.host(host)
        node = self._net.getNodeByName(host)
        env = {**options.pop("env", os.environ), ENVIRONMENT_MARK: self.name}
        command = ["mnexec", "-a", str(node.pid), *map(str, argv)]
        process: subprocess.Popen[Any] = subprocess.Popen(command, env=env, **options)
        self._popen.append(process)
        return process

    def run(self, host: str, argv: Sequence[str], timeout: float = 60.0) -> str:
        """Run a program in a host's namespace to its end and return its output.

        Raises:
            NetworkError: it failed or took too long; quotes its output.
        """
        process = self.popen(host, argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            raise NetworkError(f"{host}: {' '.join(argv)} took over {timeout:g} s:\n{output}") from None
        finally:
            self._popen.remove(process)
        if process.returncode:
            raise NetworkError(f"{host}: {' '.join(argv)} failed ({process.returncode}):\n{output}")
        return str(output)

    # Building

    @contextlib.contextmanager
    def _marked_environment(self) -> Iterator[None]:
        # Mininet starts its shells with our environment and offers no other way to mark them.
        os.environ[ENVIRONMENT_MARK] = self.name
        try:
            yield
        finally:
            del os.environ[ENVIRONMENT_MARK]

    def _build(self) -> None:
        setLogLevel("warning")
        self._net = net = Mininet(topo=None, build=False, controller=None, switch=SwitchNode, host=MininetHost)
        for index, switch in enumerate(self.topology.switches, start=1):
            net.addSwitch(switch, dpid=f"{index:x}")
        mtu = self.topology.mtu
        for host in self.topology.hosts.values():
            node = net.addHost(host.name, ip=None)
            commands = host_commands()
            for number, nic in enumerate(host.nics):
                if nic.shm:
                    continue
                own, name = host_interface(number), interface_name(self.name, nic.link.switch, nic.link.port)
                net.addLink(
                    node, net.getNodeByName(nic.link.switch), port2=nic.link.port,
                    intfName1=own, intfName2=name, addr1=nic.mac,
                )  # fmt: skip
                prepare_switch_interface(name, mtu)
                commands += nic_commands(own, str(nic.ip), mtu)
            for command in commands:
                run(["mnexec", "-a", str(node.pid), *command])
        for link in self.topology.links:
            names = [interface_name(self.name, end.switch, end.port) for end in (link.a, link.b)]
            net.addLink(
                net.getNodeByName(link.a.switch), net.getNodeByName(link.b.switch),
                port1=link.a.port, port2=link.b.port, intfName1=names[0], intfName2=names[1],
            )  # fmt: skip
            for name in names:
                prepare_switch_interface(name, mtu)
