"""Several ranks on one host of a job: a switch of the host's own takes its place, and adds up what its ranks push."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

from catchment.host.collectives import CollectiveError, Communicator, Scaling
from catchment.host.torch.distributed import local_seat, switch_command
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.file_seat import FileSeat
from catchment.host.torch.distributed.local_seat import LocalSeat
from catchment.host.torch.distributed.seat import Loss, Seat

_LOG: Final = logging.getLogger("catchment.torch")
_GROUP: Final = "job"


def take(agreement: Agreement, seat: FileSeat, command: str | None) -> Seat:
    """A place for this rank in a job with fewer workers than there are ranks, which all ranks of the group ask for.

    Ranks are workers in the order of the job's hosts, and on a host in the order of the ranks. A rank that is alone on
    its host takes the host's place itself; where there are more, the first of them starts a switch in it.

    Args:
        agreement: of the ranks.
        seat: of this rank's host.
        command: starts a switch; the installed one unless given.

    Raises:
        CollectiveError: kind ``argument``: a host of the job has no rank; ``system``: a host's switch does not start.
    """
    hosts = agreement.of_all("hosts", seat.host)
    empty = [worker for worker in seat.workers if worker not in hosts]
    if empty:
        raise CollectiveError(
            f"the job of {len(seat.workers)} hosts has no rank on {', '.join(empty)}",
            kind="argument",
            hint=f"start ranks on every host of the job; there are some on {', '.join(dict.fromkeys(hosts))}",
        )
    places = sorted(range(len(hosts)), key=lambda rank: (seat.workers.index(hosts[rank]), rank))
    here = [rank for rank in places if hosts[rank] == seat.host]
    first, own = here[0], here.index(agreement.rank)
    started: dict[str, Any] = {}
    if own == 0 and len(here) > 1:
        started = _start(len(here), command, seat.member)
    said = agreement.of_all("switches of hosts", started)
    failed = {rank: one["failed"] for rank, one in enumerate(said) if "failed" in one}
    if failed:
        rank, why = next(iter(failed.items()))
        raise CollectiveError(f"{hosts[rank]}: {why['message']}", kind="system", hint=why["hint"], peers=(rank,))
    member = _among_all(said[first]["members"][own] if len(here) > 1 else seat.member, agreement, places)
    if len(here) == 1:
        return seat.with_member(member)
    switch = local_seat.connect(said[first]["socket"], own)
    ranks = [here.index(rank) if rank in here else -1 for rank in range(len(hosts))]
    return SharedHostSeat(seat, LocalSeat(switch, _GROUP, member, ranks, command), command)


def _start(ranks: int, command: str | None, member: Mapping[str, Any]) -> dict[str, Any]:
    try:
        started = switch_command.start(ranks, command, below=member)
    except CollectiveError as error:
        return {"failed": {"message": error.message, "hint": error.hint}}
    return {"socket": started.socket, "members": list(started.members)}


def _among_all(member: Mapping[str, Any], agreement: Agreement, places: Sequence[int]) -> dict[str, Any]:
    """What a rank needs as one worker of as many as there are ranks."""
    sums = {**member["sums"], "workers": agreement.size}
    return {**member, "sums": sums, "wid": places.index(agreement.rank)}


@final
class SharedHostSeat:
    """A rank's place behind the switch of its host.

    Args:
        whole: the host's place in the job.
        own: the rank's place on the host's switch.
        command: starts another switch on the host, where it has none with room; the installed one unless given.
    """

    def __init__(self, whole: FileSeat, own: LocalSeat, command: str | None) -> None:
        self.name = whole.name
        self.address = whole.address
        self._whole = whole
        self._own = own
        self._command = command

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`."""
        return self._own.open(timeout=timeout, scaling=scaling)

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `Seat`. The ranks of this host are watched; of others a silent one is noticed by a timeout."""
        self._own.watch(lost)

    def leave(self) -> None:
        """See `Seat`."""
        self._own.leave()

    def part(self, agreement: Agreement) -> Seat | None:
        """See `Seat`: a group of ranks of one host goes through the host's switch."""
        hosts = set(agreement.of_all("hosts", self._whole.host))
        if len(hosts) == 1:
            return local_seat.take(agreement, self._command)
        _LOG.warning("a group of ranks of %s, several on a host, goes by gloo", ", ".join(sorted(hosts)))
        return None
