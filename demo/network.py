"""The networks that the demo runs on: hosts on a P4 switch (switch_network.py), or threads on a switch in memory.

shm_network.py has the P4 switch without namespaces: processes on shared-memory ports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

import torch

from catchment.sim.lab.errors import LabError
from catchment.sim.lab.members import Deliver, Member, ThreadMember
from catchment.sim.lab.memory_switch import MemorySwitch
from catchment.sim.training.options import Plan, TrainingOptions
from catchment.sim.training.root import initial_layers, serve
from catchment.sim.training.worker import prepare, train


class DemoNetwork(Protocol):
    """A running network with the demo's job on it; a context manager."""

    def describe(self) -> dict[str, dict[str, Any]]:
        """Host name -> what its process must know to reach the switch."""

    def start(self, host: str, plan: Plan, deliver: Deliver) -> Member:
        """Start the member that plays host `host`."""

    def counters(self) -> dict[str, int]:
        """The switch's drops by reason, those that happened."""

    def diagnosis(self) -> list[str]:
        """Sentences about silent members, for a run that stalls; raises LabError when the switch itself is gone."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def by_host(jobs: Mapping[str, Mapping[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """What `describe` says of hosts in one job for each optimizer node: node -> host -> its part in that job.

    In a training with one node a part is all there is; with several, a worker has a part in each node's job.
    """
    if len(jobs) == 1:
        return dict(next(iter(jobs.values())))
    described: dict[str, dict[str, Any]] = {}
    for root, parts in jobs.items():
        for host, part in parts.items():
            who = {"role": part["role"], "wid": part["wid"], "parts": {}}
            described.setdefault(host, who)["parts"][root] = part
    return described


class MemoryNetwork:
    """No switch at all: threads of this process on a `MemorySwitch`."""

    def __init__(self, options: TrainingOptions) -> None:
        """`loss` has no meaning here and is refused."""
        if options.loss:
            raise LabError("network=memory has no switch that could lose packets: leave loss at 0")
        self._options = options
        self._fabrics = [MemorySwitch(options.workers, packed=options.packed) for _ in options.root_names]
        self._torch_threads = torch.get_num_threads()

    def __enter__(self) -> Self:
        torch.set_num_threads(1)  # the hosts' threads begin with it: one thread fixes the order of every sum
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch.set_num_threads(self._torch_threads)
        for fabric in self._fabrics:
            fabric.fail(LabError("the run is over"))

    def describe(self) -> dict[str, dict[str, Any]]:
        """Role and index; there are no addresses."""
        workers = {name: {"role": "worker", "wid": wid} for wid, name in enumerate(self._options.worker_names)}
        return {**workers, **{name: {"role": "root"} for name in self._options.root_names}}

    def start(self, host: str, plan: Plan, deliver: Deliver) -> Member:
        """A thread."""
        described = plan.hosts[host]
        body: Callable[[Callable[..., None]], dict[str, Any]]
        if described["role"] == "root":
            initial, root = initial_layers(plan.options), plan.options.root_names.index(host)
            body = lambda tell: serve(plan.options, initial, self._fabrics[root].root(), tell, root)  # noqa: E731
        else:
            ports = [fabric.worker(described["wid"]) for fabric in self._fabrics]
            prepared = prepare(plan.options, described["wid"])
            body = lambda tell: train(plan.options, prepared, ports, tell)  # noqa: E731
        return ThreadMember(host, body, deliver)

    def counters(self) -> dict[str, int]:
        """Nothing is ever dropped."""
        return {}

    def diagnosis(self) -> list[str]:
        """Threads say themselves what went wrong."""
        return []
