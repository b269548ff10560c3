"""A host's place in a job of the controller, where several ranks share hosts: the first of them joins for all."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

from torch._C._distributed_c10d import Store

from catchment.host.collectives import CollectiveError, Communicator, Scaling
from catchment.host.membership import Credentials, Description, Guest, Membership, MembershipError
from catchment.host.torch.distributed import shared_host
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.controller_seat import (
    ControllerSeat,
    join,
    settled,
    unavailable,
    watch_membership,
)
from catchment.host.torch.distributed.job_file import Member
from catchment.host.torch.distributed.seat import Loss, Seat
from catchment.host.torch.distributed.settings import ControllerAccess

_LOG: Final = logging.getLogger("catchment.torch")


def take(agreement: Agreement, access: ControllerAccess, *, timeout: float, absent: float, command: str | None) -> Seat:
    """A place for this rank in a job of the controller, which all ranks ask for.

    Args:
        agreement: of the ranks.
        access: how this rank's host joins.
        timeout: seconds for every host to join, and for the workers of a part to ask for it.
        absent: seconds for which the switch may be gone or silent.
        command: starts a switch on a host with several ranks; the installed one unless given.

    Raises:
        CollectiveError: as `ControllerSeat`; ``argument``: the job has other hosts than the ranks; else as
            `shared_host.take`.
    """
    hosts = agreement.of_all("hosts of ranks", access.host)
    if len(set(hosts)) == agreement.size:
        return ControllerSeat(access, size=agreement.size, timeout=timeout, absent=absent)
    first = hosts.index(access.host)
    membership, said = _join_first(agreement.rank == first, access, hosts, timeout)
    with ExitStack() as joining:
        if membership is not None:
            joining.callback(membership.leave)
        answers = agreement.of_all("members", said)
        failed = next(((rank, one["failed"]) for rank, one in enumerate(answers) if "failed" in one), None)
        if failed is not None:
            rank, why = failed
            raise CollectiveError(f"{hosts[rank]}: {why['text']}", kind=why["kind"], hint=why["hint"], peers=(rank,))
        joined = answers[first]
        credentials = Credentials.of(access.certificates, access.host)
        guest = Guest(access.address, credentials, joined["session"], access.job, joined["epoch"])
        patience = Patience(timeout, absent)
        job = ControlledHost(guest, joined["member"], agreement.store, membership, patience)
        seat = shared_host.take(agreement, job, command)
        joining.pop_all()
    return seat


def _join_first(
    is_first: bool, access: ControllerAccess, hosts: Sequence[str], timeout: float
) -> tuple[Membership | None, dict[str, Any]]:
    """The membership of this rank's host if the rank is the first there, and what the other ranks are told of it."""
    if not is_first:
        return None, {}
    with ExitStack() as joining:
        try:
            membership = join(access, len(set(hosts)), timeout)
            joining.callback(membership.leave)
            try:
                now = settled(membership, _Place, timeout).description
            except MembershipError as error:
                raise unavailable(error) from None
            said = {"member": now.as_member(), "epoch": now.epoch, "session": membership.session}
        except CollectiveError as error:
            return None, {"failed": {"text": error.message, "kind": error.kind, "hint": error.hint}}
        except Exception as error:  # the others wait for an answer
            _LOG.exception("%s cannot join job %s", access.host, access.job)
            return None, {"failed": {"text": repr(error), "kind": "system", "hint": ""}}
        joining.pop_all()
    return membership, said


@dataclass(frozen=True, slots=True)
class _Place:
    """What a membership holds for the host's switch, which lives on until its ranks have left it."""

    description: Description

    def close(self, linger: float) -> None:
        """Nothing: the ranks learn of a new epoch by their watch."""


class Patience(NamedTuple):
    """Seconds for the workers of a part to ask for it, and for which a switch may be gone or silent."""

    asking: float
    absent: float


