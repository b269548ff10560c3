"""`catchment group` and `catchment clone`: what the replication engine copies, and where to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

import typer

from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.target import DeviceOption, SwitchArgument, TopologyOption, connect
from catchment.controlplane.client import CloneSession, MulticastGroup, Replica, SwitchError
from catchment.controlplane.dump.checks import LARGEST, LARGEST_NUMBER

group_app = typer.Typer(help="Multicast groups.", no_args_is_help=True)
clone_app = typer.Typer(help="Clone sessions.", no_args_is_help=True)

NumberArgument = Annotated[int, typer.Argument(help="Its number.", min=1, max=LARGEST_NUMBER)]
PortsArgument = Annotated[
    list[str], typer.Argument(metavar="PORT[:INSTANCE]...", help="A copy for each; INSTANCE is the egress_rid.")
]
_PORT = re.compile(r"(?P<port>[0-9]{1,10})(?::(?P<instance>[0-9]{1,10})?)?")
LengthOption = Annotated[int, typer.Option(help="Bytes of a clone; 0: all of it.", min=0, max=LARGEST["packet_length"])]


@group_app.command("list")
def list_groups(
    switch: SwitchArgument, topology: TopologyOption = None, device_id: DeviceOption = 1, as_json: JsonOption = False
) -> None:
    """The multicast groups of a switch."""
    with connect(switch, topology, device_id, read_only=True) as client:
        groups = sorted(client.each(MulticastGroup()), key=lambda group: group.number)
    if as_json:
        print_json([{"group": group.number, "replicas": _json(group.replicas)} for group in groups])
    else:
        rows = [(group.number, _text(group.replicas)) for group in groups]
        print_table(f"multicast groups of {switch}", ("group", "port:instance"), rows)


@group_app.command("create")
def create_group(
    switch: SwitchArgument, number: NumberArgument, ports: PortsArgument,
    topology: TopologyOption = None, device_id: DeviceOption = 1,
) -> None:  # fmt: skip
    """Create a group: `group create s1 7 1 2 3:5`."""
    with connect(switch, topology, device_id) as client:
        client.insert(MulticastGroup(number, _replicas(ports)))


@group_app.command("modify")
def modify_group(
    switch: SwitchArgument, number: NumberArgument, ports: PortsArgument,
    topology: TopologyOption = None, device_id: DeviceOption = 1,
) -> None:  # fmt: skip
    """Give a group other ports; its metadata stay."""
    with connect(switch, topology, device_id) as client:
        known = next(client.each(MulticastGroup(number)), MulticastGroup(number))
        client.modify(replace(known, replicas=_replicas(ports)))


@group_app.command("delete")
def delete_group(
    switch: SwitchArgument, number: NumberArgument, topology: TopologyOption = None, device_id: DeviceOption = 1
) -> None:
    """Delete a group; frames for it are dropped from then on."""
    with connect(switch, topology, device_id) as client:
        client.delete(MulticastGroup(number))


@clone_app.command("list")
def list_sessions(
    switch: SwitchArgument, topology: TopologyOption = None, device_id: DeviceOption = 1, as_json: JsonOption = False
) -> None:
    """The clone sessions of a switch."""
    with connect(switch, topology, device_id, read_only=True) as client:
        sessions = sorted(client.each(CloneSession()), key=lambda session: session.number)
    if as_json:
        print_json(
            [{"session": s.number, "replicas": _json(s.replicas), "packet_length": s.packet_length} for s in sessions]
        )
    else:
        rows = [(s.number, _text(s.replicas), s.packet_length or "all") for s in sessions]
        print_table(f"clone sessions of {switch}", ("session", "port:instance", "bytes"), rows)


@clone_app.command("create")
def create_session(
    switch: SwitchArgument, number: NumberArgument, ports: PortsArgument, *, length: LengthOption = 0,
    topology: TopologyOption = None, device_id: DeviceOption = 1,
) -> None:  # fmt: skip
    """Create a session: `clone create s1 5 3 --length 64`."""
    with connect(switch, topology, device_id) as client:
        client.insert(CloneSession(number, _replicas(ports), length))


@clone_app.command("modify")
def modify_session(
    switch: SwitchArgument, number: NumberArgument, ports: PortsArgument, *, length: LengthOption = 0,
    topology: TopologyOption = None, device_id: DeviceOption = 1,
) -> None:  # fmt: skip
    """Give a session other ports or another length."""
    with connect(switch, topology, device_id) as client:
        client.modify(CloneSession(number, _replicas(ports), length))


@clone_app.command("delete")
def delete_session(
    switch: SwitchArgument, number: NumberArgument, topology: TopologyOption = None, device_id: DeviceOption = 1
) -> None:
    """Delete a session; nothing is cloned to it from then on."""
    with connect(switch, topology, device_id) as client:
        client.delete(CloneSession(number))


def _replicas(words: Iterable[str]) -> tuple[Replica, ...]:
    result = []
    for word in words:
        found = _PORT.fullmatch(word)
        if found is None:
            raise SwitchError(f"{word!r} is not PORT or PORT:INSTANCE, as in 3 or 3:1")
        port, instance = int(found["port"]), int(found["instance"] or 0)
        if max(port, instance) > LARGEST_NUMBER:
            raise SwitchError(f"{word!r}: neither a port nor an instance is above {LARGEST_NUMBER}")
        result.append(Replica(port, instance))
    return tuple(result)


def _json(replicas: Iterable[Replica]) -> list[dict[str, Any]]:
    return [{"port": one.port, "instance": one.instance} for one in replicas]


def _text(replicas: Iterable[Replica]) -> str:
    return " ".join(f"{one.port}:{one.instance}" for one in replicas)
