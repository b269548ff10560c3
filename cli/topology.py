"""`catchment topology`: is the file right, and what does it look like?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catchment.cli.output import JsonOption, print_json, print_table
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.output_path import check_apart
from catchment.controlplane.topology import PortRef, Topology
from catchment.controlplane.topology.draw import draw
from catchment.controlplane.topology.layout import islands, levels

app = typer.Typer(help="Topology files.", no_args_is_help=True)

FileArgument = Annotated[Path, typer.Argument(help="Topology file.")]


@app.command("check")
def check(file: FileArgument, as_json: JsonOption = False) -> None:
    """Read a file; mistakes are named with their line. Prints what is on which switch, in which rack and rail."""
    topology = Topology.load(file)
    depth = levels(topology)
    rows = []
    for name, switch in topology.switches.items():
        if not switch.program.is_file():
            raise ControlPlaneError(f"{file}: switch {name}: no P4 program at {switch.program}")
        hosts = [nic.name for nic in topology.nics() if nic.link.switch == name]
        peers = sorted({b.switch for a, b in _ends(topology) if a.switch == name})
        place = (topology.rack_of(name) or "-", topology.rail_of(name) or "-")
        rows.append(
            (name, depth[name], *place, ", ".join(peers) or "-", ", ".join(hosts) or "-", switch.lanes, switch.slots)
        )
    groups = islands(topology)
    columns = ("switch", "level", "rack", "rail", "switches", "hosts", "lanes", "slots")
    if as_json:
        print_json({"name": topology.name, "islands": groups, "racks": topology.racks, "rails": topology.rails,
                    "rings": {name: {"over": ring.over, "transport": ring.transport}
                              for name, ring in topology.rings.items()},
                    "switches": [dict(zip(columns, row, strict=True)) for row in rows]})  # fmt: skip
        return
    sizes = {"switches": topology.switches, "hosts": topology.hosts, "racks": topology.racks, "rails": topology.rails,
             "rings": topology.rings}  # fmt: skip
    title = ", ".join(f"{len(things)} {what}" for what, things in sizes.items() if things)
    print_table(f"{topology.name}: {title}", columns, rows)
    if groups > max(1, len(topology.rails)):
        typer.echo(f"{groups} groups of switches have no link between them: no job can span two of them")


@app.command("draw")
def picture(
    file: FileArgument,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="SVG file; else the output.")] = None,
) -> None:
    """Draw it as SVG: switches by level, their addresses, ports and hosts."""
    check_apart(("FILE", file), ("--output", output))
    text = draw(Topology.load(file))
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ControlPlaneError(f"cannot write {output}: {error.strerror}") from None
    typer.echo(f"{output}")


def _ends(topology: Topology) -> list[tuple[PortRef, PortRef]]:
    return [pair for link in topology.links for pair in ((link.a, link.b), (link.b, link.a))]
