"""Several rails as one communicator (Nezha; docs/explanation/rails.md)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Self, final
from weakref import WeakMethod

from catchment.host.collectives.calls import checked_elements
from catchment.host.collectives.communicator import ABSENT, SPIN, Communicator, check_scaling, no_member
from catchment.host.collectives.errors import CollectiveError, wrong
from catchment.host.collectives.library import Config, RailCostWords, RailShareWords, RailStateWords, RailWords, library
from catchment.host.collectives.opening import REASON_BYTES, WAYS, Timing, config_of
from catchment.host.collectives.ports import chosen_path
from catchment.host.collectives.rail_parts import Rail, RailPart, checked_rails, chosen_rails, rails_of
from catchment.host.collectives.rail_split import MOST_RAILS, RailCost, RailPolicy, RailShare, checked_policy
from catchment.host.collectives.rail_status import RailStatus
from catchment.host.collectives.scaling import Block, Scaling
from catchment.host.collectives.whole_number import whole
from catchment.host.errors import EndpointError
from catchment.wire.rail_report import RailReport, RankReport, SplitReport

_BITS_PER_BYTES_PER_MS = 8_000
_WIRE_BYTES = 4
_REPORTED_BYTES = tuple(1 << power for power in range(14, 27, 2))


class RailHealth(IntEnum):
    """Whether a rail is used: `UP`; `DOWN`, broken; `PROBATION`, it answers again and is not used yet."""

    UP = 0
    DOWN = 1
    PROBATION = 2


@dataclass(frozen=True, slots=True)
class RailState:
    """What a rail has carried, and what all ranks have measured of it.

    Attributes:
        name: of the rail.
        cost: start-up and rate of 4 MiB of the wire, as of the last report that counts.
        parts: of operations that went over it.
        bytes: of the wire, one way.
        health: whether it is used, as all ranks have agreed.
        joined: whether it has ever joined all ranks.
        carrier: the rail whose switch its operations go through: itself, unless it is broken.
        incidents: how often it was found broken.
        last_incident: seconds from the last sum to when all ranks knew, of the last one; 0.0 before the first.
    """

    name: str
    cost: RailCost
    parts: int
    bytes: int
    health: RailHealth
    joined: bool
    carrier: str
    incidents: int
    last_incident: float


@final
class RailSet(Communicator):
    """One rank of a job on several rails: what a `Communicator` does, with each operation where it is soonest done.

    `all_reduce` and `reduce` of more than 4096 elements are split, whatever their `op`; each rail carries a part, and
    the result has the bits of one rail. Whatever else is called goes over the rail that is best for its size. All ranks
    split alike, since nothing but the operation's number, its size and the reports that all ranks have had decides.

    A rail that fails is found out by all ranks together: its operations go on over another one, and further ones are
    split over those that are left. It comes back by itself (docs/explanation/rails.md). Without `control` and `spares`
    a rail that fails ends the set, with an error that names the rail.

    Args:
        rails: 1..8, the same and in the same order on all ranks, with equal slots and lanes (a power of two).
        rank: this rank, the worker index of the job.
        policy: who decides about the split; the same on all ranks.
        timeout: as `Communicator`, as is what follows.
        scaling: of operations that do not say.
        spin: seconds that a waiting thread looks for frames before it sleeps.
        absent: seconds that the switches of all rails may be gone or silent, as `Communicator`.
        job: name of the job, under which `catchment rails show` of this machine finds the rank; nowhere unless given.

    Raises:
        CollectiveError: kind ``argument`` or ``system``.
    """

    def __init__(
        self,
        rails: Sequence[Rail],
        *,
        rank: int,
        policy: RailPolicy = RailPolicy.WATERFILL,
        timeout: float = 10.0,
        scaling: Scaling = Block(),  # noqa: B008  frozen
        spin: float = SPIN,
        absent: float | None = ABSENT,
        job: str = "",
    ) -> None:
        check_scaling(scaling)
        policy = checked_policy(policy)
        rails = checked_rails(rails)
        if not isinstance(job, str):
            raise wrong(f"a job named {job!r}", "give its name, a str")
        names = [rail.name for rail in rails]
        if not 1 <= len(rails) <= MOST_RAILS or len(set(names)) != len(names):
            raise wrong(f"rails {', '.join(names) or '(none)'}", f"give 1..{MOST_RAILS}, each with a name of its own")
        for rail in rails:
            hint = "give whole bits per second, 0 for unknown"
            if whole(f"rail {rail.name}: a rate of", rail.rate, hint) < 0:
                raise wrong(f"rail {rail.name}: a rate of {rail.rate} bit/s", hint)
            if not isinstance(rail.ring, str) or rail.ring not in WAYS:
                raise wrong(f"rail {rail.name}: a ring over {rail.ring}", "give tcp or mptcp, or nothing for a switch")
        timing = Timing(timeout, spin, absent)
        words = (RailWords * len(rails))()
        for word, rail in zip(words, rails, strict=True):
            word.name = rail.name.encode()
            word.bytes_per_ms = min(rail.rate // _BITS_PER_BYTES_PER_MS, (1 << 32) - 1)
            word.config = _config(rail, RailPart(rail.stream, rail.local, rail.switch), rank, timing)
            spares = [other.spares.get(rail.name) for other in rails if other is not rail]
            if rail.control is None or None in spares:
                continue
            word.control = ctypes.pointer(_config(rail, rail.control, rank, timing))
            # How this rail's operations go over each of the others.
            word.spares = (Config * len(rails))(
                *(
                    Config() if other is rail else _config(other, other.spares[rail.name], rank, timing)
                    for other in rails
                )
            )
        reason = ctypes.create_string_buffer(REASON_BYTES)
        handle = library().catchment_rails_open(words, len(rails), policy, reason, len(reason))
        if not handle:
            raise CollectiveError(
                f"cannot open rails {', '.join(names)}: {reason.value.decode()}",
                kind="system",
                hint="are all rails of one job, and is each rail's switch there?",
            )
        self._rails, self._policy, self._job = tuple(rails), policy, job
        self._take(handle, rails[0].stream, words[0].config, scaling)
        self._status = RailStatus(WeakMethod(self.report), listens=bool(job)) if job or len(rails) > 1 else None

    @classmethod
    def of_job(cls, description: Mapping[str, Any], *, rails: Sequence[str] = (), **options: Any) -> Self:
        """Make a rank from what the control plane says to a member of a group of jobs, one on each rail.

        `rails`: those to use, in this order, the same on all ranks; all of the job unless given.

        Raises:
            CollectiveError: kind ``argument``, where no part names a rail or the parts number this member differently;
                and as the constructor.
        """
        try:
            parts = description.get("parts", {})
            ranks = {label: part["wid"] for label, part in parts.items() if part.get("rail") == label}
            there = {rail.name: rail for rail in rails_of(parts)}
        except (LookupError, AttributeError, TypeError, ValueError, EndpointError) as error:
            raise no_member(error) from None
        if len(set(ranks.values())) != 1:
            raise wrong(
                f"job {description.get('job', '(no name)')} with rails {ranks}",
                "give a group of jobs with the same workers in the same order, one on each rail",
            )
        names = chosen_rails(rails)
        if absent := [name for name in names if name not in there]:
            raise wrong(
                f"job {description.get('job', '(no name)')} has no rail {', '.join(absent)}",
                f"it has: {', '.join(there)}",
            )
        return cls(
            [there[name] for name in names or there],
            rank=next(iter(ranks.values())),
            **{"job": str(description.get("job", "")), **options},
        )

    def rails(self) -> list[RailState]:
        """Each rail's cost and what it has carried."""
        return self._states()[1]

    @property
    def table_version(self) -> int:
        """How many reports of all ranks the costs rest on."""
        return self._states()[0]

    def shares(self, elements: int) -> list[RailShare]:
        """How an all-reduce of so many elements would be split now."""
        elements = checked_elements(elements)
        ask = self._library.catchment_rails_shares
        words = (RailShareWords * ask(self._handle, elements, None, 0))()
        ask(self._handle, elements, words, len(words))
        return [RailShare(word.rail, word.first, word.elements) for word in words]

    def costs(self, elements: int) -> list[RailCost]:
        """What each rail costs for an all-reduce of so many elements, as of the last report that counts."""
        elements = checked_elements(elements)
        words = (RailCostWords * len(self._rails))()
        self._library.catchment_rails_costs(self._handle, elements, words, len(words))
        return [_cost(word) for word in words]

    def report(self) -> RankReport:
        """What `catchment rails show` says of this rank."""
        version, states = self._states()
        return RankReport(
            job=self._job,
            rank=self.rank,
            pid=os.getpid(),
            policy=self._policy.name.lower(),
            table_version=version,
            rails=tuple(
                RailReport(
                    name=rail.name,
                    generation=rail.stream.gen,
                    state=state.health.name.lower(),
                    joined=state.joined,
                    carrier=state.carrier,
                    start=state.cost.start_ns / 1e9,
                    rate=state.cost.bytes_per_ms * _BITS_PER_BYTES_PER_MS,
                    nominal=rail.rate,
                    parts=state.parts,
                    bytes=state.bytes,
                    incidents=state.incidents,
                    last_incident=state.last_incident,
                )
                for rail, state in zip(self._rails, states, strict=True)
            ),
            table=tuple(self._split_report(size) for size in _REPORTED_BYTES),
        )

    def close(self, linger: float = 0.25) -> None:
        """Close it as a `Communicator`; `catchment rails show` finds it no longer."""
        if self._status is not None:
            self._status.close()
        super().close(linger)

    def __del__(self) -> None:
        status: RailStatus | None = getattr(self, "_status", None)  # none where the constructor failed
        if status is not None:
            status.close()
        super().__del__()

    def _split_report(self, size: int) -> SplitReport:
        carried = [0] * len(self._rails)
        for share in self.shares(size // _WIRE_BYTES):
            carried[share.rail] += share.elements * _WIRE_BYTES
        costs = self.costs(size // _WIRE_BYTES)
        return SplitReport(
            bytes=size,
            shares=tuple(carried),
            starts=tuple(cost.start_ns / 1e9 for cost in costs),
            rates=tuple(cost.bytes_per_ms * _BITS_PER_BYTES_PER_MS for cost in costs),
        )

    def _states(self) -> tuple[int, list[RailState]]:
        words = (RailStateWords * len(self._rails))()
        version = int(self._library.catchment_rails_states(self._handle, words, len(words)))
        return version, [
            RailState(
                name=rail.name,
                cost=_cost(word.cost),
                parts=word.parts,
                bytes=word.bytes,
                health=RailHealth(word.health),
                joined=bool(word.joined),
                carrier=self._rails[word.carrier].name,
                incidents=word.incidents,
                last_incident=word.last_incident_ns / 1e9,
            )
            for rail, word in zip(self._rails, words, strict=True)
        ]


def _cost(words: RailCostWords) -> RailCost:
    return RailCost(words.start_ns, words.bytes_per_ms, words.nominal, words.beside_start_ns, words.beside_bytes_per_ms)


def _config(rail: Rail, part: RailPart, rank: int, timing: Timing) -> Config:
    """A stream of a rail's switch, or of its ring."""
    return config_of(
        part.stream,
        rank=rank,
        local=part.local,
        switch=(part.next if rail.ring else None) or rail.switch,
        path=None if rail.ring else chosen_path(rail.port, rank, rail.announced, rail.name),
        timing=timing,
        window=None,
        switch_name=rail.switch_name,
        way=WAYS[rail.ring],
    )
