"""Lines that the collectives of several groups load at the same time, as each of them finds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow_lines import FlowModel
from catchment.sim.performance.hosts_that_differ import trunk_name
from catchment.sim.performance.max_min import Flow, Rates, fair_rates
from catchment.sim.performance.models import PICOS_PER_SECOND

Lines = tuple[int, ...]
_MORE = 1.02
"""What comes may be so much more than a line takes without filling its queue: rates are rounded."""
_PATIENCE = 4
"""Windows on a stream's slowest line that its longest timeout takes (models.Timers: 8 times two quarters)."""


@dataclass(frozen=True, slots=True)
class SharedLines:
    """Collectives that run all the time, each at its fair rate: a ring or a tree is as fast as its slowest line.

    Attributes:
        ways: the lines of each, of a ring as often as its hops go over them.
        rates: of each, bytes a second.
        load: bytes a second of all of them on each line; `users`: how many there are.
    """

    model: FlowModel
    ways: Sequence[Lines]
    rates: Rates
    load: Rates
    users: Rates

    @classmethod
    def of(cls, model: FlowModel, ways: Sequence[Lines]) -> Self:
        """Collectives of equal sizes on these lines."""
        rates = fair_rates([Flow(lines, 1.0) for lines in ways], model.capacity)
        load, users = np.zeros(len(model.byte)), np.zeros(len(model.byte))
        for lines, rate in zip(ways, rates, strict=True):
            np.add.at(load, list(lines), rate)
            np.add.at(users, list(lines), 1)
        return cls(model, ways, rates, load, users)

    def left_for(self, at: int) -> FlowModel:
        """The lines at the rates that the others leave one of them: an equal share at least."""
        own, others = np.zeros(len(self.load)), self.users.copy()
        np.add.at(own, list(self.ways[at]), self.rates[at])
        np.subtract.at(others, list(self.ways[at]), 1)
        left = np.maximum(self.model.capacity - (self.load - own), self.model.capacity / (1 + others))
        return replace(self.model, byte=tuple((PICOS_PER_SECOND / left).tolist()))

    def check_queues(self, window: int) -> None:
        """See that no frame is dropped in front of a line, or waits there for longer than timeouts are.

        Args:
            window: bytes that each collective may have under way.

        Raises:
            PerformanceError: more comes to a line than it takes, and its queue has no room for all windows, or they
                take longer than the longest timeout.
        """
        model, hosts = self.model, 2 * len(self.model.up)
        up = np.array(list(model.up.values()))
        share = np.full(len(model.byte), np.inf)
        share[up] = model.capacity[up] / np.maximum(self.users[up], 1)
        come, patience = np.zeros(len(model.byte)), np.full(len(model.byte), np.inf)
        byte = np.array(model.byte)
        for lines in map(list, self.ways):
            np.add.at(come, lines, share[lines].min())
            np.minimum.at(patience, lines, _PATIENCE * byte[lines].max())
        queue = model.cluster.switch.queue_bytes
        late = (self.users * window > queue) | (self.users * byte > patience)
        for line in np.flatnonzero(late & (come > _MORE * model.capacity) & (self.users > 1)).tolist():
            if line not in up:
                what = f"the link to {_host(model, line)}" if line < hosts else f"trunk {_trunk(model, line)}"
                users = int(self.users[line])
                sent, room = (f"{bytes_ / 2**20:.1f} MiB" for bytes_ in (users * window, queue))
                raise PerformanceError(
                    f"{users} collectives at a time have {sent} under way in front of {what}, whose queue takes "
                    f"{room}: frames are dropped or come too late, which flow mode does not know: use --mode train, or "
                    "give faster links between switches"
                )

    def shape_of(self, at: int, model: FlowModel) -> tuple[tuple[int, float], ...]:
        """Its lines by first use, with the rates that they have for it: equal shapes take equal times."""
        seen: dict[int, int] = {}
        return tuple((seen.setdefault(line, len(seen)), round(model.byte[line], 6)) for line in self.ways[at])


def _host(model: FlowModel, line: int) -> str:
    return next(name for name, down in model.down.items() if down == line)


def _trunk(model: FlowModel, line: int) -> str:
    end = next(end for end, between in model.between.items() if between == line)
    links = model.cluster.topology.links
    return next(trunk_name(link) for link in links if end in ((p.switch, p.port) for p in (link.a, link.b)))
