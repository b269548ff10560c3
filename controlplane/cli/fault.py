"""`catchment fault`: loss on purpose, in the switch program."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli.output import JsonOption, print_json, print_table
from controlplane.cli.target import Place, TopologyOption, find_place
from controlplane.client import SwitchError
from controlplane.faults import Direction, clear_loss, losses, set_loss
from controlplane.topology import Host
from wire.generated.constants import PacketType

app = typer.Typer(help="Loss on purpose, to see what it does.", no_args_is_help=True)

SwitchName = Annotated[str, typer.Argument(help="Switch name.")]


@app.command("set")
def set_fault(
    switch: SwitchName,
    loss: Annotated[float, typer.Option(help="Probability, 0 to 1; 0 takes it off.", min=0.0, max=1.0)],
    *,
    port: Annotated[
        list[str] | None,
        typer.Option("--port", "-p", help="Port number or what is plugged in, repeatable; every port."),
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", help="PA, FA, HB, MH, PARAM, ACK, CNF, PLAIN; every type of ours.")
    ] = None,
    direction: Annotated[
        list[Direction] | None, typer.Option(help="On arrival or departure, repeatable; both, each with this loss.")
    ] = None,
    topology: TopologyOption = None,
) -> None:
    """Lose frames at random; replaces what was set for the same ports and types."""
    place = find_place(topology)
    ports = _ports(place, switch, port)
    types = [_type(name) for name in kind] if kind else None
    with place.connect(switch) as client:
        set_loss(client, ports, loss, types=types, directions=direction or tuple(Direction))
    typer.echo(f"{switch} loses {loss:.3%} on port {', '.join(map(str, ports))}" if loss else f"{switch}: loss is off")


@app.command("clear")
def clear(
    switch: Annotated[str | None, typer.Argument(help="Switch name; every switch when left out.")] = None,
    topology: TopologyOption = None,
) -> None:
    """Take every loss off."""
    place = find_place(topology)
    for name in [place.topology.switch(switch).name] if switch else place.topology.switches:
        with place.connect(name) as client:
            clear_loss(client)
    typer.echo("no frames are lost on purpose" + (f" on {switch}" if switch else ""))


@app.command("list")
def show(topology: TopologyOption = None, as_json: JsonOption = False) -> None:
    """What is lost on purpose, and how much has been."""
    place = find_place(topology)
    rows = []
    for name in place.topology.switches:
        with place.connect(name, read_only=True) as client:
            rows += [(name, *loss) for loss in losses(client)]
    columns = ("switch", "direction", "port", "type", "loss")
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table("loss on purpose", columns, rows)


def _ports(place: Place, switch: str, wanted: list[str] | None) -> list[int]:
    place.topology.switch(switch)
    plugged = place.topology.ports(switch)
    if not wanted:
        return list(plugged)
    names = {(peer.name if isinstance(peer, Host) else peer.switch): number for number, peer in plugged.items()}
    found = []
    for text in wanted:
        number = int(text) if text.isdecimal() else names.get(text)
        if number not in plugged:
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