@final
class ControlledHost:
    """See `HostJob`.

    Args:
        guest: acts for the host's member.
        member: what the host needs as one worker.
        store: of all ranks of the job.
        membership: of the host, in the first rank's process there.
        patience: with other workers and with switches.
    """

    def __init__(
        self, guest: Guest, member: Member, store: Store, membership: Membership | None, patience: Patience
    ) -> None:
        self.name = str(member["job"])
        self.host = str(member["host"])
        self.address = str(member["local"][0])
        self.member = member
        self._guest = guest
        self._store = store
        self._membership = membership
        self._patience = patience
        self._left = threading.Event()
        self._watchers: list[Callable[[Loss], None]] = []
        self._loss: Loss | None = None

    def alone(self, member: Member) -> Seat:
        """See `HostJob`."""
        return MemberSeat(member, self._patience.absent)

    def part(self, agreement: Agreement) -> ControlledPart | None:
        """See `HostJob`: the controller makes a job of the ranks' hosts, for which one rank on each of them asks."""
        hosts = agreement.of_all("workers", self.member["wid"])
        among = sorted(set(hosts))
        key = "splits of " + " ".join(map(str, among))
        number = agreement.of_first("number", lambda: self._store.add(key, 1) - 1)
        first = hosts.index(self.member["wid"])
        said: dict[str, Any] = {}
        if first == agreement.rank:
            try:
                (part,) = self._guest.split(number, 0, first, among=among, timeout=self._patience.asking)
                said = {"member": part.as_member()}
            except MembershipError as error:
                said = {"failed": str(error)}
        answers = agreement.of_all("parts", said)
        failures = [answer["failed"] for answer in answers if "failed" in answer]
        if failures:
            _LOG.warning("a group of ranks of workers %s goes by gloo: %s", among, failures[0])
            return None
        return ControlledPart(self, answers[first]["member"])

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `HostJob`: the process that has joined learns of losses."""
        if self._membership is not None:
            watch_membership(self._membership, self._left, lost)

    def give_up(self, cause: str) -> None:
        """See `HostJob`."""
        if not self._left.is_set():
            self._guest.give_up(cause)

    def spread(self, loss: Loss) -> None:
        """See `HostJob`."""
        self._loss = self._loss or Loss(loss.text, hosts=loss.hosts, kind=loss.kind)
        for lost in self._watchers:
            self._tell(lost)

    def follow(self, lost: Callable[[Loss], None]) -> None:
        """Call `lost`, from a thread, when the job has lost a member."""
        self._watchers.append(lost)
        if self._loss is not None:
            self._tell(lost)

    def leave(self) -> None:
        """See `HostJob`."""
        if not self._left.is_set():
            self._left.set()
            if self._membership is not None:
                self._membership.leave()

    def _tell(self, lost: Callable[[Loss], None]) -> None:
        threading.Thread(target=lost, args=(self._loss,), name="catchment-loss", daemon=True).start()


@final
class ControlledPart:
    """See `HostJob`: a job of some hosts that the controller made; it ends with the job of all.

    Args:
        whole: the host's place in the job of all.
        member: what the host needs as one worker of the part.
    """

    def __init__(self, whole: ControlledHost, member: Member) -> None:
        self.name = str(member["job"])
        self.host = whole.host
        self.address = whole.address
        self.member = member
        self._whole = whole

    def alone(self, member: Member) -> Seat:
        """See `HostJob`."""
        return self._whole.alone(member)

    def part(self, agreement: Agreement) -> ControlledPart | None:
        """See `HostJob`."""
        return self._whole.part(agreement)

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `HostJob`."""
        self._whole.follow(lost)

    def give_up(self, cause: str) -> None:
        """See `HostJob`: the place in the job of all does so, which knows the rank by its number there."""

    def spread(self, loss: Loss) -> None:
        """See `HostJob`."""

    def leave(self) -> None:
        """See `HostJob`."""


@final
class MemberSeat:
    """A place that is a host's own, for one rank.

    Args:
        member: what the rank needs.
        absent: seconds for which the switch may be gone or silent.
    """

    def __init__(self, member: Member, absent: float) -> None:
        self.name = str(member["job"])
        self.host = str(member["host"])
        self.address = str(member["local"][0])
        self._member = member
        self._absent = absent

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`."""
        return Communicator.of_job(self._member, timeout=timeout, scaling=scaling, absent=self._absent)

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `Seat`: the host's job is watched."""

    def part(self, agreement: Agreement) -> None:
        """See `Seat`: parts are the host's job's."""

    def leave(self) -> None:
        """See `Seat`."""
