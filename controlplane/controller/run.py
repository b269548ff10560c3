"""A controller as a process: `catchment controller run`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
from collections.abc import Callable
from typing import Any

from catchment.controlplane.controller.core import Controller
from catchment.controlplane.controller.door import Door
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.members import Members
from catchment.controlplane.controller.metrics import ControllerCollector
from catchment.controlplane.controller.presence import PresenceFile
from catchment.controlplane.controller.service import Service, serving
from catchment.controlplane.controller.settings import Settings
from catchment.controlplane.controller.trust import Trust
from catchment.controlplane.jobs.turn import turn
from catchment.controlplane.metrics.exporter import serve as serve_metrics
from catchment.controlplane.networks.life import NetworkLife
from catchment.ending_signals import call_when_ended
from catchment.wire.socket_folder import LONGEST_SOCKET_PATH

_log = logging.getLogger(__name__)

_TURN_SECONDS = 30.0
_LOOK_SECONDS = 0.1
Started = Callable[[list[str]], None]


async def serve(settings: Settings, started: Started, stop: asyncio.Event) -> None:
    """Run until `stop` is set, or the emulated network is over that the switches are in: its jobs go with it.

    Args:
        settings: what to control.
        started: called with the addresses of the service once it answers.
        stop: ends it in order; the switches and the jobs on them stay as they are.

    Raises:
        ControlPlaneError: it cannot start.
    """
    trust, network = Trust(settings.certificates), settings.network
    for address in settings.listen:
        if address.startswith("unix:") and len(os.fsencode(address.removeprefix("unix:"))) > LONGEST_SOCKET_PATH:
            raise ControllerError(f"{address} is too long for a socket; choose a shorter path with --listen")
    with contextlib.ExitStack() as held:
        # A command that changes jobs without a controller ends first; whichever comes later waits for this one.
        with turn(settings.folder, settings.topology.name, patience=_TURN_SECONDS):
            presence = held.enter_context(PresenceFile(settings.folder, settings.topology.name))
        async with Controller(settings) as controller, contextlib.AsyncExitStack() as exits:
            members = Members(controller)
            service = Service(controller, members, trust)
            addresses = await exits.enter_async_context(serving(service, settings.listen))
            if settings.prometheus is not None:
                exits.callback(_serve_metrics(controller, service.door, *settings.prometheus))
            losses = asyncio.create_task(members.look_for_losses(), name="losses")
            presence.announce(tuple(addresses), settings.certificates)
            started(addresses)
            stopped = asyncio.create_task(stop.wait())
            own: list[asyncio.Task[Any]] = [stopped, losses]
            if network is not None:
                own.append(asyncio.create_task(_until_over(network), name="network"))
            done, _ = await asyncio.wait([*own, *controller.tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in own:
                task.cancel()
            for task in done:
                if task is not stopped:
                    task.result()  # none of them ends by itself but by a fault of ours, or with the network
            if network is not None and network.is_over():
                _log.warning("network %s is down: its jobs are gone, and its controller ends", network.name)
        if network is not None and network.is_over():
            network.drop_jobs()


async def _until_over(network: NetworkLife) -> None:
    while not network.is_over():
        await asyncio.sleep(_LOOK_SECONDS)


def _serve_metrics(controller: Controller, door: Door | None, address: str, port: int) -> Callable[[], None]:
    """Answer Prometheus; returns what ends that."""
    try:
        return serve_metrics(ControllerCollector(controller, door), address, port).end
    except OSError as error:
        raise ControllerError(f"cannot answer Prometheus at {address}:{port}: {error.strerror}") from None


def run(settings: Settings, started: Started) -> None:
    """`serve` until a signal ends the program.

    Raises:
        ControlPlaneError: it cannot start.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection takes three

    async def main() -> None:
        stop = asyncio.Event()
        call_when_ended(asyncio.get_running_loop(), stop.set)
        await serve(settings, started, stop)

    asyncio.run(main())
