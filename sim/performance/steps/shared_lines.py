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
_TOGETHER = 1.05
"""What takes up to so many times as long as the first of those that run is over with it."""
_PATIENCE = 4
"""Windows on a stream's slowest line that its longest timeout takes (models.Timers: 8 times two quarters)."""


@dataclass(frozen=True, slots=True)
class _Phase:
    """A time in which the same collectives run.

    Attributes:
        seconds: how long; the last one of each collective ends with it.
        rates: of each collective, bytes a second; 0: it is over.
        load: bytes a second of all of them on each line; `users`: how many there are.
    """

    seconds: float
    rates: Rates
    load: Rates
    users: Rates


@dataclass(frozen=True, slots=True)
class SharedLines:
    """Collectives that begin together, each at its fair rate: a ring or a tree is as fast as its slowest line.

    What is over leaves its rate to the others. Groups that go on with their next collective meanwhile are over with
    all of them so much sooner: the lines have the same to carry.

    Attributes:
        ways: the lines of each, of a ring as often as its hops go over them.
        phases: from the first one's end to the next.
        users: how many collectives go over each line.
    """

    model: FlowModel
    ways: Sequence[Lines]
    phases: Sequence[_Phase]
    users: Rates

    @classmethod
    def of(cls, model: FlowModel, ways: Sequence[Lines], sizes: Sequence[float]) -> Self:
        """Collectives on these lines; `sizes`: what each sends on a line, by the other ones'."""
        left = np.array(sizes, float)
        phases: list[_Phase] = []
        while (left > 0).any():
            running = np.flatnonzero(left > 0).tolist()
            rates = np.zeros(len(ways))
            rates[running] = fair_rates([Flow(ways[at], 1.0) for at in running], model.capacity)
            load, users = np.zeros(len(model.byte)), np.zeros(len(model.byte))
            for at in running:
                np.add.at(load, list(ways[at]), rates[at])
                np.add.at(users, list(ways[at]), 1)
            until = left[running] / rates[running]
            # What is over nearly as soon as the first one is over with it: phases are few.
            seconds = float(until.min())
            left[running] = np.where(until <= seconds * _TOGETHER, 0.0, left[running] - rates[running] * seconds)
            phases.append(_Phase(seconds, rates, load, users))
        return cls(model, ways, phases, phases[0].users)

    def left_for(self, at: int) -> FlowModel:
        """The lines at the rates that the others leave one of them on average: an equal share at least."""
        lines = list(self.ways[at])
        left, seconds = np.zeros(len(self.users)), 0.0
        for phase in self.phases:
            if phase.rates[at] == 0:
                break
            own, others = np.zeros(len(left)), phase.users.copy()
            np.add.at(own, lines, phase.rates[at])
            np.subtract.at(others, lines, 1)
            capacity = self.model.capacity
            left += phase.seconds * np.maximum(capacity - (phase.load - own), capacity / (1 + others))
            seconds += phase.seconds
        return replace(self.model, byte=tuple((PICOS_PER_SECOND * seconds / left).tolist()))

    def check_queues(self, window: int) -> None:
        """See that no frame is dropped in front of a line, or waits there for longer than timeouts are.

        Args:
            window: bytes that each collective may have under way.

        Raises:
            PerformanceError: more comes to a line than it takes, and its queue has no room for all windows, or they
                take longer than the longest timeout.
        """
        queue, byte = self.model.cluster.switch.queue_bytes, np.array(self.model.byte)
        patience = np.full(len(byte), np.inf)
        for lines in map(list, self.ways):
            np.minimum.at(patience, lines, _PATIENCE * byte[lines].max())
        late = (self.users * window > queue) | (self.users * byte > patience)
        for line in np.flatnonzero(late & (self._excess() > _MORE)).tolist():
            sent, room = (f"{bytes_ / 2**20:.1f} MiB" for bytes_ in (int(self.users[line]) * window, queue))
            raise PerformanceError(
                f"{int(self.users[line])} collectives at a time have {sent} under way in front of {self._name(line)}, "
                f"whose queue takes {room}: frames are dropped or come too late, which flow mode does not know: "
                "use --mode train, or give faster links between switches"
            )

    def oversubscribed(self) -> str | None:
        """The line in front of which most waits, and of how many collectives; None: nothing waits."""
        excess = self._excess()
        line = int(excess.argmax())
        if excess[line] <= _MORE:
            return None
        return f"{int(self.users[line])} collectives at a time share {self._name(line)}"

    def _excess(self) -> Rates:
        """What comes to each line that several collectives share, as a share of what it takes; 0: a host's own."""
        model = self.model
        up = np.array(list(model.up.values()))
        share, come = np.full(len(model.byte), np.inf), np.zeros(len(model.byte))
        share[up] = model.capacity[up] / np.maximum(self.users[up], 1)
        for lines in map(list, self.ways):
            np.add.at(come, lines, share[lines].min())
        come[(self.users <= 1)] = 0
        come[up] = 0
        excess: Rates = come / model.capacity
        return excess

    def _name(self, line: int) -> str:
        down = line < 2 * len(self.model.up)
        return f"the link to {_host(self.model, line)}" if down else f"trunk {_trunk(self.model, line)}"

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
