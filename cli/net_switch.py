"""`catchment net kill` and `net restart`: a switch of the emulated network dies and comes back, on purpose."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from catchment.cli.target import Place, TopologyOption, complete_switch, find_place, patience
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.operator import OperatorClient
from catchment.controlplane.controller.presence import Presence
from catchment.controlplane.deployment.fabric import restore
from catchment.controlplane.jobs import JobError
from catchment.controlplane.networks.requests import ask
from catchment.controlplane.networks.state import NetworkError
from catchment.controlplane.programs.cache import program_for

_UP_SECONDS = 120.0
_POLL_SECONDS = 0.05

SwitchArgument = Annotated[str, typer.Argument(help="Switch name.", autocompletion=complete_switch)]


def kill(switch: SwitchArgument, topology: TopologyOption = None) -> None:
    """End a switch at once, as a crash would; the network stays, and `net restart` brings the switch back."""
    _place, network = _find(switch, topology)
    ask(network, "kill", switch)
    typer.echo(f"switch {switch} is dead; `catchment net restart {switch}` brings it back")


def restart(switch: SwitchArgument, topology: TopologyOption = None) -> None:
    """End a switch (unless it is dead) and start it again, empty; the controller restores it.

    Where no controller runs this verb does: program, forwarding and jobs. What people put there is then gone. A job
    that the topology file has no place for any more is left out, and named.
    """
    place, network = _find(switch, topology)
    presence = place.controller()
    before = 0 if presence is None else _restores(presence, switch)
    if presence is None:
        place.jobs()  # what cannot be read is said while the switch still runs
    ask(network, "restart", switch)
    if presence is not None:
        seconds = _wait_for_controller(presence, switch, before)
        typer.echo(f"switch {switch} is up again, restored by the controller in {seconds:.3f} s")
        return
    started = time.monotonic()
    jobs = place.jobs()
    with place.connect(switch) as client:
        restore(place.topology, switch, client, program_for(place.topology.switch(switch)), jobs.deployed)
    took = time.monotonic() - started
    typer.echo(f"switch {switch} is up again with its program, forwarding and jobs ({took:.3f} s; no controller runs)")
    if misfits := [why for name, why in jobs.misfits.items() if switch in jobs.get(name).switches]:
        raise JobError("\n- ".join([f"left out of what is on {switch} again:", *misfits]))


def _find(switch: str, topology: TopologyOption) -> tuple[Place, str]:
    place = find_place(topology)
    place.topology.switch(switch)
    if place.network is None:
        raise NetworkError(f"network {place.topology.name} is not up; start it with `catchment net up`")
    return place, place.network.name


def _restores(presence: Presence, switch: str) -> int:
    with OperatorClient.to(presence, timeout=2 * patience()) as controller:
        return next(int(each.restores) for each in controller.switches() if each.name == switch)


def _wait_for_controller(presence: Presence, switch: str, before: int) -> float:
    """Wait until the controller has restored the switch once more; returns how many seconds that took."""
    deadline = time.monotonic() + _UP_SECONDS
    with OperatorClient.to(presence, timeout=2 * patience()) as controller:
        while True:
            (seen,) = [each for each in controller.switches() if each.name == switch]
            if seen.state == "up" and seen.restores > before:
                return float(seen.restore_seconds)
            if time.monotonic() > deadline:
                raise ControllerError(
                    f"switch {switch} runs, but is not restored after {_UP_SECONDS:g} s: {seen.detail}"
                )
            time.sleep(_POLL_SECONDS)
