"""`catchment register`: cells of the registers of any program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from catchment.cli import complete
from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.ranges import cells
from catchment.cli.target import DeviceOption, SwitchArgument, TopologyOption, connect
from catchment.controlplane.client import SwitchError
from catchment.controlplane.client.p4info import P4Info

app = typer.Typer(help="Registers of any program.", no_args_is_help=True)

NameArgument = Annotated[
    str, typer.Argument(help="Register, by any unambiguous end of its name.", autocompletion=complete.registers)
]


@app.command("list")
def show(
    switch: SwitchArgument, topology: TopologyOption = None, device_id: DeviceOption = 1, as_json: JsonOption = False
) -> None:
    """The registers of the program that runs on a switch."""
    with connect(switch, topology, device_id, read_only=True) as client:
        info = client.p4info
        found = [
            {"register": info.short_name("register", one.preamble.name), "cells": one.size,
             "bits": _bits(info, one.type_spec)}
            for one in info.message.registers
        ]  # fmt: skip
    if as_json:
        print_json(found)
    else:
        rows = [tuple(one.values()) for one in found]
        print_table(f"registers of {switch}", ("register", "cells", "bits"), rows)


@app.command("read")
def read(
    switch: SwitchArgument,
    name: NameArgument,
    which: Annotated[str | None, typer.Argument(metavar="[INDEX|LOW..HIGH]", help="All when left out.")] = None,
    *,
    nonzero: Annotated[bool, typer.Option("--nonzero", help="Leave out cells that are zero.")] = False,
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
    as_json: JsonOption = False,
) -> None:
    """The cells of a register: `register read s1 tag 0..7`."""
    with connect(switch, topology, device_id, read_only=True) as client, _explained():
        wanted = cells(which, client.p4info.find("register", name).size, f"register {name}")
        found = client.register(name, wanted[0]) if len(wanted) == 1 else client.register(name)
    shown = {index: value for index, value in sorted(found.items()) if index in wanted and (value or not nonzero)}
    if as_json:
        print_json(shown)
    else:
        rows = [(index, value, f"{value:#x}") for index, value in shown.items()]
        print_table(f"{name} of {switch}", ("cell", "value", "hexadecimal"), rows)


@app.command("write")
def write(
    switch: SwitchArgument,
    name: NameArgument,
    words: Annotated[list[str], typer.Argument(metavar="INDEX=VALUE|LOW..HIGH=VALUE...")],
    topology: TopologyOption = None,
    device_id: DeviceOption = 1,
) -> None:
    """Set cells of a register: `register write s1 tag 3=7 8..15=0`."""
    with connect(switch, topology, device_id) as client, _explained():
        size = client.p4info.find("register", name).size
        values: dict[int, int] = {}
        for word in words:
            place, found, text = word.partition("=")
            try:
                value = int(text, 0)
            except ValueError:
                found = ""
            if not found:
                raise SwitchError(f"{word!r} is not INDEX=VALUE or LOW..HIGH=VALUE, as in 3=0x10 or 0..7=0")
            values |= dict.fromkeys(cells(place, size, f"register {name}"), value)
        client.write_registers(name, values)


def _bits(info: P4Info, spec: Any) -> int | None:
    """The width of a register's cells; None of types that have none in P4Info."""
    plain = info.plain_type(spec)
    if plain.HasField("bool"):
        return 1
    if plain.HasField("serializable_enum"):
        return int(info.message.type_info.serializable_enums[plain.serializable_enum.name].underlying_type.bitwidth)
    return plain.bitstring.bit.bitwidth or plain.bitstring.int.bitwidth or None


@contextmanager
def _explained() -> Iterator[None]:
    """Says of a target without registers what it is."""
    try:
        yield
    except SwitchError as error:
        refused = {error.code, *(failure.code for failure in error.failures)}
        if "UNIMPLEMENTED" not in refused:
            raise
        raise SwitchError(
            "this target does not give access to registers over P4Runtime (BMv2 does not): use the embedded target, or "
            "BMv2's simple_switch_CLI, `register_read NAME INDEX`",
            code="UNIMPLEMENTED",
        ) from None
