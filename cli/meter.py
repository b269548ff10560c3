"""`catchment meter`: rates and bursts of the meters of any program."""

from __future__ import annotations

from typing import Annotated

import typer

from catchment.cli import complete
from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.ranges import cells
from catchment.cli.target import DeviceOption, SwitchArgument, TopologyOption, connect
from catchment.controlplane.client import MeterCell
from catchment.controlplane.dump.checks import LARGEST

app = typer.Typer(help="Meters of any program.", no_args_is_help=True)

NameArgument = Annotated[
    str, typer.Argument(help="Meter, by any unambiguous end of its name.", autocompletion=complete.meters)
]


@app.command("list")
def show(
    switch: SwitchArgument, topology: TopologyOption = None, device_id: DeviceOption = 1, as_json: JsonOption = False
) -> None:
    """The meters of a switch, and the cells that are configured; all others mark everything green."""
    with connect(switch, topology, device_id, read_only=True) as client:
        found = {
            client.p4info.short_name("meter", name): {
                cell.index: cell.config for cell in client.each(MeterCell(name)) if cell.config
            }
            for name in client.p4info.names("meter")
        }
    if as_json:
        print_json(found)
        return
    rows = [(name, index, *config.values()) for name, configs in found.items() for index, config in configs.items()]
    print_table(f"meters of {switch}", ("meter", "cell", "cir", "cburst", "pir", "pburst"), rows)


@app.command("set")
def configure(
    switch: SwitchArgument,
    name: NameArgument,
    which: Annotated[str, typer.Argument(metavar="INDEX|LOW..HIGH")],
    *,
    cir: Annotated[int, typer.Option(help="Committed rate, packets or bytes a second.", min=0, max=LARGEST["cir"])],
    cburst: Annotated[int, typer.Option(help="Committed burst, packets or bytes.", min=0, max=LARGEST["cburst"])],
    pir: Annotated[
        int | None, typer.Option(help="Peak rate; the committed one when left out.", min=0, max=LARGEST["pir"])
    ] = None,
    pburst: Annotated[
        int | None, typer.Option(help="Peak burst; the committed one when left out.", min=0, max=LARGEST["pburst"])
    ] = None,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """Configure cells: `meter set s1 flows 0..3 --cir 1000 --cburst 10`."""
    config = {"cir": cir, "cburst": cburst, "pir": cir if pir is None else pir,
              "pburst": cburst if pburst is None else pburst}  # fmt: skip
    with connect(switch, topology, device_id) as client:
        wanted = cells(which, client.p4info.find("meter", name).size, f"meter {name}")
        client.modify(*(MeterCell(name, index, config) for index in wanted))


@app.command("clear")
def clear(
    switch: SwitchArgument,
    name: NameArgument,
    which: Annotated[str | None, typer.Argument(metavar="[INDEX|LOW..HIGH]", help="All when left out.")] = None,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """Take the configuration off cells: they mark everything green."""
    with connect(switch, topology, device_id) as client:
        wanted = cells(which, client.p4info.find("meter", name).size, f"meter {name}")
        client.modify(*(MeterCell(name, index) for index in wanted))
