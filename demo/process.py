"""The main of a worker's and of the optimizer node's process: set up, wait for the others, run, report.

python -m catchment.demo.process PLAN.json NAME
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from catchment.demo.ports import open_seat
from catchment.host import Endpoint, EndpointError
from catchment.host.layers import TrainingError
from catchment.host.optimizer.store import StoreError
from catchment.sim.lab import events
from catchment.sim.lab.errors import LabError
from catchment.sim.training import root, worker
from catchment.sim.training.options import Plan

_Part = Callable[[list[Endpoint], bool], dict[str, Any]]
"""What a host does with its endpoints; true: somebody was lost, and all go on from the last step that all have."""


def member_main() -> None:
    """Entry point: arguments PLAN.json and the host's name; exit code 0, or 1 with an error event."""
    path, name = sys.argv[1:3]
    try:
        run_member(Plan.read(Path(path)), name)
    except (LabError, EndpointError, StoreError, TrainingError, OSError) as error:
        events.tell(events.ERROR, kind=type(error).__name__, text=str(error))
        sys.exit(1)


def run_member(plan: Plan, name: str) -> None:
    """Play the part that the plan gives to host `name`."""
    torch.set_num_threads(1)  # five processes share the machine; one thread also fixes the order of every sum
    options, described = plan.options, plan.hosts[name]
    part: _Part
    if described["role"] == "root":
        initial, number = root.initial_layers(options), options.root_names.index(name)
        part = lambda endpoints, rejoin: root.serve(  # noqa: E731
            options, initial, endpoints[0], events.tell, number, rejoin=rejoin
        )
    else:
        prepared = worker.prepare(options, described["wid"])
        part = lambda endpoints, _: worker.train(options, prepared, endpoints, events.tell)  # noqa: E731
    with open_seat(name, described, options.root_names, options.timeout) as seat:
        ready = False
        while True:
            try:
                with seat.endpoints() as endpoints:
                    if not ready:
                        events.await_go()
                    ready = True
                    _play(part, endpoints, rejoin=seat.epoch > 1)
                    return
            except EndpointError as error:
                # A single node, or one in memory, keeps no step to go back to while the others live.
                if not seat.renewed() or options.group_folder is None:
                    raise seat.explained(error) from error


def _play(part: _Part, endpoints: dict[str, Endpoint], *, rejoin: bool) -> None:
    for endpoint in endpoints.values():
        threading.Thread(target=_report_stalls, args=(endpoint,), name="stalls", daemon=True).start()
    facts = part(list(endpoints.values()), rejoin)
    events.tell(events.DONE, stats={root: endpoint.stats() for root, endpoint in endpoints.items()}, **facts)


def _report_stalls(endpoint: Endpoint) -> None:
    """Tell when nothing has moved for a while: the orchestrator then asks the switch which members are missing."""
    while endpoint.error is None:
        time.sleep(1.0)
        for stall in endpoint.stalled():
            events.tell(events.STALLED, stream=stall.stream, seq=stall.seq, cause=stall.cause)


if __name__ == "__main__":
    member_main()
