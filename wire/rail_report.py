"""What a rank of a job on several rails says of them to programs of its machine, over a Unix socket.

A rank listens at `socket_path()`; whoever connects gets one `RankReport` as JSON, and the end of the stream.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from catchment.wire.run_folder import run_folder

SOCKETS = "rails-*.sock"
"""The names of the sockets in the folder."""
_numbers = itertools.count()


def socket_path() -> Path:
    """A place where a rank of this process may listen, another one at each call."""
    return run_folder() / f"rails-{os.getpid()}-{next(_numbers)}.sock"


@dataclass(frozen=True, slots=True)
class RailReport:
    """One rail of a rank.

    Attributes:
        name: of the rail.
        generation: of the stream that the rank uses there.
        state: ``up``; ``down``: broken; ``probation``: it answers again and is not used yet.
        joined: whether it has ever joined all ranks.
        carrier: the rail whose switch its operations go through: itself, unless it is broken.
        start: seconds before the first byte of an operation of 4 MiB, as all ranks have measured it.
        rate: bits of the wire per second, likewise.
        nominal: bits per second, as the topology says; 0: unknown.
        parts: of operations that went over it.
        bytes: of the wire, one way.
        incidents: how often it was found broken.
        last_incident: seconds from the last sum until all ranks knew, of the last one; 0.0 before the first.
    """

    name: str
    generation: int
    state: str
    joined: bool
    carrier: str
    start: float
    rate: int
    nominal: int
    parts: int
    bytes: int
    incidents: int
    last_incident: float


@dataclass(frozen=True, slots=True)
class SplitReport:
    """How an all-reduce would be split now.

    Attributes:
        bytes: of the wire, of the whole operation.
        shares: bytes of each rail, in the order of the rails.
        starts: seconds before the first byte over each rail alone, as all ranks have measured it for this length.
        rates: bits of the wire per second, likewise.
    """

    bytes: int
    shares: tuple[int, ...]
    starts: tuple[float, ...]
    rates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankReport:
    """One rank.

    Attributes:
        job: name of the group of jobs.
        rank: of the job.
        pid: of its process.
        policy: who decides about splits.
        table_version: how many reports of all ranks the costs rest on.
        rails: in the ranks' order.
        table: splits by size.
    """

    job: str
    rank: int
    pid: int
    policy: str
    table_version: int
    rails: tuple[RailReport, ...]
    table: tuple[SplitReport, ...]

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The opposite.

        Raises:
            ValueError: not such a report.
        """
        try:
            data = json.loads(text)
            rails = tuple(RailReport(**rail) for rail in data.pop("rails"))
            table = tuple(_split(row) for row in data.pop("table"))
            return cls(**data, rails=rails, table=table)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not a rank's report: {error!r}") from None


def _split(row: Mapping[str, object]) -> SplitReport:
    shares, starts, rates = (_each(row, key) for key in ("shares", "starts", "rates"))
    return SplitReport(
        int(str(row["bytes"])), tuple(map(int, shares)), tuple(map(float, starts)), tuple(map(int, rates))
    )


def _each(row: Mapping[str, object], key: str) -> list[str]:
    values = row[key]
    if not isinstance(values, list):
        raise TypeError(f"{key} {values!r}")
    return [str(value) for value in values]
