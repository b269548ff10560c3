"""A topology of switch models with the control plane's own entries in their tables."""

from __future__ import annotations

from collections import deque

from catchment.controlplane.client import TableEntry
from catchment.controlplane.client.values import to_int
from catchment.controlplane.deployment.fabric import FLOOD_GROUP, flood_ports, routes
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.topology import Host, PortRef, Topology
from catchment.sim.golden.switch_model import SwitchModel
from catchment.sim.golden.switch_tables import Binding, Receiver, Root, TagKey, Worker
from catchment.wire.generated.constants import Mode

_STEPS = 100_000


class ModelFabric:
    """Every switch a model; `send` carries a frame from a host to wherever its copies end."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.switches = {
            n: SwitchModel(lanes=s.lanes, slots=s.slots, tags=s.tags) for n, s in topology.switches.items()
        }
        for name, model in self.switches.items():
            here = topology.switch(name)
            model.tables.own_addresses[int(here.ip)] = to_int(here.mac, 48, "mac")
            model.tables.l2 = {
                to_int(topology.host(h).mac, 48, "mac"): port for h, port in routes(topology, name).items()
            }
            model.tables.groups[FLOOD_GROUP] = tuple(flood_ports(topology, name))
            model.tables.flood_group = FLOOD_GROUP
            model.tables.switch_addresses = {int(s.ip): s is here for s in topology.switches.values()}
            model.tables.strangers = False
            model.tables.bindings = {
                port: Binding(to_int(peer.mac, 48, "mac"), int(peer.ip.ip)) if isinstance(peer, Host) else None
                for port, peer in topology.ports(name).items()
            }

    def deploy(self, job: JobPlan) -> None:
        """Put a job's entries into the models."""
        for config in switch_configs(job, self.topology):
            tables = self.switches[config.switch].tables
            for group, ports in config.groups.items():
                tables.groups[group] = tuple(ports)
            for entry in config.entries:
                if entry.table == "packed":
                    tables.packed.add(int(entry.match["gen"]))
                    continue
                key = (int(entry.match["gen"]), int(entry.match["port"]))
                if entry.table == "tags":
                    tables.tags[key] = _tag_key(entry)
                    continue
                if entry.table == "receivers":
                    tables.receivers[key] = Receiver(**{k: to_int(v, 48, k) for k, v in entry.params.items()})
                else:
                    tables.jobs[key] = _row(entry)

    def send(self, host: str, frame: bytes) -> list[tuple[str, bytes]]:
        """What arrives at which host because `host` sent a frame."""
        arrived = []
        queue = deque([(self.topology.host(host).link, frame)])
        for _ in range(_STEPS):
            if not queue:
                return arrived
            at, data = queue.popleft()
            for port, out in self.switches[at.switch].inject(at.port, data):
                peer = self.topology.ports(at.switch)[port]
                if isinstance(peer, Host):
                    arrived.append((peer.name, out))
                else:
                    assert isinstance(peer, PortRef)
                    queue.append((peer, out))
        raise AssertionError("frames circulate")


def _tag_key(entry: TableEntry) -> TagKey:
    halves = (to_int(entry.params[name], 64, name).to_bytes(8, "little") for name in ("k0", "k1"))
    return TagKey(b"".join(halves), to_int(entry.params["wid"], 8, "wid"))


def _row(entry: TableEntry) -> Worker | Root:
    values = {name: to_int(value, 32, name) for name, value in entry.params.items()}
    mode = Mode(values.pop("mode"))
    return Worker(mode=mode, **values) if entry.action == "worker" else Root(mode=mode, **values)
