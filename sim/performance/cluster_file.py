"""Reads cluster files.

```yaml
fabric: {kind: rack-spine, racks: 4, per_rack: 8, spines: 1, oversubscription: 1, optimizers: 1}
# or {kind: one-switch, hosts: 8}, or instead of it  topology: two-racks.yaml
links: {host: 100gbps, up: 400gbps, latency: 265ns, loss: 0.001}
rails: [{name: a}, {name: b, host: 25gbps, latency: 265ns, by: ring, start: 10us}]
switch: {pipeline: 400ns, queue: 1MiB, sram: 48MiB, lanes: 64, slots: 1024, pps: 1gpps, max_workers: 64}
node: {gpus: 8, scale_up: 128GBps, memory: 80GiB, peak: 125tflops, mfu: 0.5, straggle: 0.05, slow: {r0h3: 2.0},
  proxy_link: 16GBps, proxy_ring: 16GBps}
hosts: [{name: "r[01]h*", link: 25gbps, gpus: 4, peak: 60tflops}]   # that differ, and links between switches that do
trunks: [{name: r0-s0, rate: 50gbps}]
nic: {push: 759ns, pull: 1293ns, respond: 33ns}   # or {model: software, receive: 1us, frame: 100ns}
failures:
  - {what: host, name: r0h1, at: 1ms, until: 3ms}
  - {what: trunk, name: "r*-s0", every: 1s, lasts: 5ms, within: 10s}
```

Every key but `fabric` or `topology` may be left out; sizes, times and rates have units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from catchment.controlplane.documents import Kind, Section, Tree, read
from catchment.controlplane.topology import Topology
from catchment.sim.performance.baselines import PAYLOAD
from catchment.sim.performance.cluster import Cluster, Node, Rail, Straggle, rack_spine, whole_picos
from catchment.sim.performance.cluster_values import (
    byte_time,
    bytes_at,
    number_at,
    quantity_at,
    some,
    speed_at,
    time_at,
)
from catchment.sim.performance.errors import ClusterError, PerformanceError
from catchment.sim.performance.failure_file import read_failures
from catchment.sim.performance.hosts_that_differ import read_nodes, read_rates
from catchment.sim.performance.models import (
    FRAME_OVERHEAD,
    LONGEST_START,
    PICOS_PER_SECOND,
    LinkModel,
    NicModel,
    ProgramModel,
    SwitchModel,
)
from catchment.sim.performance.quantities import Dimension
from catchment.sim.world import Faults
from catchment.wire.generated.constants import SUPPORTED_LANES

_KIND = Kind("cluster", ClusterError)
_KEYS = ("fabric", "topology", "links", "trunks", "rails", "switch", "node", "hosts", "nic", "failures")
_MOST = 1 << 16
_PEAK, _MFU = 125e12, 0.5


def load_cluster(path: Path, overrides: Mapping[str, str] | None = None) -> Cluster:
    """Read a cluster file.

    Args:
        overrides: dotted key -> text that stands there instead, as `links.loss` -> `0.01`.

    Raises:
        ClusterError: with file and line of what is wrong.
        TopologyError: of its topology file, the same.
    """
    tree = read(path, _KIND)
    for key, value in (overrides or {}).items():
        _override(tree, key, value)
    root = Section.root(tree, "`fabric` or `topology`")
    root.finish(_KEYS)
    return replace(_Reader(root, path.parent).cluster(), place=_place(tree))


def _place(tree: Tree) -> str:
    """File and line of the fabric, or of the topology's name."""
    assert isinstance(tree.root, yaml.MappingNode)
    line = next(key.start_mark.line for key, _ in tree.root.value if key.value in ("fabric", "topology"))
    return f"{tree.source}:{line + 1}"


def _override(tree: Tree, key: str, value: str) -> None:
    """Put a text in the place of a dotted key, with the mappings above it if they are missing."""
    node = tree.root
    *way, last = key.split(".")
    for part in way:
        node = _below(tree, node, key, part)
    if not isinstance(node, yaml.MappingNode):
        raise ClusterError(f"{tree.source}: {key} cannot be set: what is above it is no mapping")
    node.value = [pair for pair in node.value if pair[0].value != last]
    mark = node.start_mark
    node.value.append((_text(last, mark), _text(value, mark)))


