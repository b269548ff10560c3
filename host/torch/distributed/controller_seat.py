"""A place in a job that the controller keeps (catchment.host.membership)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, final

from catchment.host.collectives import ABSENT, CollectiveError, Communicator, Scaling
from catchment.host.membership import Credentials, Membership, MembershipError
from catchment.host.torch.distributed.seat import Loss
from catchment.host.torch.distributed.settings import ControllerAccess

_POLL_SECONDS: Final = 0.5


@final
class ControllerSeat:
    """This host's place in the controller's job, whose switch may be gone or silent for `absent` seconds.

    Raises:
        CollectiveError: kind ``system``: the controller refuses or does not answer; ``argument``: the job is of
            another kind or size.
    """

    def __init__(self, access: ControllerAccess, *, size: int, timeout: float, absent: float = ABSENT) -> None:
        self.name = access.job
        self._absent = absent
        self._timeout = timeout
        try:
            self._member = Membership.join(
                controller=access.address,
                job=access.job,
                host=access.host,
                token=access.token,
                credentials=Credentials.of(access.certificates, access.host),
                timeout=timeout,
            )
        except MembershipError as error:
            raise _unavailable(error) from None
        description = self._member.description
        if description.role != "peer" or any(stream.workers != size for stream in description.streams.values()):
            self._member.leave()
            workers = max(stream.workers for stream in description.streams.values())
            raise CollectiveError(
                f"job {description.job} is of kind {description.kind} with {workers} workers, the group has {size}",
                kind="argument",
                hint=f"create it with --kind allreduce and {size} workers",
            )
        self.address = description.local[0]
        self._left = threading.Event()

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`. Waits until every member is there, in the same generations."""
        deadline = time.monotonic() + self._timeout
        try:
            while True:
                communicator = self._member.take(
                    lambda description: Communicator.of_description(
                        description, timeout=timeout, scaling=scaling, absent=self._absent
                    )
                )
                while not self._member.superseded():
                    try:
                        self._member.wait_complete(_POLL_SECONDS)
                    except MembershipError:
                        if self._member.error is not None or time.monotonic() > deadline:
                            raise
                    else:
                        return communicator
                communicator.close(0.0)
        except MembershipError as error:
            self._member.leave()
            raise _unavailable(error) from None

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `Seat`."""
        threading.Thread(target=self._listen, args=(lost,), name="catchment-peers", daemon=True).start()

    def leave(self) -> None:
        """See `Seat`."""
        if not self._left.is_set():
            self._left.set()
            self._member.leave()

    def _listen(self, lost: Callable[[Loss], None]) -> None:
        try:
            while not self._left.is_set():
                if self._member.superseded(_POLL_SECONDS):
                    lost(Loss(self._member.cause or "the controller has replaced the generations of the job"))
                    return
        except MembershipError as error:
            lost(Loss(str(error)))


def _unavailable(error: MembershipError) -> CollectiveError:
    return CollectiveError(str(error), kind="system", hint="see `catchment doctor`")
