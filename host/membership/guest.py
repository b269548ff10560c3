"""Other processes of a member's host, which act in the member's name while it lives."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import grpc

from catchment.host.membership.credentials import Credentials
from catchment.host.membership.description import Description
from catchment.host.membership.errors import MembershipError
from catchment.host.membership.given import seconds_of
from catchment.wire.generated import controller_pb2 as pb
from catchment.wire.generated import controller_pb2_grpc as pb_grpc

_CALL_SECONDS = 5.0


@final
@dataclass(frozen=True, slots=True)
class Guest:
    """A process on the host of a member: one of several ranks there, of which the first has joined for all.

    Attributes:
        controller: address of its service.
        credentials: of the host.
        session: of the member, which tells it to the processes of its host.
        job: name of the job.
        epoch: that the member works in.
    """

    controller: str
    credentials: Credentials
    session: str
    job: str
    epoch: int

    def split(
        self, number: int, color: int | None, key: int = 0, *, among: Sequence[int], timeout: float
    ) -> tuple[Description, ...]:
        """Divide the job as `Membership.split` does.

        Args:
            number: of the split among these workers, from 0; the same on all of them, and another for each split.
            color: of the job that this worker is to be in; None for none.
            key: orders the workers of a color.
            among: indices of the workers that call.
            timeout: seconds to wait for the other workers.

        Raises:
            MembershipError: as `Membership.split`, or the member has ended.
        """
        patience = seconds_of("a timeout of", timeout)
        try:
            request = pb.SplitRequest(
                session=self.session,
                epoch=self.epoch,
                number=number,
                color=color,
                key=key,
                timeout=patience,
                among=sorted(set(among)),
            )
        except (TypeError, ValueError) as error:
            wanted = f"number {number!r}, color {color!r}, key {key!r}, among {among!r}"
            raise MembershipError(f"cannot split job {self.job} by {wanted}: {error}") from None
        with self._stub() as stub:
            try:
                reply = stub.Split(request, timeout=patience + _CALL_SECONDS, wait_for_ready=True)
            except grpc.RpcError as error:
                raise MembershipError(f"cannot split job {self.job}: {error.code().name}: {error.details()}") from None
        parts = Description.of(reply.description, self.epoch).parts
        return tuple(parts[label] for label in reply.parts)

    def give_up(self, cause: str) -> None:
        """Tell the controller that the member's host cannot go on; nothing happens if it knows of the loss already.

        Args:
            cause: what the host has lost, in words.
        """
        request = pb.GiveUpRequest(session=self.session, cause=cause)
        with self._stub() as stub, contextlib.suppress(grpc.RpcError):
            stub.GiveUp(request, timeout=_CALL_SECONDS, wait_for_ready=True)

    @contextlib.contextmanager
    def _stub(self) -> Iterator[Any]:
        with self.credentials.channel(self.controller) as channel:
            yield pb_grpc.ControllerStub(channel)
