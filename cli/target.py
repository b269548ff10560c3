"""Which network, which switch: the options that most verbs share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from catchment.cli.seconds import MAX_SECONDS
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.controller.presence import Presence, read
from catchment.controlplane.deployment.fabric import address_of
from catchment.controlplane.deployment.store import JobStore, open_store, read_store, store_folder
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs.kind import all_kinds
from catchment.controlplane.networks.state import NetworkState, is_held, jobs_folder, networks_up, read_state
from catchment.controlplane.topology import Host, Topology
from catchment.wire.host_port import host_and_port

TopologyOption = Annotated[
    Path | None,
    typer.Option(
        "--topology", "-t", envvar="CATCHMENT_TOPOLOGY", help="Topology file; the network that is up when left out."
    ),
]


def _names(ctx: typer.Context, incomplete: str, names: Callable[[Place], Iterable[str]]) -> list[str]:
    """What the shell offers: nothing where no network can be found."""
    try:
        return [name for name in names(find_place(ctx.params.get("topology"))) if name.startswith(incomplete)]
    except ControlPlaneError:
        return []


def complete_switch(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the switches of the topology, for the shell."""
    return _names(ctx, incomplete, lambda place: place.topology.switches)


def complete_host(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the hosts of the topology, for the shell."""
    return _names(ctx, incomplete, lambda place: place.topology.hosts)


def complete_job(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the jobs of the topology, for the shell."""

    def jobs(place: Place) -> list[str]:
        return list(place.jobs().records)

    return _names(ctx, incomplete, jobs)


def complete_kind(incomplete: str) -> list[str]:
    """Names of the kinds of job, for the shell."""
    return [kind.name for kind in all_kinds() if kind.name.startswith(incomplete)]


def complete_network(incomplete: str) -> list[str]:
    """Names of the networks that are up, for the shell."""
    try:
        return [state.name for state in networks_up() if state.name.startswith(incomplete)]
    except ControlPlaneError:
        return []


SwitchArgument = Annotated[
    str,
    typer.Argument(
        help="Switch name, or HOST:PORT, unix:PATH or tls:FOLDER@HOST:PORT of any P4Runtime server.",
        autocompletion=complete_switch,
    ),
]
MAX_DEVICE_ID = (1 << 64) - 1
DeviceOption = Annotated[
    int, typer.Option("--device-id", help="P4Runtime device id, with an address.", min=0, max=MAX_DEVICE_ID)
]


def patience() -> float:
    """Seconds to wait for a switch: CATCHMENT_TIMEOUT, or 5.

    Raises:
        ControlPlaneError: it is not a positive number, or more than gRPC counts to.
    """
    text = os.environ.get("CATCHMENT_TIMEOUT", "5")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_SECONDS:
        raise ControlPlaneError(
            f"CATCHMENT_TIMEOUT is {text!r}; give a positive number of seconds, {MAX_SECONDS} at the most"
        )
    return seconds


@dataclass(frozen=True, slots=True)
class Place:
    """A topology and where its switches listen.

    Attributes:
        topology: the network.
        addresses: switch name -> gRPC address, of those that the file leaves open.
        network: the emulated network that is up, or None.
    """

    topology: Topology
    addresses: dict[str, str]
    network: NetworkState | None

    def store(self) -> AbstractContextManager[JobStore]:
        """A transaction on the jobs: of an emulated network they go with it, those of other switches are the user's."""
        return open_store(self.topology, self.folder())

    def jobs(self) -> JobStore:
        """The jobs, to look at."""
        return read_store(self.topology, self.folder())

    def folder(self) -> Path:
        """The file that jobs are noted in."""
        return jobs_folder(self.network.name) if self.network else store_folder()

    def controller(self) -> Presence | None:
        """The controller that runs for this topology, if one does."""
        return read(self.folder(), self.topology.name)

    def address(self, switch: str) -> str:
        """gRPC address of a switch.

        Raises:
            ControlPlaneError: it is `auto` and the network is not up.
        """
        return address_of(self.topology, switch, self.addresses)

    def keep(self, switch: str) -> None:
        """Tell the controller, if one runs, that people have changed something on a switch.

        Raises:
            ControllerError: it could not note that; what was written is on the switch.
        """
        if (presence := self.controller()) is None:
            return
        try:
            with OperatorClient.to(presence, timeout=2 * patience()) as controller:
                controller.keep(switch)
        except ControllerError as error:
            raise ControllerError(f"it is on {switch}, but would not survive its restart: {error}") from None

    def connect(self, switch: str, *, read_only: bool = False, timeout: float | None = None) -> SwitchClient:
        """A connection to one switch; `timeout` in seconds, `patience()` when left out."""
        device = self.topology.switch(switch).device_id
        seconds = patience() if timeout is None else timeout
        return SwitchClient.connect(self.address(switch), device, name=switch, timeout=seconds, read_only=read_only)


def find_place(topology: Path | None) -> Place:
    """The network that a verb is about: the given file's, or the only one that is up.

    Raises:
        ControlPlaneError: none is up, or several are.
    """
    if topology is not None:
        loaded = Topology.load(topology)
        state = read_state(loaded.name) if is_held(loaded.name) else None
        return Place(loaded, dict(state.addresses) if state else {}, state)
    up = [state for state in networks_up() if state.topology]
    if not up:
        raise ControlPlaneError("no network is up; start one with `catchment net up TOPOLOGY`, or give --topology FILE")
    if len(up) > 1:
        raise several_networks(up)
    return Place(Topology.load(up[0].topology), dict(up[0].addresses), up[0])


def several_networks(up: Iterable[NetworkState]) -> ControlPlaneError:
    """What a verb says that may be about each of these networks."""
    names = ", ".join(f"{state.name} ({state.topology or 'made by a program'})" for state in up)
    return ControlPlaneError(f"several networks are up: {names}; say which with --topology FILE")


def listening_address(told: str) -> tuple[str, int]:
    """The address and port to answer Prometheus at, out of `[HOST:]PORT`.

    Raises:
        ControlPlaneError: it is something else.
    """
    found = host_and_port(told)
    if found is None:
        raise ControlPlaneError(f"--prometheus {told}: give PORT or HOST:PORT, as in 9464 or 0.0.0.0:9464")
    host, port = found
    return host or "127.0.0.1", port


def interface_of(place: Place, nic: Host) -> str:
    """What a host of an emulated network calls one of its NICs."""
    from catchment.sim.lab.mininet.naming import host_interface  # noqa: PLC0415  only here is Mininet needed

    links = [each.link for each in place.topology.host(nic.name).nics]
    return host_interface(links.index(nic.link))


@contextmanager
def connect(
    switch: str, topology: Path | None, device_id: int, *, read_only: bool = False, timeout: float | None = None
) -> Iterator[SwitchClient]:
    """A connection to a switch by name or by address, for the length of a block.

    `timeout` is in seconds, `patience()` when left out. What the block wrote is told to the controller that runs, if
    one does: it restores it when the switch restarts.
    """
    if ":" in switch:
        seconds = patience() if timeout is None else timeout
        with SwitchClient.connect(switch, device_id, timeout=seconds, read_only=read_only) as client:
            yield client
        return
    place = find_place(topology)
    with place.connect(switch, read_only=read_only, timeout=timeout) as client:
        yield client
    if not read_only:
        place.keep(switch)
