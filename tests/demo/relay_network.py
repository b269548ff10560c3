"""The demo's processes on loopback, around the slow switch of the endpoint's tests: no root, no namespaces."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.demo.network import by_host
from catchment.sim.lab.members import Deliver, ProcessMember, module_command, start_here
from catchment.sim.training.options import Plan, TrainingOptions
from catchment.wire.generated.constants import UDP_PORT, Mode

sys.path.insert(0, str(Path(__file__).parents[1] / "host"))

from relay import Job, Relay


class RelayNetwork:
    """A DemoNetwork whose switch is a thread of this process. members: what was started, by host."""

    def __init__(self, options: TrainingOptions, *, seed: int = 0, **faults: float) -> None:
        self._options = options
        self.relay = Relay(seed=seed, **faults)
        self.members: dict[str, ProcessMember] = {}

    def __enter__(self) -> Self:
        self.relay.__enter__()
        hosts = [*self._options.worker_names, *self._options.root_names]
        # Loopback addresses of their own: whatever others do meanwhile, nobody takes a port of them.
        network = random.SystemRandom().randrange(1 << 16)
        self._ips = {host: f"127.{1 + (network >> 8) % 254}.{network & 0xFF}.{1 + i}" for i, host in enumerate(hosts)}
        workers = self._options.workers
        for number, root in enumerate(self._options.root_names):
            members = {**dict(zip(self._options.worker_names, range(workers), strict=True)), root: None}
            places = {(self._ips[host], UDP_PORT + number): wid for host, wid in members.items()}
            self.relay.add(Job(2 * number + 1, Mode.REDUCE, self._options.slots, workers, dict(places)))
            self.relay.add(Job(2 * number + 2, Mode.BCAST, 1, workers, dict(places)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.relay.__exit__()

    def describe(self) -> dict[str, dict[str, Any]]:
        return by_host({root: self._parts(number, root) for number, root in enumerate(self._options.root_names)})

    def _parts(self, number: int, root: str) -> dict[str, dict[str, Any]]:
        options = self._options
        stream = {"workers": options.workers, "slots": options.slots, "lanes": options.lanes, "param_bytes": 1408}
        return {
            host: {
                "role": "root" if host == root else "worker",
                "wid": 0 if host == root else index,
                "local": [self._ips[host], UDP_PORT + number],
                "switch": list(self.relay.address),
                "gradients": {"gen": 2 * number + 1, **stream, "packed": options.packed},
                "parameters": {"gen": 2 * number + 2, **stream},
            }
            for index, host in enumerate([*options.worker_names, root])
        }

    def start(self, host: str, plan: Plan, deliver: Deliver) -> ProcessMember:
        command = module_command("catchment.demo.process", (str(plan.path), host), plan.options.logs / f"{host}.log")
        self.members[host] = ProcessMember(host, command, start_here, deliver)
        return self.members[host]

    def counters(self) -> dict[str, int]:
        return {}

    def diagnosis(self) -> list[str]:
        return []
