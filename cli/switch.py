"""`catchment switch`: a switch on interfaces of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from catchment.cli.target import MAX_DEVICE_ID, patience
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.networks.state import NetworkError, switch_socket
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.topology import Target
from catchment.wire.run_folder import run_folder

app = typer.Typer(help="Switches outside an emulated network.", no_args_is_help=True)

_LONGEST_PORT = 10
"""Digits."""


@app.command("run")
def run(
    port: Annotated[list[str], typer.Option("--port", "-p", help="NUMBER:INTERFACE, once per port.")],
    grpc: Annotated[
        str | None,
        typer.Option(
            help="Address of its P4Runtime server: unix:PATH (when left out: switch-run-NAME.sock in the run folder, "
            "for you alone), HOST:PORT, or tls:FOLDER@HOST:PORT with certificates of `controller certificates`."
        ),
    ] = None,
    device_id: Annotated[int, typer.Option(help="P4Runtime device id.", min=0, max=MAX_DEVICE_ID)] = 1,
    name: Annotated[str, typer.Option(help="Its name in the topology.")] = "s1",
    target: Annotated[Target, typer.Option(help="The embedded switch, or BMv2.")] = Target.EMBEDDED,
) -> None:
    """Run a switch in the foreground; it starts without a program (see `switch load`)."""
    from catchment.sim.lab.switch_process import COMMANDS  # noqa: PLC0415  only this verb needs it

    _check_name(name)
    if grpc is None:
        grpc = _own_socket(name) if target is Target.EMBEDDED else "127.0.0.1:9559"
    command = COMMANDS[target](grpc, device_id, _ports(port), name)
    os.execv(command[0], command)


@app.command("load")
def load(
    address: Annotated[str, typer.Argument(help="Its address, as of `switch run`.")],
    p4info: Annotated[Path, typer.Argument(help="P4Info text, from `p4 compile`.")],
    config: Annotated[Path, typer.Argument(help="Device configuration, from `p4 compile`.")],
    device_id: Annotated[int, typer.Option(help="P4Runtime device id.", min=0, max=MAX_DEVICE_ID)] = 1,
) -> None:
    """Put a compiled program on a running switch; its tables start empty."""
    for what, path in (("P4Info", p4info), ("device configuration", config)):
        if not path.exists() or path.is_dir():
            raise ControlPlaneError(f"no {what} at {path}: give what `catchment p4 compile PROGRAM -o DIR` has written")
    with SwitchClient.connect(address, device_id, timeout=patience()) as client:
        client.push_pipeline(PipelineConfig(p4info, config))
    typer.echo(f"{address} runs {config.name}")


def _check_name(name: str) -> None:
    """Refuse what cannot be part of the names of files: of a socket, or of a certificate."""
    if not name[:1].isalnum() or "/" in name or not name.isprintable():
        raise typer.BadParameter(
            f"{name!r} is no name of a switch: it begins with a letter or a digit and has no slash, as in s1",
            param_hint="--name",
        )


def _own_socket(name: str) -> str:
    path = switch_socket("run", name)
    if path is None:
        raise NetworkError(
            f"no socket may have so long a path as that of {name!r} in {run_folder()}: choose a shorter --name, or "
            "give --grpc unix:PATH"
        )
    return f"unix:{path}"


def _ports(texts: Sequence[str]) -> dict[int, str]:
    ports: dict[int, str] = {}
    for text in texts:
        number, _, interface = text.partition(":")
        if not number.isdecimal() or len(number) > _LONGEST_PORT or not interface:
            raise typer.BadParameter(f"{text!r} is not NUMBER:INTERFACE, as in 1:eth0")
        if int(number) in ports:
            raise typer.BadParameter(f"port {int(number)} is {ports[int(number)]} already")
        ports[int(number)] = interface
    return ports