def _below(tree: Tree, node: yaml.Node | None, key: str, part: str) -> yaml.Node:
    if not isinstance(node, yaml.MappingNode):
        raise ClusterError(f"{tree.source}: {key} cannot be set: what is above it is no mapping")
    for name, value in node.value:
        if name.value == part:
            return value  # type: ignore[no-any-return]
    mark = node.start_mark
    made = yaml.MappingNode("tag:yaml.org,2002:map", [], mark, mark)
    node.value.append((_text(part, mark), made))
    return made


def _text(value: str, mark: yaml.Mark) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", value, mark, mark)


@dataclass(frozen=True, slots=True)
class _Reader:
    root: Section
    folder: Path

    def cluster(self) -> Cluster:
        root = self.root
        if ("fabric" in root) == ("topology" in root):
            raise root.error_at("fabric", "give either `fabric` or `topology`")
        switch = self._switch()
        host_byte = byte_time(self._part("links"), "host", 80)
        if "topology" in root:
            path = self.folder / root.text("topology")
            if not path.exists():
                raise root.error_at("topology", f"there is no file {path}")
            topology, up_byte = Topology.load(path), host_byte
        else:
            topology, up_byte = self._fabric(switch, host_byte)
        hosts, trunks, failures = (
            self.root.sections(key) if key in self.root else [] for key in ("hosts", "trunks", "failures")
        )
        topology = read_rates(hosts, trunks, topology)
        links = self._links(host_byte, up_byte)
        node, peak, mfu = self._node(topology)
        rails = self._rails(links)
        return Cluster(
            topology, links, switch, self._nic(), node, read_nodes(hosts, topology, node, peak, mfu),
            *read_failures(failures, topology, rails), rails,
        )  # fmt: skip

    def _part(self, key: str) -> Section | None:
        return self.root.section(key) if key in self.root else None

    def _fabric(self, switch: SwitchModel, host_byte: int) -> tuple[Topology, int]:
        """The generated topology, and the time of a byte on links between switches."""
        section = self.root.section("fabric")
        kind = section.text("kind", None, ("rack-spine", "one-switch"))
        optimizers = [f"opt{at or ''}" for at in range(section.integer("optimizers", 0, 0, 64))]
        if kind == "one-switch":
            section.finish(("kind", "hosts", "optimizers"))
            names = [f"h{at}" for at in range(section.integer("hosts", None, 1, 500))]
            return rack_spine(racks=[names], spines=0, above=optimizers, slots=switch.slots), host_byte
        section.finish(("kind", "racks", "per_rack", "spines", "oversubscription", "optimizers"))
        racks, per_rack = section.integer("racks", None, 1, 4096), section.integer("per_rack", None, 1, 500)
        spines = section.integer("spines", 1, 1, 256)
        if racks * per_rack > _MOST:
            raise section.error_at("racks", f"{racks * per_rack} hosts: at most {_MOST} are simulated")
        has_rate = "up" in (self._part("links") or ())
        if "oversubscription" in section and has_rate:
            raise section.error_at("oversubscription", "says the same as `links.up`: give one of them")
        over = number_at(section, "oversubscription", 1.0, 0.01, 1000)
        names_by_rack = [[f"r{k}h{at}" for at in range(per_rack)] for k in range(racks)]
        topology = rack_spine(racks=names_by_rack, spines=spines, above=optimizers, slots=switch.slots)
        if has_rate:
            return topology, host_byte
        try:
            return topology, whole_picos(host_byte * spines * over / per_rack)
        except PerformanceError as error:
            key = "oversubscription" if "oversubscription" in section else "per_rack"
            raise section.error_at(
                key, f"between switches {error}: give more `spines`, a larger `oversubscription`, or `links.up`"
            ) from None

    def _links(self, host_byte: int, up_byte: int) -> LinkModel:
        section = self._part("links")
        if section is None:
            return LinkModel(host_byte, up_byte)
        section.finish(("host", "up", "latency", "loss", "duplicate", "reorder"))
        loss, duplicate, reorder = (number_at(section, key, 0.0, 0, 1) for key in ("loss", "duplicate", "reorder"))
        faults = Faults(loss=loss, duplicate=duplicate, reorder=reorder)
        latency = time_at(section, "latency", 265_000)
        return LinkModel(host_byte, byte_time(section, "up", up_byte), latency, faults)

    def _rails(self, links: LinkModel) -> tuple[Rail, ...]:
        """Networks beside one another: the cluster's links, but for what each says."""
        if "rails" not in self.root:
            return ()
        found: dict[str, Rail] = {}
        for section in self.root.sections("rails"):
            section.finish(("name", "by", "host", "latency", "start"))
            name = section.text("name")
            if name in found:
                raise section.error_at("name", f"rail {name!r} is there twice")
            host_byte = byte_time(section, "host", links.host_byte)
            latency = time_at(section, "latency", links.latency)
            # Between switches a rail has the same share of its hosts' rate as the cluster.
            try:
                up_byte = whole_picos(links.up_byte * host_byte / links.host_byte)
            except PerformanceError as error:
                raise section.error_at("host", f"between switches {error}: give a slower `host`") from None
            own = replace(links, host_byte=host_byte, up_byte=up_byte, latency=latency)
            start = quantity_at(section, "start", Dimension.TIME, 0, (0, LONGEST_START))
            by = section.text("by", "switch", ("switch", "ring"))
            found[name] = Rail(name, by, own, round(start))
        return tuple(found.values())

    def _switch(self) -> SwitchModel:
        section = self._part("switch")
        if section is None:
            return SwitchModel()
        section.finish(("pipeline", "queue", "sram", "lanes", "slots", "pps", "max_workers"))
        default = SwitchModel()
        lanes = section.integer("lanes", default.lanes, 1, 65535)
        if lanes not in SUPPORTED_LANES:
            raise section.error_at("lanes", f"{lanes} is not one of {', '.join(map(str, SUPPORTED_LANES))}")
        slots = section.integer("slots", default.slots, 1, 1 << 20)
        if slots & (slots - 1):
            raise section.error_at("slots", f"{slots} is not a power of two")
        rate = speed_at(section, "pps", Dimension.FRAME_RATE, 0) if "pps" in section else 0
        made = SwitchModel(
            time_at(section, "pipeline", default.pipeline),
            bytes_at(section, "queue", default.queue_bytes),
            round(PICOS_PER_SECOND / rate) if rate else 0,
            bytes_at(section, "sram", default.sram_bytes),
            lanes, slots, section.integer("max_workers", default.max_workers, 1, 4096),
        )  # fmt: skip
        longest = FRAME_OVERHEAD + max(PAYLOAD, made.vector_bytes)
        if made.queue_bytes < longest:
            raise section.error_at(
                "queue", f"{made.queue_bytes} bytes have no room for a frame: give {longest}B at least, as 1MiB"
            )
        try:
            Cluster(Topology("", {}, {}), switch=made).check_slots(slots)
        except PerformanceError as error:
            raise section.error_at("slots", str(error)) from None
        return made

    def _node(self, topology: Topology) -> tuple[Node, float, float]:
        """What hosts are; the peak of their GPUs, and the share of that which they do."""
        section = self._part("node")
        default = Node()
        if section is None:
            return default, _PEAK, _MFU
        section.finish(("gpus", "scale_up", "memory", "peak", "mfu", "straggle", "slow", "proxy_link", "proxy_ring"))
        peak, mfu = speed_at(section, "peak", Dimension.FLOPS, _PEAK), number_at(section, "mfu", _MFU, 0.001, 1)
        slow = {}
        if "slow" in section:
            below = section.section("slow")
            for host in below:
                if host not in topology.hosts:
                    raise below.error_at(host, f"no host {host!r}; there are {some(list(topology.hosts))}")
                slow[host] = number_at(below, host, 1.0, 0.01, 1000)
        node = Node(
            section.integer("gpus", default.gpus, 1, 64),
            speed_at(section, "scale_up", Dimension.BYTE_RATE, default.scale_up),
            quantity_at(section, "memory", Dimension.SIZE, default.memory), peak * mfu,
            Straggle(number_at(section, "straggle", 0.0, 0, 5), slow),
            speed_at(section, "proxy_link", Dimension.BYTE_RATE, default.proxy_link),
            speed_at(section, "proxy_ring", Dimension.BYTE_RATE, default.proxy_ring),
        )  # fmt: skip
        return node, peak, mfu

    def _nic(self) -> NicModel | ProgramModel:
        section = self._part("nic")
        if section is None:
            return NicModel()
        if section.text("model", "nic", ("nic", "software")) == "software":
            section.finish(("model", "receive", "frame", "ring"))
            program = ProgramModel()
            return ProgramModel(
                time_at(section, "receive", program.receive),
                time_at(section, "frame", program.frame),
                bytes_at(section, "ring", program.ring_bytes),
            )
        section.finish(("model", "push", "pull", "respond", "fifo"))
        default = NicModel()
        times = {key: time_at(section, key, getattr(default, key)) for key in ("push", "pull", "respond")}
        return NicModel(**times, fifo_bytes=bytes_at(section, "fifo", default.fifo_bytes))
