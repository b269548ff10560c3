"""Connections to those switches that a verb needs which is about jobs, where no controller changes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from catchment.cli.target import Place
from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.client.aside import at_once
from catchment.controlplane.deployment.lifecycle import generations_run_out, keep_generations_clean
from catchment.controlplane.deployment.ownership import Ownership
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import JobError
from catchment.controlplane.jobs.forgotten import take_off_forgotten

MOST_AT_ONCE = 64
"""Switches that are asked at the same time: each that is dead is waited for in full."""


@contextmanager
def looked_at(place: Place, switches: Collection[str]) -> Iterator[dict[str, SwitchClient]]:
    """Connections to read from those switches that answer."""
    with ExitStack() as exits:
        clients, failures = connect_each(place, switches, exits, read_only=True)
        for error in failures.values():
            if not isinstance(error, SwitchError):
                raise error
        yield clients


def connect_each(
    place: Place, switches: Collection[str], exits: ExitStack, *, read_only: bool = False
) -> tuple[dict[str, SwitchClient], dict[str, ControlPlaneError]]:
    """Connections to switches, which a stack closes, and what went wrong with the others; all at the same time."""
    clients: dict[str, SwitchClient] = {}
    failures: dict[str, ControlPlaneError] = {}

    def connect(switch: str) -> None:
        try:
            clients[switch] = exits.enter_context(place.connect(switch, read_only=read_only))
        except ControlPlaneError as error:
            failures[switch] = error

    at_once(connect, switches, most=MOST_AT_ONCE)
    return ({one: clients[one] for one in switches if one in clients},
            {one: failures[one] for one in switches if one in failures})  # fmt: skip


@contextmanager
def connected(place: Place, name: str, switches: Iterable[str], way_out: str = "") -> Iterator[dict[str, SwitchClient]]:
    """Connections to the switches of a job, once what commands left there that were cut short is taken off.

    Others may be dead: what such commands left on them is in nobody's way until a job comes there. A switch that the
    topology does not have is left out.

    Args:
        place: where the switches are.
        name: of the job.
        switches: what is needed for it.
        way_out: what else to do about a switch that does not answer.

    Raises:
        SwitchError: a switch does not answer; names it and any others, and what to do.
    """
    here = [switch for switch in switches if switch in place.topology.switches]
    with ExitStack() as exits:
        clients, failures = connect_each(place, here, exits)
        for switch, error in failures.items():
            if not isinstance(error, SwitchError) or not error.is_silence:
                raise error
            others = [f"switch {other}" for other in failures if other != switch]
            also = f"; nor does {', '.join(others)}" if others else ""
            what = f"job {name} needs switch {switch}, which does not answer"
            raise SwitchError(f"{what}: {_bring_back(place, switch, error)}{also}{way_out}", code=error.code)
        take_off(place, clients)
        yield clients


def take_off(place: Place, clients: Mapping[str, SwitchClient]) -> None:
    """Delete what commands left that were cut short, on switches that let it be done."""
    jobs = place.jobs()
    for name, client in clients.items():
        with suppress(SwitchError):  # of a switch that the command needs that is said when it is written to
            take_off_forgotten(client, lambda: place.jobs().generations, Ownership(jobs, name).is_foreign)


def provide_generations(place: Place, name: str) -> None:
    """Scrub the switches when the generations run out: all of them, as any may hold an old one.

    Raises:
        SwitchError: a switch does not answer; names it, and what to do.
        JobError: a switch gives no access to its registers.
    """
    if not generations_run_out(place.store):
        return
    why = "; the generations have run out, and every switch must forget the old ones"
    with connected(place, name, place.topology.switches, why) as clients:
        keep_generations_clean(place.store, place.topology, clients, _reload)


def _bring_back(place: Place, switch: str, error: ControlPlaneError) -> str:
    return f"`catchment net restart {switch}` brings it back" if place.network else str(error)


def _reload(switch: str, _: object) -> None:
    raise JobError(
        f"the generations have run out and switch {switch} gives no access to its registers: start it afresh, "
        "or run a controller, which reloads its program"
    )
