"""Puts jobs onto a simulated network: rows, groups and endpoints, on one switch or on a tree of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from protocol_endpoints import (
    Consumer,
    Sender,
    StreamSpec,
    check_parameters,
    check_sum,
    parameters,
    partial,
)
from protocol_network import Host, Network

from catchment.sim.golden.switch_tables import Root, Worker
from catchment.wire.generated.constants import Header, Mode, PacketType

Place = tuple[str, int]


@dataclass(frozen=True)
class Rack:
    """One switch's part of a stream: members by port (hosts or child racks), `up` the port to root or parent."""

    switch: str
    ports: tuple[int, ...]
    up: int | None = None
    wid_above: int = 0


@dataclass(frozen=True)
class Placement:
    """The place of a stream: its generation, first slot, number of slots T, and row in the per-job registers."""

    gen: int
    base: int
    slots: int
    row: int


def install(net: Network, rack: Rack, mode: Mode, at: Placement) -> None:
    """Table rows for one switch."""
    tables = net.switches[rack.switch].tables
    gen, group = at.gen, at.gen
    tables.groups[group] = rack.ports
    for wid, port in enumerate(rack.ports):
        tables.jobs[(gen, port)] = Worker(
            mode=mode,
            wid=wid,
            own=1 << wid,
            base=at.base,
            mask=at.slots - 1,
            full=(1 << len(rack.ports)) - 1,
            job=at.row,
            group=group,
            up_port=rack.up or 0,
            up_wid=rack.wid_above,
            src_ip=net.neighbour(rack.switch, port)[1],
        )
        net.set_receiver(rack.switch, port, gen)
    if rack.up is not None:
        tables.jobs[(gen, rack.up)] = Root(mode, at.row, group, net.neighbour(rack.switch, rack.up)[1])
        net.set_receiver(rack.switch, rack.up, gen)


def host(net: Network, place: Place) -> Host:
    return net.hosts.setdefault(place, Host())


def add_reduce(net: Network, spec: StreamSpec, workers: list[Place], root: Place) -> None:
    """Endpoints of a gradient stream; worker ids in the order of `workers`."""
    for wid, place in enumerate(workers):
        node = host(net, place)
        node.sender = Sender(spec, lambda seq, again, wid=wid: partial(spec, wid, seq, again, None))
        node.wants += (PacketType.MH,)
    node = host(net, root)
    node.consumer = Consumer(spec, check_sum(spec, list(range(len(workers)))))
    node.drain_limit = spec.window
    node.wants += (PacketType.FA,)


def add_broadcast(net: Network, spec: StreamSpec, workers: list[Place], root: Place) -> None:
    """Endpoints of a parameter stream."""
    for place in workers:
        node = host(net, place)
        node.consumer = Consumer(spec, check_parameters(spec))
        node.wants += (PacketType.PARAM,)

    def make(seq: int, _again: bool) -> tuple[Header, bytes]:
        payload = parameters(spec.gen, seq)
        return Header(type=PacketType.PARAM, gen=spec.gen, wid=9, lanes=len(payload), seq=seq), payload

    node = host(net, root)
    node.sender = Sender(spec, make)
    node.wants += (PacketType.MH,)


def add_all_reduce(net: Network, spec: StreamSpec, workers: list[Place]) -> None:
    """Endpoints of an all-reduce stream: everyone sends, everyone receives."""
    for wid, place in enumerate(workers):
        node = host(net, place)
        consumer = Consumer(spec, check_sum(spec, list(range(len(workers)))))
        node.consumer = consumer
        node.sender = Sender(
            spec, lambda seq, again, wid=wid, consumer=consumer: partial(spec, wid, seq, again, consumer)
        )
        node.wants += (PacketType.FA, PacketType.MH)


def tree(net: Network, lanes: int) -> tuple[list[Rack], list[Place], Place]:
    """Two racks and one direct worker under a spine: (racks, leaves first; worker places; root place)."""
    for name in ("spine", "rack0", "rack1"):
        net.add_switch(name, lanes)
    net.connect(("spine", 1), ("rack0", 20))
    net.connect(("spine", 2), ("rack1", 21))
    racks = [
        Rack("rack0", (1, 2), up=20, wid_above=0),
        Rack("rack1", (1, 2, 3), up=21, wid_above=1),
        Rack("spine", (1, 2, 3), up=30),
    ]
    workers = [("rack0", 1), ("rack0", 2), ("rack1", 1), ("rack1", 2), ("rack1", 3), ("spine", 3)]
    return racks, workers, ("spine", 30)


def install_tree(net: Network, racks: list[Rack], mode: Mode, at: Placement) -> None:
    """LEAF on the racks, `mode` on the spine (which has no port upwards in an all-reduce)."""
    for rack in racks[:-1]:
        install(net, rack, Mode.LEAF, at)
    spine = racks[-1] if mode != Mode.ALLREDUCE else replace(racks[-1], up=None)
    install(net, spine, mode, at)
