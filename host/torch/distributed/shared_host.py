"""Several ranks on one host of a job: a switch of the host's own takes its place, and adds up what its ranks push."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, final

from catchment.host.collectives import CollectiveError, Communicator, Scaling
from catchment.host.torch.distributed import local_seat, switch_command
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.job_file import Member
from catchment.host.torch.distributed.local_seat import LocalSeat
from catchment.host.torch.distributed.seat import Loss, Seat
from catchment.wire.generated.constants import MAX_WORKERS

_GROUP: Final = "job"


class HostJob(Protocol):
    """A host's place in a job, which the ranks on the host share."""

    @property
    def name(self) -> str:
        """What messages call the job."""

    @property
    def host(self) -> str:
        """This host's name there."""

    @property
    def address(self) -> str | None:
        """This host's IPv4 address in the job's network."""

    @property
    def member(self) -> Member:
        """What the host needs as one worker."""

    def alone(self, member: Member) -> Seat:
        """The host's place for a rank that no other shares it with, which needs `member`."""

    def part(self, agreement: Agreement) -> HostJob | None:
        """This host's place in a job of some ranks' hosts, all of which call this; None on all: the log says why.

        Args:
            agreement: of these ranks.
        """

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """Call `lost`, from a thread, for a loss that this process learns of as the first on its host."""

    def give_up(self, cause: str) -> None:
        """Tell the other hosts that this one has lost a rank; may take seconds."""

    def spread(self, loss: Loss) -> None:
        """End the job's parts with it."""

    def leave(self) -> None:
        """Give the place up in order; again: nothing happens."""


def take(agreement: Agreement, job: HostJob, command: str | None) -> Seat:
    """A place for this rank in a job whose workers are the ranks' hosts, which all ranks of the group ask for.

    Ranks are workers in the order of the job's hosts, and on a host in the order of the ranks. A rank that is alone on
    its host takes the host's place itself; where there are more, the first of them starts a switch in it.

    Args:
        agreement: of the ranks.
        job: this rank's host in it.
        command: starts a switch; the installed one unless given.

    Raises:
        CollectiveError: kind ``argument``: too many ranks; ``system``: a host's switch does not start.
    """
    if agreement.size > MAX_WORKERS:
        raise CollectiveError(
            f"job {job.name} has {agreement.size} ranks on its hosts",
            kind="argument",
            hint=f"start {MAX_WORKERS} at most",
        )
    wid = int(job.member["wid"])
    hosts = agreement.of_all("places of hosts", [wid, job.host])
    places = sorted(range(agreement.size), key=lambda rank: (hosts[rank][0], rank))
    here = [rank for rank in places if hosts[rank][0] == wid]
    first, own = here[0], here.index(agreement.rank)
    started: dict[str, Any] = {}
    if own == 0 and len(here) > 1:
        started = _start(len(here), command, job.member)
    said = agreement.of_all("switches of hosts", started)
    failed = {rank: one["failed"] for rank, one in enumerate(said) if "failed" in one}
    if failed:
        rank, why = next(iter(failed.items()))
        raise CollectiveError(f"{hosts[rank][1]}: {why['message']}", kind="system", hint=why["hint"], peers=(rank,))
    member = _among_all(said[first]["members"][own] if len(here) > 1 else job.member, agreement, places)
    if len(here) == 1:
        return SharedHostSeat(job, job.alone(member), command)
    switch = local_seat.connect(said[first]["socket"], own)
    ranks = [here.index(rank) if rank in here else -1 for rank in range(agreement.size)]
    return SharedHostSeat(job, LocalSeat(switch, _GROUP, member, ranks, command), command)


def _start(ranks: int, command: str | None, member: Mapping[str, Any]) -> dict[str, Any]:
    try:
        started = switch_command.start(ranks, command, below=member)
    except CollectiveError as error:
        return {"failed": {"message": error.message, "hint": error.hint}}
    return {"socket": started.socket, "members": list(started.members)}


def _among_all(member: Mapping[str, Any], agreement: Agreement, places: Sequence[int]) -> dict[str, Any]:
    """What a rank needs as one worker of as many as there are ranks; its switch knows it by its place there."""
    sums = {**member["sums"], "workers": agreement.size}
    return {**member, "sums": sums, "wid": places.index(agreement.rank), "place": member["wid"]}


@final
class SharedHostSeat:
    """A rank's place in a job that has a place for its host.

    Args:
        job: the host's place in it.
        own: the rank's place on the host's switch, or the host's own where no other rank shares it.
        command: starts another switch on the host, where it has none with room; the installed one unless given.
    """

    def __init__(self, job: HostJob, own: Seat, command: str | None) -> None:
        self.name = job.name
        self.host = job.host
        self.address = job.address
        self._job = job
        self._own = own
        self._command = command

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`."""
        return self._own.open(timeout=timeout, scaling=scaling)

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `Seat`. A rank of this host that ends is a loss of the whole host, of which the others are told."""

        def here(loss: Loss) -> None:
            if loss.ranks:
                threading.Thread(target=self._job.give_up, args=(loss.text,), name="catchment-loss").start()
            known(loss)

        def elsewhere(loss: Loss) -> None:
            if isinstance(self._own, LocalSeat):
                self._own.tell(loss)
            known(loss)

        def known(loss: Loss) -> None:
            self._job.spread(loss)
            lost(loss)

        self._own.watch(here)
        self._job.watch(elsewhere)

    def leave(self) -> None:
        """See `Seat`."""
        self._own.leave()
        self._job.leave()

    def part(self, agreement: Agreement) -> Seat | None:
        """See `Seat`: ranks of one host go through the host's switch, those of several through a job of their hosts."""
        if len(set(agreement.of_all("hosts", self._job.host))) == 1:
            return local_seat.take(agreement, self._command)
        part = self._job.part(agreement)
        return None if part is None else take(agreement, part, self._command)
