"""`catchment fault`: damage on purpose, by the switch program (loss, by type) or by the embedded switch's ports."""

from __future__ import annotations

from typing import Annotated

import typer

from catchment.cli.each_switch import on_each
from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.target import Place, TopologyOption, complete_switch, find_place
from catchment.controlplane.client import SwitchError
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.networks.port_faults import OFF, SwitchPorts
from catchment.controlplane.state.faults import Direction, clear_loss, losses, set_loss
from catchment.controlplane.topology import Host
from catchment.controlplane.topology.rates import port_faults
from catchment.wire.generated.constants import PacketType

app = typer.Typer(help="Damage on purpose, to see what it does.", no_args_is_help=True)

SwitchName = Annotated[str, typer.Argument(help="Switch name.", autocompletion=complete_switch)]
_LONGEST_PORT = 10
"""Digits."""
_SIDES = {Direction.INGRESS: "in.", Direction.EGRESS: "out."}


@app.command("set")
def set_fault(
    switch: SwitchName,
    *,
    loss: Annotated[float | None, typer.Option(help="Probability, 0 to 1; 0 takes it off.", min=0.0, max=1.0)] = None,
    duplicate: Annotated[float | None, typer.Option(help="Probability of a second copy.", min=0.0, max=1.0)] = None,
    reorder: Annotated[float | None, typer.Option(help="Probability of being overtaken.", min=0.0, max=1.0)] = None,
    delay: Annotated[str | None, typer.Option(help="Of every frame: 200us, 3ms.")] = None,
    jitter: Annotated[str | None, typer.Option(help="Up to so much more delay, at random: 50us.")] = None,
    rate: Annotated[str | None, typer.Option(help="No more bits of frames per second: 100mbit.")] = None,
    queue: Annotated[str | None, typer.Option(help="Bytes that wait for the rate before frames drop: 256k.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the ports' chances: the same frames meet the same fate.")] = None,
    port: Annotated[
        list[str] | None,
        typer.Option("--port", "-p", help="Port number or what is plugged in, repeatable; every port."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--type", help="With --loss alone: PA, FA, HB, MH, PARAM, ACK, CNF, PLAIN; every type of ours."),
    ] = None,
    direction: Annotated[
        list[Direction] | None, typer.Option(help="On arrival or departure, repeatable; both, each with this loss.")
    ] = None,
    topology: TopologyOption = None,
) -> None:
    """Damage frames at random; replaces what was set for the same ports (and types).

    --loss alone is done by the switch program, on every target, and can be of some packet types only. With any other
    option the embedded switch's ports do it, below the program and to all frames; --loss then goes along.
    """
    damage = {
        "loss": loss,
        "dup": duplicate,
        "reorder": reorder,
        "delay": delay,
        "jitter": jitter,
        "rate": rate,
        "queue": queue,
    }
    place = find_place(topology)
    ports = _ports(place, switch, port)
    sides = direction or list(Direction)
    named = f"port {', '.join(map(str, ports))}" if port else "every port"
    if all(value is None for name, value in damage.items() if name != "loss") and seed is None:
        if loss is None:
            raise ControlPlaneError("say what to do: --loss, --duplicate, --reorder, --delay, --jitter or --rate")
        types = [_type(name) for name in kind] if kind else None
        with place.connect(switch) as client:
            set_loss(client, ports, loss, types=types, directions=sides)
        said = f"loses {loss:.3%} on {named}" if loss else f"loses nothing on purpose on {named}, by its program"
    else:
        if kind:
            raise ControlPlaneError("--type is for --loss alone: a port does not know packet types")
        spec = _spec(damage, sides, seed)
        if rate is None and (limited := sorted(port_faults(place.topology, switch).keys() & set(ports))):
            raise ControlPlaneError(
                f"the topology gives port {', '.join(map(str, limited))} of {switch} a rate, which this would take "
                "off; say which it is to have with --rate"
            )
        SwitchPorts().write(place.address(switch), dict.fromkeys(ports, spec))
        said = f"{named}: {spec}"
    place.keep(switch)
    typer.echo(f"{switch} {said}" if said.startswith("loses") else f"{switch}, {said}")


@app.command("clear")
def clear(
    switch: Annotated[
        str | None, typer.Argument(help="Switch name; every switch when left out.", autocompletion=complete_switch)
    ] = None,
    topology: TopologyOption = None,
) -> None:
    """Take every fault off, of the program and of the ports; rates of the topology stay.

    A switch that fails is named at the end, and keeps its faults; the others lose theirs.
    """
    place = find_place(topology)
    named = [place.topology.switch(switch).name] if switch else list(place.topology.switches)
    done = on_each(named, lambda name: _clear(place, name))
    if done.results:
        where = f" on {', '.join(done.results)}" if switch or done.failures else ""
        typer.echo(f"nothing is damaged on purpose{where}")
    done.complain()


def _clear(place: Place, switch: str) -> None:
    with place.connect(switch) as client:
        clear_loss(client)
    ports, address = SwitchPorts(), place.address(switch)
    if faulty := ports.read(address):
        ports.write(address, dict.fromkeys(faulty, OFF) | port_faults(place.topology, switch))
    place.keep(switch)


@app.command("list")
def show(topology: TopologyOption = None, as_json: JsonOption = False) -> None:
    """What is damaged on purpose, and by whom: the program, or a port."""
    place = find_place(topology)
    done = on_each(place.topology.switches, lambda name: _damage(place, name))
    found = [one for of_switch in done.results.values() for one in of_switch]
    if as_json:
        print_json(found)
    else:
        columns = ("switch", "by", "port", "direction", "type", "faults")
        print_table("damage on purpose", columns, [tuple(one[name] for name in columns) for one in found])
    done.complain()


def _damage(place: Place, switch: str) -> list[dict[str, str | int | float]]:
    with place.connect(switch, read_only=True) as client:
        found: list[dict[str, str | int | float]] = [
            {
                "switch": switch,
                "by": "program",
                "port": port,
                "direction": way,
                "type": kind,
                "faults": f"loss={loss:g}",
                "loss": loss,
            }
            for way, port, kind, loss in losses(client)
        ]
    faults = SwitchPorts().read(place.address(switch))
    return found + [
        {"switch": switch, "by": "port", "port": port, "direction": "-", "type": "any", "faults": spec}
        for port, spec in faults.items()
    ]


def _spec(damage: dict[str, float | str | None], sides: list[Direction], seed: int | None) -> str:
    """The text that the switch's option `--fault` takes."""
    prefixes = [""] if set(sides) == set(Direction) else [_SIDES[side] for side in sides]
    words = [f"{prefix}{name}={value}" for prefix in prefixes for name, value in damage.items() if value is not None]
    return ",".join([*words, *([f"seed={seed}"] if seed is not None else [])])


def _ports(place: Place, switch: str, wanted: list[str] | None) -> list[int]:
    place.topology.switch(switch)
    plugged = place.topology.ports(switch)
    if not wanted:
        return list(plugged)
    names = {(peer.name if isinstance(peer, Host) else peer.switch): number for number, peer in plugged.items()}
    found = []
    for text in wanted:
        number = int(text) if text.isdecimal() and len(text) <= _LONGEST_PORT else names.get(text)
        if number is None or number not in plugged:
            have = ", ".join(f"{number} ({name})" for name, number in names.items())
            raise SwitchError(f"switch {switch} has no port {text!r}; it has: {have}")
        found.append(number)
    return found


def _type(name: str) -> int:
    if name.upper() == "PLAIN":
        return 0
    try:
        return int(PacketType[name.upper()])
    except KeyError:
        have = ", ".join(kind.name for kind in PacketType)
        raise SwitchError(f"no packet type {name!r}; there are: {have}, PLAIN") from None
