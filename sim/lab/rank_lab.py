"""Ranks on one switch of this machine, each with its communicators to the groups it is in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from catchment.controlplane.jobs import JobPlan
from catchment.host.collectives import Communicator
from catchment.host.torch.sharded.groups import Groups, Ranks
from catchment.host.torch.sharded.links import Explain, Links, Opener, as_it_is
from catchment.sim.lab.shm_lab import ShmLab

_PATIENCE: Final = 240.0  # seconds; on a machine that may be busy


class RankLab:
    """A switch with a port for each of `size` ranks; `opener(rank)` joins a rank to groups of ranks.

    Args:
        size: ranks.
        lanes: of the switch's program.
        slots: of each group.
        timeout: of operations, seconds.
        faults: of ports, as the switch's option --fault takes them.
    """

    def __init__(
        self, size: int, *, lanes: int = 64, slots: int = 32, timeout: float = 60.0, faults: Sequence[str] = ()
    ) -> None:
        self.hosts = [f"w{rank}" for rank in range(size)]
        extra = tuple(part for fault in faults for part in ("--fault", fault))
        self._lab = ShmLab(self.hosts, lanes=lanes, slots=slots * 8 * size, extra=extra)
        self._slots, self._timeout = slots, timeout
        self._jobs: dict[tuple[str, tuple[int, ...]], JobPlan] = {}

    @contextmanager
    def running(self) -> Iterator[RankLab]:
        """The switch, for as long as this is entered."""
        with self._lab:
            yield self

    @contextmanager
    def linked(self, groups: Groups, *, hierarchical: bool = True) -> Iterator[list[Links]]:
        """The links of all ranks, on jobs of their own, which end with it."""
        for kind, found in groups.all().items():
            for purpose in ("sum",) if kind == "replication" else ("gather", "scatter"):
                self.prepare(f"{kind}-{purpose}", found)
        links: list[Links] = [
            Links.open(groups, rank, self.opener(rank), hierarchical=hierarchical) for rank in range(groups.world)
        ]
        try:
            yield links
        finally:
            together([own.close for own in links])
            self.clear()

    def prepare(self, purpose: str, groups: Sequence[Sequence[int]]) -> None:
        """Deploy a job for each group; before its ranks open them."""
        for group in groups:
            key = (purpose, tuple(group))
            if len(group) > 1 and key not in self._jobs:
                hosts = [self.hosts[rank] for rank in group]
                name = f"{purpose}-{len(self._jobs)}"
                self._jobs[key] = self._lab.allreduce(hosts, slots=self._slots, name=name)

    def clear(self) -> None:
        """Take all jobs off the switch; their ranks have closed them."""
        for job in self._jobs.values():
            self._lab.remove(job)
        self._jobs.clear()

    def opener(self, rank: int) -> Opener:
        """What opens the communicators of a rank."""

        def open_(purpose: str, groups: Sequence[Ranks]) -> tuple[Communicator, Explain]:
            own = next(tuple(group) for group in groups if rank in group)
            job = self._jobs[purpose, own]
            return self._lab.communicator(job, self.hosts[rank], timeout=self._timeout), as_it_is

        return open_


def together(bodies: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run each in a thread of its own.

    Returns:
        What they return; the first exception is raised once all have ended.

    Raises:
        TimeoutError: one does not end.
    """
    outcome: list[Any] = [None] * len(bodies)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            outcome[index] = bodies[index]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE)
        if thread.is_alive():
            raise TimeoutError(f"a rank does not end; others say {errors}")
    if errors:
        raise errors[0]
    return outcome
