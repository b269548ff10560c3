"""A place in a job that exists already, as a file describes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Self, final

from catchment.host.collectives import ABSENT, Communicator, RailPolicy, Scaling
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.job_file import JobFile, Member, of_first
from catchment.host.torch.distributed.seat import Loss


class RailChoice(NamedTuple):
    """Which rails of a job on several are used, all unless given, and who decides how operations are split."""

    rails: tuple[str, ...] = ()
    policy: RailPolicy = RailPolicy.WATERFILL


ALL_RAILS: Final = RailChoice()


@final
class FileSeat:
    """A host's place in the job of a file, or in one of its parts.

    A member may have an entry `port` ("shm:PATH"), which is taken if a switch of this machine has a socket there.

    Attributes:
        host: this host's name in the job.
        member: what it needs.
        job: of the file.

    Args:
        job: of the file.
        host: this host's name there.
        member: what it needs.
        absent: seconds for which the switch may be gone or silent.
        choice: of rails, where the job is on several.
    """

    def __init__(
        self, job: JobFile, host: str, member: Member, absent: float = ABSENT, choice: RailChoice = ALL_RAILS
    ) -> None:
        self.name = job.name
        self.address = str(of_first(member, "local")[0])
        self.host = host
        self.member = member
        self.job = job
        self._absent = absent
        self._choice = choice

    @classmethod
    def of(
        cls,
        path: Path,
        *,
        rank: int,
        size: int,
        host: str | None,
        absent: float = ABSENT,
        choice: RailChoice = ALL_RAILS,
    ) -> Self:
        """This host's place, as `JobFile.own` finds it.

        Raises:
            CollectiveError: kind ``argument``: the file is no job of `size` ranks, or this host is not in it.
        """
        job = JobFile(path, size)
        return cls(job, *job.own(rank, host), absent, choice)

    @property
    def workers(self) -> list[str]:
        """The hosts of the job."""
        return self.job.workers

    def with_member(self, member: Member) -> Self:
        """The same place for a group that needs something else."""
        return type(self)(self.job, self.host, member, self._absent, self._choice)

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`."""
        rails, policy = self._choice
        return Communicator.of_job(
            self.member, timeout=timeout, scaling=scaling, absent=self._absent, rails=rails, policy=policy
        )

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """Nobody watches over such a job: a rank that is gone is noticed when an operation times out."""

    def leave(self) -> None:
        """See `Seat`."""

    def part(self, agreement: Agreement) -> FileSeat | None:
        """See `Seat`: a part of the job that has exactly the workers of the ranks, such as `--grid` makes."""
        label = self.job.take_part(agreement.of_all("hosts", self.host))
        if any(other != label for other in agreement.of_all("labels", label)) or label is None:
            return None
        return FileSeat(self.job, self.host, self.job.part(self.host, label), self._absent)
