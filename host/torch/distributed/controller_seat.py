"""A place in a job that the controller keeps (catchment.host.membership)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar, final

from catchment.host.collectives import ABSENT, CollectiveError, Communicator, Scaling
from catchment.host.membership import Credentials, Description, Membership, MembershipError
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.seat import Loss
from catchment.host.torch.distributed.settings import ControllerAccess

_LOG: Final = logging.getLogger("catchment.torch")
_POLL_SECONDS: Final = 0.5


def join(access: ControllerAccess, size: int, timeout: float) -> Membership:
    """Join a job of `size` workers for this host.

    Raises:
        CollectiveError: kind ``system``: the controller refuses or does not answer; ``argument``: the job is of
            another kind or size.
    """
    try:
        member = Membership.join(
            controller=access.address,
            job=access.job,
            host=access.host,
            token=access.token,
            credentials=Credentials.of(access.certificates, access.host),
            timeout=timeout,
        )
    except MembershipError as error:
        raise unavailable(error) from None
    description = member.description
    if description.role != "peer" or any(stream.workers != size for stream in description.streams.values()):
        member.leave()
        workers = max(stream.workers for stream in description.streams.values())
        raise CollectiveError(
            f"job {description.job} is of kind {description.kind} with {workers} workers, and there are ranks on {size}"
            " hosts",
            kind="argument",
            hint=f"create it with --kind allreduce and {size} workers",
        )
    return member


class _Closable(Protocol):
    """What takes part in a job for an epoch."""

    def close(self, linger: float) -> None:
        """End it."""


_Part = TypeVar("_Part", bound=_Closable)


def settled(member: Membership, make: Callable[[Description], _Part], timeout: float) -> _Part:
    """What `make` gives of the epoch that every member has come to, for which there are `timeout` seconds.

    Raises:
        MembershipError: a member has not come, or the membership has ended.
    """
    deadline = time.monotonic() + timeout
    while True:
        part = member.take(make)
        while not member.superseded():
            try:
                member.wait_complete(_POLL_SECONDS)
            except MembershipError:
                if member.error is not None or time.monotonic() > deadline:
                    raise
            else:
                return part
        part.close(0.0)


@final
class ControllerSeat:
    """This host's place in the controller's job, whose switch may be gone or silent for `absent` seconds.

    Raises:
        CollectiveError: kind ``system``: the controller refuses or does not answer; ``argument``: the job is of
            another kind or size.
    """

    def __init__(self, access: ControllerAccess, *, size: int, timeout: float, absent: float = ABSENT) -> None:
        self.name = access.job
        self.host = access.host
        self._absent = absent
        self._timeout = timeout
        self._member = join(access, size, timeout)
        self.address = self._member.description.local[0]
        self._left = threading.Event()

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`. Waits until every member is there, in the same generations."""
        try:
            return settled(
                self._member,
                lambda description: Communicator.of_description(
                    description, timeout=timeout, scaling=scaling, absent=self._absent
                ),
                self._timeout,
            )
        except MembershipError as error:
            raise unavailable(error) from None

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `Seat`."""
        watch_membership(self._member, self._left, lost)

    def leave(self) -> None:
        """See `Seat`."""
        if not self._left.is_set():
            self._left.set()
            self._member.leave()

    def part(self, agreement: Agreement) -> PartSeat | None:
        """See `Seat`: the controller makes a job of these workers."""
        workers = agreement.of_all("workers", self._member.description.wid)
        try:
            (part,) = self._member.split(0, agreement.rank, among=workers, timeout=self._timeout)
            failure = ""
        except MembershipError as error:
            part, failure = None, str(error)
        failures = [said for said in agreement.of_all("splits", failure) if said]
        if failures:
            _LOG.warning("a group of workers %s goes by gloo: %s", sorted(workers), failures[0])
        if part is None or failures:
            return None
        return PartSeat(self, self._member, part, self._absent)


@final
class PartSeat:
    """A place in a job that the controller made for some of the workers; it ends with the job of all.

    Args:
        whole: the place in the job of all.
        member: of the job.
        part: what this host needs.
        absent: seconds for which the part's switch may be gone or silent.
    """

    def __init__(self, whole: ControllerSeat, member: Membership, part: Description, absent: float) -> None:
        self.name = f"{whole.name}/{part.label}"
        self.host = whole.host
        self.address = part.local[0]
        self._whole = whole
        self._member = member
        self._part = part
        self._absent = absent
        self._left = threading.Event()

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`."""
        ranks = Communicator.of_description(self._part, timeout=timeout, scaling=scaling, absent=self._absent)
        self._member.follow(ranks)
        return ranks

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `Seat`."""
        watch_membership(self._member, self._left, lost)

    def leave(self) -> None:
        """See `Seat`."""
        self._left.set()

    def part(self, agreement: Agreement) -> PartSeat | None:
        """See `Seat`."""
        return self._whole.part(agreement)


def watch_membership(member: Membership, left: threading.Event, lost: Callable[[Loss], None]) -> None:
    """Call `lost`, from a thread, when the generations that `member` works in are replaced; until `left` is set."""

    def listen() -> None:
        try:
            while not left.is_set():
                if member.superseded(_POLL_SECONDS):
                    cause = member.cause or "the controller has replaced the generations of the job"
                    lost(Loss(cause, hosts=member.lost))
                    return
        except MembershipError as error:
            if not left.is_set():
                lost(Loss(str(error)))

    threading.Thread(target=listen, name="catchment-peers", daemon=True).start()


def unavailable(error: MembershipError) -> CollectiveError:
    """The error of a controller that refuses or does not answer."""
    return CollectiveError(str(error), kind="system", hint="see `catchment doctor`")
