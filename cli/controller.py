"""`catchment controller`: the process that keeps switches and jobs as they should be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from catchment.cli.output import JsonOption, print_json, print_table
from catchment.cli.seconds import seconds_option
from catchment.cli.target import TopologyOption, complete_switch, find_place, listening_address
from catchment.controlplane.controller import certificates as authority
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.controller.settings import Settings, Timing
from catchment.controlplane.networks.address import SwitchAddress
from catchment.controlplane.networks.life import NetworkLife
from catchment.controlplane.networks.port_faults import SwitchPorts
from catchment.controlplane.topology import Topology
from catchment.wire.service import CONTROLLER_NAME, OPERATOR_NAME, host_name

app = typer.Typer(help="The controller of a topology: restores switches, keeps jobs and members.", no_args_is_help=True)


@app.command("run")
def run(
    topology: Annotated[
        Path | None,
        typer.Argument(envvar="CATCHMENT_TOPOLOGY", help="Topology file; else the network that is up."),
    ] = None,
    *,
    listen: Annotated[
        list[str] | None,
        typer.Option(help="HOST:PORT or unix:PATH, repeatable; a socket beside the jobs and a loopback port."),
    ] = None,
    certificates: Annotated[
        Path | None, typer.Option(help="Folder of `controller certificates`; made beside the jobs when left out.")
    ] = None,
    prometheus: Annotated[
        str | None, typer.Option(metavar="[HOST:]PORT", help="Answer Prometheus there; HOST is 127.0.0.1.")
    ] = None,
    silence: Annotated[
        float, seconds_option(help="Seconds without a heartbeat until a member is lost.", least=0.6)
    ] = 1.5,
) -> None:
    """Run a controller in the foreground; Ctrl-C ends it and leaves switches and jobs as they are.

    That of an emulated network ends with the network.
    """
    from catchment.controlplane.controller.run import run as run_controller  # noqa: PLC0415  needs a moment to import

    place = find_place(topology)
    network = None if place.network is None else NetworkLife(place.network)
    folder = place.folder()
    if certificates is None:
        certificates = folder / "certificates"
        authority.make(certificates, place.topology.hosts)
    # Several topologies share the folder where their jobs are noted, unless they are emulated networks.
    own = folder / ("controller.sock" if network else f"{place.topology.name}.controller.sock")
    settings = Settings(
        topology=place.topology,
        addresses={name: place.address(name) for name in place.topology.switches},
        folder=folder,
        certificates=certificates,
        listen=tuple(listen or (f"unix:{own}", "127.0.0.1:0")),
        timing=replace(Timing(), silence=silence),
        ports=SwitchPorts(),
        prometheus=None if prometheus is None else listening_address(prometheus),
        network=network,
    )

    def started(addresses: list[str]) -> None:
        typer.echo(f"controller of {place.topology.name} at {', '.join(addresses)}; certificates in {certificates}")

    run_controller(settings, started)


@app.command("certificates")
def make_certificates(
    folder: Annotated[Path, typer.Argument(help="Takes the files; what is there is kept.")],
    topology: TopologyOption = None,
    address: Annotated[
        list[str] | None, typer.Option(help="Further names and addresses of the controller, repeatable.")
    ] = None,
    renew: Annotated[
        list[str] | None, typer.Option(help="Replace this one's: controller, operator or a host; repeatable.")
    ] = None,
    revoke: Annotated[bool, typer.Option(help="With --renew: the old one counts no more.")] = False,
) -> None:
    """Make an authority, and certificates for the controller, an operator, each host and switch of a topology.

    `--renew` replaces one: a controller that runs shows its new one at once, and takes the old ones of others until
    `--revoke` says otherwise. For development and labs: each host gets its own host-NAME.crt, host-NAME.key and ca.crt,
    each switch that the topology gives a tls: address switch-NAME.crt, .key and ca.crt, and nobody ca.key.
    """
    if revoke and not renew:
        raise ControllerError(
            "--revoke is of a certificate that --renew NAME replaces: say which, as --renew w0 --revoke"
        )
    if renew:
        for name in renew:
            typer.echo(authority.renew(folder, _in_certificate(name), address or (), revoke=revoke))
        return
    loaded = Topology.load(topology) if topology is not None else find_place(None).topology
    for name in authority.make(folder, loaded.hosts, address or (), _served_over_tls(loaded)):
        typer.echo(name)


def _in_certificate(name: str) -> str:
    return name if name in {CONTROLLER_NAME, OPERATOR_NAME} else host_name(name)


@app.command("show")
def show(topology: TopologyOption = None, as_json: JsonOption = False) -> None:
    """The switches as the controller sees them."""
    place = find_place(topology)
    presence = place.controller()
    if presence is None:
        raise ControllerError(f"no controller of {place.topology.name} runs; start one with `catchment controller run`")
    with OperatorClient.to(presence) as client:
        rows = [
            (s.name, s.state, s.address, s.restores, round(s.restore_seconds, 3), s.repairs, s.detail or s.remark)
            for s in client.switches()
        ]
    columns = ("switch", "state", "address", "restores", "restore_seconds", "repairs", "detail")
    if as_json:
        print_json({"owner": presence.owner, "addresses": presence.addresses, "certificates": presence.certificates,
                    "switches": [dict(zip(columns, row, strict=True)) for row in rows]})  # fmt: skip
    else:
        print_table(f"controller of {place.topology.name} (process {presence.owner})", columns, rows)


@app.command("keep")
def keep(
    switch: Annotated[str, typer.Argument(help="Switch name.", autocompletion=complete_switch)],
    topology: TopologyOption = None,
) -> None:
    """Note what is on a switch beside the controller's own, to restore it after a restart.

    `table`, `group`, `clone`, `meter` and `fault` do so by themselves: this is for what other P4Runtime clients wrote.
    """
    place = find_place(topology)
    if place.controller() is None:
        raise ControllerError(
            f"no controller of {place.topology.name} runs here; start one: `catchment controller run`"
        )
    place.keep(place.topology.switch(switch).name)
    typer.echo(f"what is on {switch} now is kept")


def _served_over_tls(topology: Topology) -> dict[str, list[str]]:
    """Switch -> the host of its address."""
    parts = {name: SwitchAddress.parse(switch.grpc) for name, switch in topology.switches.items()}
    return {
        name: [address.target.rpartition(":")[0].strip("[]")]
        for name, address in parts.items()
        if address is not None and address.certificates is not None
    }
