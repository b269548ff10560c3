"""Hosts of one machine on addresses of the loopback network, and the switch between them: UDP without root."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.controlplane.deployment.fabric import Fabric
from catchment.controlplane.jobs import Allocator, JobRequest, deploy
from catchment.controlplane.programs.cache import cache_folder, programs_of
from catchment.controlplane.topology import Host, PortRef, Switch, Topology
from catchment.sim.lab.shm_lab import LUWU, SWITCH
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated.constants import UDP_PORT, DropReason

SWITCH_ADDRESS = IPv4Address("127.9.0.254")


class LoopbackNetwork:
    """A switch with a port of datagrams for each host; a context manager.

    A socket is bound to each port's own address, so a host's job names that in place of the switch's. With `tags` its
    job has some.
    """

    def __init__(self, hosts: Sequence[str], *, tags: bool = False) -> None:
        self._tags = tags
        members = {
            host: Host(host, IPv4Interface(f"127.9.1.{port}/8"), f"02:00:00:09:01:{port:02x}", PortRef(SWITCH, port))
            for port, host in enumerate(hosts, 1)
        }
        switch = Switch(SWITCH, LUWU, SWITCH_ADDRESS, "02:00:00:09:00:fe", tags=tags)
        self.topology = Topology("loopback", {SWITCH: switch}, members)
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            self.folder = Path(exits.enter_context(tempfile.TemporaryDirectory(prefix="catchment-")))
            grpc = f"unix:{self.folder}/grpc"
            ports = {
                host.link.port: f"udp:{self.near(name)}:{UDP_PORT},{host.ip.ip}:{UDP_PORT},"
                f"as={SWITCH_ADDRESS}:{UDP_PORT}"
                for name, host in self.topology.hosts.items()
            }
            self.switch = exits.enter_context(SwitchProcess(ports=ports, grpc=grpc, program_dir=cache_folder()))
            self.fabric = exits.enter_context(Fabric.connect(self.topology, {SWITCH: grpc}, timeout=240.0))
            self.fabric.push(programs_of(self.topology))
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    def near(self, host: str) -> str:
        """The address of the switch's end of a host's cable."""
        return f"127.9.2.{self.topology.host(host).link.port}"

    def refused(self) -> int:
        """Frames that the switch dropped because of their tags."""
        return self.fabric.clients[SWITCH].counter("drops", DropReason.BAD_TAG)[0].packets

    def job_file(self, slots: int) -> Path:
        """A job of all hosts, as `catchment job show --json` prints it."""
        group = JobRequest("train", "allreduce", tuple(self.topology.hosts), slots=slots, tags=self._tags).plan(
            self.topology, Allocator(self.topology)
        )
        deploy(group, self.topology, self.fabric.clients)
        document: dict[str, Any] = group.describe_all()
        for host, member in document["members"].items():
            member["switch"][0] = self.near(host)
        file = self.folder / "job.json"
        file.write_text(json.dumps(document))
        return file
