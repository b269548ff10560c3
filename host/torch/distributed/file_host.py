"""A host's place in the job of a file, where several ranks share hosts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, final

from torch._C._distributed_c10d import Store

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed import shared_host
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.file_seat import FileSeat
from catchment.host.torch.distributed.job_file import Member
from catchment.host.torch.distributed.seat import Loss, Seat

_LOG: Final = logging.getLogger("catchment.torch")


def take(agreement: Agreement, seat: FileSeat, command: str | None) -> Seat:
    """A place for this rank in a job with fewer workers than there are ranks, which all ranks ask for.

    Args:
        agreement: of the ranks.
        seat: of this rank's host.
        command: starts a switch; the installed one unless given.

    Raises:
        CollectiveError: kind ``argument``: a host of the job has no rank; else as `shared_host.take`.
    """
    hosts = agreement.of_all("hosts", seat.host)
    empty = [worker for worker in seat.workers if worker not in hosts]
    if empty:
        raise CollectiveError(
            f"the job of {len(seat.workers)} hosts has no rank on {', '.join(empty)}",
            kind="argument",
            hint=f"start ranks on every host of the job; there are some on {', '.join(dict.fromkeys(hosts))}",
        )
    return shared_host.take(agreement, FileHost(seat, agreement.store), command)


@final
class FileHost:
    """See `HostJob`; nobody watches over such a job: ranks of other hosts that are gone are noticed by a timeout.

    Args:
        seat: of the host.
        store: of all ranks of the job.
    """

    def __init__(self, seat: FileSeat, store: Store) -> None:
        self.name = seat.name
        self.host = seat.host
        self.address = seat.address
        self.member = seat.member
        self._seat = seat
        self._store = store

    def alone(self, member: Member) -> Seat:
        """See `HostJob`."""
        return self._seat.with_member(member)

    def part(self, agreement: Agreement) -> FileHost | None:
        """See `HostJob`: the first part of the file of exactly these hosts that no group of any ranks has taken yet."""
        hosts = agreement.of_all("hosts", self.host)
        labels = self._seat.job.labels_of(hosts)
        label = agreement.of_first(
            "label", lambda: next((one for one in labels if self._store.add(f"part {one}", 1) == 1), None)
        )
        if label is None:
            _LOG.warning(
                "job %s has no part left for a group of ranks of %s, several on a host, which goes by gloo; "
                "a controller makes it when it is asked for (CATCHMENT_CONTROLLER)",
                self.name,
                ", ".join(sorted(set(hosts))),
            )
            return None
        return FileHost(self._seat.with_member(self._seat.job.part(self.host, label)), self._store)

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `HostJob`."""

    def give_up(self, cause: str) -> None:
        """See `HostJob`."""

    def spread(self, loss: Loss) -> None:
        """See `HostJob`."""

    def leave(self) -> None:
        """See `HostJob`."""
