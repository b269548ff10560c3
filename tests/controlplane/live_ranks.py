"""Ranks of a job with tags on a real switch under a controller, whose keys follow one another after few vectors."""

from __future__ import annotations

import tempfile
import threading
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from running_controller import PATIENT, RunningController, until

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.deployment.store import open_store
from catchment.controlplane.jobs import JobRequest, StreamPlan, planning
from catchment.controlplane.programs.cache import cache_folder
from catchment.controlplane.topology import Host, PortRef, Switch, Topology
from catchment.host.collectives import Communicator
from catchment.host.membership import Membership
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated.constants import UDP_PORT, DropReason

JOB = "sum"
LANES = 8
TERM_BITS = 8
"""A key serves for 256 vectors."""
ELEMENTS = 90
"""An operation has so many: twelve vectors, beside that of signatures."""
WAIT = 120.0


class LiveRanks:
    """The job; a context manager.

    Args:
        hosts: one rank on each.
        udp: datagrams on addresses of the loopback network; else shared memory.
        fault: of each port of the switch, as after --fault PORT:.
        timing: of the controller.

    Attributes:
        names: of the hosts.
        controller: in a thread.
        token: of the job.
    """

    def __init__(self, hosts: int, *, udp: bool = False, fault: str = "", timing: Timing = PATIENT) -> None:
        self.names = tuple(f"w{rank}" for rank in range(hosts))
        self._udp, self._fault, self._timing = udp, fault, timing
        members = {
            name: Host(name, IPv4Interface(f"127.11.1.{port}/8"), f"02:00:00:0b:01:{port:02x}", PortRef("s1", port))
            for port, name in enumerate(self.names, 1)
        }
        switch = Switch("s1", ROOT / "p4src" / "luwu.p4", IPv4Address("127.11.0.254"), "02:00:00:0b:00:fe",
                        lanes=LANES, slots=64, tags=True)  # fmt: skip
        self.topology = Topology("ranks", {"s1": switch}, members)
        self._exits = ExitStack()

    def __enter__(self) -> LiveRanks:
        with ExitStack() as exits:
            few = exits.enter_context(pytest.MonkeyPatch.context())
            few.setattr(planning, "TERM_BITS", TERM_BITS)
            self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="catchment-")))
            if not self._udp:  # the controller tells a host of the memory that it shares with the switch
                hosts = {name: replace(host, shm=str(self.path(name))) for name, host in self.topology.hosts.items()}
                self.topology = replace(self.topology, hosts=hosts)
            cache_folder().mkdir(parents=True, exist_ok=True)
            faults = tuple(
                part for port in range(1, len(self.names) + 1) for part in ("--fault", f"{port}:{self._fault}")
            )
            self.switch = exits.enter_context(
                SwitchProcess(
                    ports={host.link.port: self._switch_port(name) for name, host in self.topology.hosts.items()},
                    program_dir=cache_folder(),
                    extra=faults if self._fault else (),
                )
            )
            self.controller = RunningController(
                self.topology, {"s1": self.switch.address}, self.folder / "controller", self._timing
            )
            exits.enter_context(self.controller)
            with self.controller.operator() as operator:
                until(lambda: all(s.state == "up" for s in operator.switches()), "the switch is up")
                self.token = operator.create(JobRequest(JOB, "allreduce", self.names, slots=4, tags=True)).token
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def _near(self, host: str) -> str:
        """The address of the switch's end of a host's cable of datagrams."""
        return f"127.11.2.{self.topology.host(host).link.port}"

    def _switch_port(self, host: str) -> str:
        if not self._udp:
            return f"shm:{self.path(host)}"
        far = self.topology.host(host).ip.ip
        return f"udp:{self._near(host)}:{UDP_PORT},{far}:{UDP_PORT},as={self.topology.switch('s1').ip}:{UDP_PORT}"

    def path(self, host: str) -> Path:
        """The socket of a host's shared-memory port."""
        return self.folder / host

    def join(self, host: str) -> Membership:
        """A host's place in the job."""
        return self.controller.join(JOB, host, self.token)

    def communicator(self, member: Membership, **options: Any) -> Communicator:
        """Its rank of the present epoch, which the member makes and follows."""
        way: dict[str, Any] = {"switch": (self._near(member.description.host), UDP_PORT)} if self._udp else {}
        return member.take(
            lambda description: Communicator.of_description(description, **{"timeout": WAIT, **way, **options})
        )

    def stream(self) -> StreamPlan:
        """The stream of the job, as it is stored."""
        with open_store(self.topology, self.controller.settings.folder) as stored:
            return stored.get(JOB).first.stream("sums")

    def epoch(self) -> int:
        """How often the generations were replaced, from 1."""
        with self.controller.operator() as operator:
            return int(operator.job(JOB).epoch)

    def refused(self) -> int:
        """Frames that the switch dropped because of their tags."""
        with SwitchClient.connect(self.switch.address, 1, read_only=True, timeout=60.0) as client:
            return client.counter("drops", DropReason.BAD_TAG)[0].packets


def part(seed: int, operation: int, rank: int) -> NDArray[np.int32]:
    """What a rank adds to an operation."""
    rng = np.random.default_rng((seed, operation, rank))
    return rng.integers(-(1 << 28), 1 << 28, ELEMENTS, dtype=np.int32)


def together(body: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """What `body(rank, host)` gives on each host, each in a thread, or the error that it raises."""
    results: dict[str, Any] = {}

    def run(rank: int, host: str) -> None:
        try:
            results[host] = body(rank, host)
        except Exception as error:
            results[host] = error

    threads = [threading.Thread(target=run, args=place, daemon=True) for place in enumerate(names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * WAIT)
    assert len(results) == len(names), f"hangs: {set(names) - set(results)}"
    return results


def add_up(ranks: Communicator, seed: int, operations: range) -> None:
    """All-reduces, each of whose sums is compared."""
    for operation in operations:
        total = np.zeros(ELEMENTS, np.int32)
        ranks.all_reduce(part(seed, operation, ranks.rank), total).wait(WAIT)
        wanted = sum(part(seed, operation, rank).astype(np.int64) for rank in range(ranks.size))
        np.testing.assert_array_equal(total, np.asarray(wanted).astype(np.int32), err_msg=f"operation {operation}")
