"""Several rails on this machine: a switch with shared-memory ports for each, and jobs over all of them.

with RailLab(["w0", "w1"], {"a": 200_000_000, "b": 100_000_000}) as lab, lab.ranks() as ranks:
    ...
    lab.cut("b", "w1")  # the link of w1 to the switch of rail b
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from catchment.host.collectives import RailSet
from catchment.sim.lab.ring_rail import ring_parts
from catchment.sim.lab.shm_lab import ShmLab
from catchment.softswitch.admin import SwitchAdmin
from catchment.wire.rail_labels import labels_beside
from catchment.wire.socket_folder import socket_folder

_numbers = itertools.count()


@contextmanager
def deployed(
    labs: Mapping[str, ShmLab],
    hosts: Sequence[str],
    rates: Sequence[int],
    *,
    slots: int,
    may_fail: bool = True,
    rings: Mapping[str, dict[str, Any]] | None = None,
    packed: bool = False,
    tags: bool = False,
) -> Iterator[dict[str, dict[str, Any]]]:
    """A job on the switch of each rail: what each host is told of the group. The jobs end with the context.

    Args:
        labs: a switch for each rail, by its name.
        hosts: of every switch.
        rates: nominal, in bits per second, of each rail.
        slots: of the job on each rail.
        may_fail: with what it takes for a rail to fail.
        rings: rails without a switch, by name: `lanes`, `rate` and perhaps `transport` of `ring_parts`.
        packed: vectors may have packed lanes, on every rail.
        tags: frames carry tags, on every rail.
    """
    jobs = []
    rails = (*labs, *(rings or {}))
    parts: dict[str, dict[str, Any]] = {host: {} for host in hosts}
    for (rail, lab), rate in zip(labs.items(), rates, strict=True):
        labels: dict[str, int | None] = {rail: slots}
        if may_fail:
            labels |= labels_beside(rail, rails)
        for label, few in labels.items():
            job = lab.allreduce(hosts, slots=few or slots, packed=packed, tags=tags, name=f"job{next(_numbers)}")
            jobs.append((lab, job))
            for host in hosts:
                where = {"rail": rail, "rate": rate, "port": f"shm:{lab.path(host)}"}
                parts[host][label] = {**job.describe(host), **where}
    for ring, options in (rings or {}).items():
        for host, own in zip(
            hosts, ring_parts(ring, rails, len(hosts), slots=slots, **{"packed": packed, **options}), strict=True
        ):
            parts[host] |= own
    yield {host: {"job": "rails", "parts": parts[host]} for host in hosts}
    for lab, job in jobs:
        if lab.switch.is_alive():
            lab.remove(job)


class RailLab:
    """Rails with a switch each; a context manager.

    Args:
        hosts: names, ranks by position.
        rates: bits per second of each rail, which its ports keep to where `limited`; 0: no limit.
        lanes: of the switches' program.
        slots: of jobs on each rail.
        limited: whether ports keep to the rates.

    Attributes:
        labs: the switch of each rail.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        rates: Mapping[str, int],
        *,
        lanes: int = 256,
        slots: int = 32,
        limited: bool = True,
    ) -> None:
        self._hosts, self._rates = list(hosts), dict(rates)
        self._lanes, self._slots, self._limited = lanes, slots, limited
        self._exits = ExitStack()
        self.labs: dict[str, ShmLab] = {}

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            self._folder = Path(exits.enter_context(socket_folder()))
            for rail in self._rates:
                lab = ShmLab(self._hosts, lanes=self._lanes, extra=("--admin", str(self.admin(rail))))
                self.labs[rail] = exits.enter_context(lab)
                for host in self._hosts:
                    self.join(rail, host)
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.close()

    @contextmanager
    def ranks(self, **options: Any) -> Iterator[list[RailSet]]:
        """A job on all rails, and its ranks; `options` as for `RailSet`."""
        with ExitStack() as exits:
            job = deployed(self.labs, self._hosts, list(self._rates.values()), slots=self._slots)
            told = exits.enter_context(job)
            yield [exits.enter_context(RailSet.of_job(told[host], **options)) for host in self._hosts]

    def cut(self, rail: str, host: str) -> None:
        """Cut a host's link to a rail's switch: nothing passes, in neither direction."""
        self._fault(rail, host, "loss=1")

    def join(self, rail: str, host: str) -> None:
        """Mend it."""
        limit = self._rates[rail] if self._limited else 0
        self._fault(rail, host, f"rate={limit // 1000}kbit,queue=1m" if limit else "off")

    def admin(self, rail: str) -> Path:
        """The administration socket of a rail's switch."""
        return self._folder / rail

    def _fault(self, rail: str, host: str, fault: str) -> None:
        with SwitchAdmin(self.admin(rail)) as admin:
            admin.set_faults(self._hosts.index(host) + 1, fault)
