"""Several rails as one communicator (Nezha; docs/explanation/rails.md)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

from catchment.host.collectives.calls import wrong
from catchment.host.collectives.communicator import ABSENT, Communicator
from catchment.host.collectives.errors import CollectiveError
from catchment.host.collectives.library import RailStateWords, RailWords, library
from catchment.host.collectives.opening import REASON_BYTES, Timing, config_of
from catchment.host.collectives.ports import chosen_path
from catchment.host.collectives.rail_split import MOST_RAILS, RailCost, RailPolicy
from catchment.host.collectives.scaling import Block, Scaling
from catchment.host.transport.addresses import Address
from catchment.host.transport.stream import Stream

_BITS_PER_BYTES_PER_MS = 8_000


@dataclass(frozen=True, slots=True)
class Rail:
    """One of the networks between the ranks, as one of them sees it.

    Attributes:
        name: for messages; the same on all ranks.
        stream: of the job on this rail.
        local: own address there, port 0 for any.
        switch: the rail's switch.
        announced: ``shm:PATH`` where the control plane says that the switch shares memory with this host.
        port: ``auto``, ``udp`` or ``shm:PATH``, as `Communicator`'s.
        rate: nominal, in bits per second; 0: unknown. The same on all ranks.
        switch_name: of the switch, for messages.
    """

    name: str
    stream: Stream
    local: Address
    switch: Address
    announced: str = ""
    port: str = "auto"
    rate: int = 0
    switch_name: str = ""


@dataclass(frozen=True, slots=True)
class RailState:
    """What a rail has carried, and what all ranks have measured of it.

    Attributes:
        name: of the rail.
        cost: start-up and rate, as of the last report that counts.
        parts: of operations that went over it.
        bytes: of the wire, one way.
    """

    name: str
    cost: RailCost
    parts: int
    bytes: int


@final
class RailSet(Communicator):
    """One rank of a job on several rails: what a `Communicator` does, with each operation where it is soonest done.

    `all_reduce` and `reduce` of more than 4096 elements are split, whatever their `op`; each rail carries a part, and
    the result has the bits of one rail. Whatever else is called goes over the rail that is best for its size. All ranks
    split alike, since nothing but the operation's number, its size and the reports that all ranks have had decides.

    A rail that fails ends the set: its error names the rail.

    Args:
        rails: 1..8, the same and in the same order on all ranks, with equal slots and lanes (a power of two).
        rank: this rank, the worker index of the job.
        policy: who decides about the split; the same on all ranks.
        timeout: as `Communicator`, as is what follows.
        scaling: of operations that do not say.
        spin: seconds that a waiting thread looks for frames before it sleeps.
        absent: seconds that a rail's switch may be gone or silent, as `Communicator`.

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
        spin: float = 200e-6,
        absent: float | None = ABSENT,
    ) -> None:
        names = [rail.name for rail in rails]
        if not 1 <= len(rails) <= MOST_RAILS or len(set(names)) != len(names):
            raise wrong(f"rails {', '.join(names) or '(none)'}", f"give 1..{MOST_RAILS}, each with a name of its own")
        words = (RailWords * len(rails))()
        for word, rail in zip(words, rails, strict=True):
            if rail.rate < 0:
                raise wrong(f"rail {rail.name}: a rate of {rail.rate} bit/s", "give bits per second, 0 for unknown")
            word.name = rail.name.encode()
            word.bytes_per_ms = min(rail.rate // _BITS_PER_BYTES_PER_MS, (1 << 32) - 1)
            word.config = config_of(
                rail.stream,
                rank=rank,
                local=rail.local,
                switch=rail.switch,
                path=chosen_path(rail.port, rank, rail.announced, rail.name),
                timing=Timing(timeout, spin, absent),
                window=None,
                switch_name=rail.switch_name,
            )
        reason = ctypes.create_string_buffer(REASON_BYTES)
        handle = library().catchment_rails_open(words, len(rails), policy, reason, len(reason))
        if not handle:
            raise CollectiveError(
                f"cannot open rails {', '.join(names)}: {reason.value.decode()}",
                kind="system",
                hint="are all rails of one job, and is each rail's switch there?",
            )
        self._names = names
        self._take(handle, rails[0].stream, words[0].config, scaling)

    @classmethod
    def of_job(cls, description: Mapping[str, Any], **options: Any) -> Self:
        """Make a rank from what the control plane says to a member of a group of jobs, one on each rail.

        Raises:
            CollectiveError: kind ``argument``, where no part names a rail or the parts number this member differently;
                and as the constructor.
        """
        parts = {label: part for label, part in description.get("parts", {}).items() if "rail" in part}
        ranks = {label: part["wid"] for label, part in parts.items()}
        if len(set(ranks.values())) != 1:
            raise wrong(
                f"job {description.get('job', '(no name)')} with rails {ranks}",
                "give a group of jobs with the same workers in the same order, one on each rail",
            )
        rails = [
            Rail(
                name=part["rail"],
                stream=Stream(**part["sums"]),
                local=tuple(part["local"]),
                switch=tuple(part["switch"]),
                announced=part.get("port", ""),
                rate=part.get("rate", 0),
                switch_name=part.get("switch_name", ""),
            )
            for part in parts.values()
        ]
        return cls(rails, rank=next(iter(ranks.values())), **options)

    def rails(self) -> list[RailState]:
        """Each rail's cost and what it has carried."""
        return self._states()[1]

    @property
    def table_version(self) -> int:
        """How many reports of all ranks the costs rest on."""
        return self._states()[0]

    def _states(self) -> tuple[int, list[RailState]]:
        words = (RailStateWords * len(self._names))()
        version = int(self._library.catchment_rails_states(self._handle, words, len(words)))
        return version, [
            RailState(
                name, RailCost(word.cost.start_ns, word.cost.bytes_per_ms, word.cost.nominal), word.parts, word.bytes
            )
            for name, word in zip(self._names, words, strict=True)
        ]
