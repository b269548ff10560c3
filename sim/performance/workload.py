"""Operations on a network, in the order that depends on what each waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import LONGEST, PICOS_PER_SECOND
from catchment.sim.performance.network import Network, Stream
from catchment.sim.performance.timeline import Bar

_EVENTS_A_TURN = 500_000
_TOO_LONG = f"nothing runs longer than {LONGEST // PICOS_PER_SECOND} simulated seconds"
SETTLED = 5_000_000
"""Streams run for so many ps before the first push: every member's first heartbeat has been merged."""
_IDLE_LIMIT = 20_000_000_000
_TIMEOUTS = 10
"""A time without progress, in ps, and so many of the longest timeouts, after which nothing is going to move."""


class Action(IntEnum):
    """What an operation does; as in native/operations.hpp."""

    JOIN = 0
    DELAY = 1
    COMPUTE = 2
    PUSH = 3
    PULL = 4


class Workload:
    """Operations that wait for one another."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int]] = []
        self._order: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, action: Action, target: int = 0, amount: int = 0, after: Iterable[int] = ()) -> int:
        """An operation that begins when all of `after` have ended; gives its number.

        Raises:
            PerformanceError: it alone takes longer than a simulation may.
        """
        if amount > LONGEST:
            raise PerformanceError(f"an operation of {amount / PICOS_PER_SECOND:g} s: {_TOO_LONG}")
        number = len(self._rows)
        self._rows.append((action, target, amount))
        self._order += [(first, number) for first in after]
        return number

    def transfer(
        self, stream: Stream, size: int, after: Sequence[int] = (), each_after: Sequence[Sequence[int]] = ()
    ) -> tuple[list[int], list[int]]:
        """A message of `size` bytes of each sender: pushes, and pulls that begin with them.

        Args:
            after: what every push waits for; pulls wait for nothing.
            each_after: what each sender's push waits for besides, in the order of the senders.
        """
        frames = stream.frames(size)
        own = each_after or [()] * len(stream.senders)
        pushes = [
            self.add(Action.PUSH, member, frames, (*after, *waits))
            for member, waits in zip(stream.senders, own, strict=True)
        ]
        return pushes, [self.add(Action.PULL, member, frames) for member in stream.receivers]

    def bars(
        self, times: NDArray[np.int64], members: Mapping[int, tuple[str, int]], workers: Sequence[str]
    ) -> Iterator[Bar]:
        """What ran when, for a timeline: computing, and messages of each member of `members` (host, bytes of a frame).

        A message's bar begins when the one before it on its stream has ended.

        Args:
            times: began and ended of each operation, in ps, as `run` gives them.
            workers: what computes, by number.
        """
        free: dict[tuple[Action, int], int] = {}
        streams: dict[tuple[str, Action], list[int]] = {}
        for (action, target, amount), (began, ended) in zip(self._rows, times.tolist(), strict=True):
            if action == Action.COMPUTE:
                yield Bar(workers[target], "compute", "compute", "compute", began / 1e12, ended / 1e12)
            elif action in (Action.PUSH, Action.PULL):
                host, payload = members[target]
                what = Action(action)
                start = max(began, free.get((what, target), 0))
                free[what, target] = ended
                known = streams.setdefault((host, what), [])
                if target not in known:
                    known.append(target)
                name = what.name.lower()
                track = f"{name} {known.index(target)}"
                yield Bar(host, track, name, name, min(start, ended) / 1e12, ended / 1e12, amount * payload)

    def run(
        self,
        network: Network,
        progress: Callable[[int, int], None] | None = None,
        outages: Sequence[tuple[int, int]] = (),
    ) -> NDArray[np.int64]:
        """Run them to their end; began and ended of each, in ps.

        Args:
            network: theirs; of several rails, that with the longest timeouts.
            progress: told of operations that are over, and of all.
            outages: from when until when, in ps, something is down that comes back and is waited for.

        Raises:
            PerformanceError: nothing moves any more, or it takes too long.
        """
        if not self._rows:
            raise PerformanceError("a workload needs operations")
        simulation = network.simulation
        simulation.add_operations(np.array(self._rows, np.int64))
        simulation.add_order(np.array(self._order, np.int64).reshape(-1, 2))
        limit = max(_IDLE_LIMIT, _TIMEOUTS * network.longest_timeout)

        def idle() -> int:
            back = max((until for began, until in outages if began <= simulation.now), default=0)
            return int(min(simulation.idle, simulation.now - back))

        simulation.start()
        while not simulation.run(_EVENTS_A_TURN, LONGEST):
            if progress is not None:
                progress(len(self) - simulation.left, len(self))
            if idle() > limit:
                break
        times = simulation.times()
        loss = network.cluster.links.faults.loss
        lost = f"; each line loses {loss:g} of its frames: give less as links.loss" if loss else ""
        if simulation.left and idle() <= limit:
            raise PerformanceError(f"{simulation.left} of {len(self)} operations have not ended: {_TOO_LONG}{lost}")
        if simulation.left:
            stuck = [at for at, (_, ended) in enumerate(times) if ended < 0]
            first = Action(self._rows[stuck[0]][0]).name.lower()
            raise PerformanceError(
                f"nothing has moved for {simulation.idle / 1e9:.0f} ms: {len(stuck)} of {len(self)} operations have "
                f"not ended after {simulation.now / 1e12:.3f} s, first a {first}; see what fails and does not come "
                f"back, or takes that long{lost}"
            )
        return times
