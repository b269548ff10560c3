"""A place in a job that exists already, as a file describes it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from catchment.host.collectives import ABSENT, CollectiveError, Communicator, Scaling
from catchment.host.collectives.ports import is_socket
from catchment.host.torch.distributed.seat import Loss


@final
class FileSeat:
    """This host's place in the job of a file that `catchment job show NAME --json` wrote.

    Which member this host is: `host`, or the only one whose address is of this host; where several are (a machine
    that plays many), the one with the index `rank`.  A member may have an entry `port` ("shm:PATH"), which is taken if
    a switch of this machine has a socket there.  The switch may be gone or silent for `absent` seconds.

    Raises:
        CollectiveError: kind ``argument``: the file is no such job, or this host is not in it.
    """

    def __init__(self, path: Path, *, rank: int, size: int, host: str | None, absent: float = ABSENT) -> None:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            members: dict[str, dict[str, Any]] = document["members"]
            workers = [members[name] for name in document["workers"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _wrong(
                f"{path} describes no job ({type(error).__name__}: {error})",
                "write it with `catchment job show --json`",
            ) from None
        if len(workers) != size or any(member.get("role") != "peer" for member in workers):
            raise _wrong(
                f"the job of {path} has {len(workers)} workers of kind {document.get('kind')}, the group {size} ranks",
                f"create it with --kind allreduce and {size} workers",
            )
        self.name = str(document.get("name", path))
        self._member = dict(_own(members, workers, rank, host, path))
        self.address = str(self._member["local"][0])
        self._absent = absent

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`."""
        return Communicator.of_job(self._member, timeout=timeout, scaling=scaling, absent=self._absent)

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """Nobody watches over such a job: a rank that is gone is noticed when an operation times out."""

    def leave(self) -> None:
        """See `Seat`."""


def _own(
    members: Mapping[str, Mapping[str, Any]],
    workers: list[dict[str, Any]],
    rank: int,
    host: str | None,
    path: Path,
) -> Mapping[str, Any]:
    if host is not None:
        if host not in members:
            raise _wrong(f"host {host} is not in the job of {path}", f"in it are: {', '.join(members)}")
        return members[host]
    ours = [worker for worker in workers if _shares_memory(worker) or _is_own(worker["local"][0])]
    if not ours:
        raise _wrong(f"no member of the job of {path} has an address of this host", "set CATCHMENT_HOST to its name")
    return ours[0] if len(ours) == 1 else workers[rank]


def _shares_memory(worker: Mapping[str, Any]) -> bool:
    kind, _, path = str(worker.get("port", "")).partition(":")
    return kind == "shm" and is_socket(Path(path))


def _is_own(address: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
        return True


def _wrong(message: str, hint: str) -> CollectiveError:
    return CollectiveError(message, kind="argument", hint=hint)
