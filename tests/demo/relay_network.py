"""The demo's processes on loopback, around the slow switch of the endpoint's tests: no root, no namespaces."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.checkout import ROOT
from catchment.sim.lab.members import Deliver, ProcessMember, member_environment, module_command
from catchment.sim.training.options import ROOT_HOST, Plan, TrainingOptions
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
        hosts = [*self._options.worker_names, ROOT_HOST]
        # Loopback addresses of their own: whatever others do meanwhile, nobody takes a port of them.
        network = random.SystemRandom().randrange(1 << 16)
        self._local = {
            host: (f"127.{1 + (network >> 8) % 254}.{network & 0xFF}.{1 + i}", UDP_PORT) for i, host in enumerate(hosts)
        }
        places = {self._local[host]: (None if host == ROOT_HOST else i) for i, host in enumerate(hosts)}
        workers = self._options.workers
        self.relay.add(Job(1, Mode.REDUCE, self._options.slots, workers, dict(places)))
        self.relay.add(Job(2, Mode.BCAST, 1, workers, dict(places)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.relay.__exit__()

    def describe(self) -> dict[str, dict[str, Any]]:
        options = self._options
        stream = {"workers": options.workers, "slots": options.slots, "lanes": options.lanes, "param_bytes": 1408}
        return {
            host: {
                "role": "root" if host == ROOT_HOST else "worker",
                "wid": 0 if host == ROOT_HOST else index,
                "local": list(self._local[host]),
                "switch": list(self.relay.address),
                "gradients": {"gen": 1, **stream},
                "parameters": {"gen": 2, **stream},
            }
            for index, host in enumerate([*options.worker_names, ROOT_HOST])
        }

    def start(self, host: str, plan: Plan, deliver: Deliver) -> ProcessMember:
        command = module_command("catchment.demo.process", (str(plan.path), host), plan.options.logs / f"{host}.log")

        def popen(argv: list[str], **settings: Any) -> subprocess.Popen[str]:
            return subprocess.Popen(argv, env=member_environment(), cwd=ROOT, **settings)

        self.members[host] = ProcessMember(host, command, popen, deliver)
        return self.members[host]

    def counters(self) -> dict[str, int]:
        return {}

    def diagnosis(self) -> list[str]:
        return []
