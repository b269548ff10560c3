"""What an operator asks a controller, from a command or a program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from catchment.controlplane.client.aside import CLOSE_SECONDS, Aside, within
from catchment.controlplane.controller.addressee import addressed_to
from catchment.controlplane.controller.certificates import load
from catchment.controlplane.controller.errors import ControllerError, RefusedError
from catchment.controlplane.controller.presence import Presence
from catchment.controlplane.jobs import JobRequest
from catchment.wire.generated import controller_pb2 as pb
from catchment.wire.generated import controller_pb2_grpc as pb_grpc
from catchment.wire.service import CONTROLLER_NAME, OPERATOR_NAME


class OperatorClient:
    """A connection to a controller; a context manager.

    Args:
        address: of its service: host:port or unix:PATH.
        certificates: folder with the operator's credentials.
        timeout: seconds for each request.
        topology: name of the topology that requests are about: a controller of another refuses them; empty: whichever
            it has.
    """

    def __init__(self, address: str, certificates: Path, *, timeout: float = 10.0, topology: str = "") -> None:
        own = load(certificates, OPERATOR_NAME)
        credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)
        # Whatever its address: what it proves is that it is the controller.
        options = (("grpc.ssl_target_name_override", CONTROLLER_NAME), ("grpc.default_authority", CONTROLLER_NAME))
        self._address = address
        self._timeout = timeout
        self._metadata = addressed_to(topology)
        self._aside = Aside()
        self._channel = grpc.secure_channel(address, credentials, options)
        self._stub = pb_grpc.ControllerStub(self._channel)

    @classmethod
    def to(cls, presence: Presence, *, timeout: float = 10.0) -> Self:
        """A connection to a controller that runs on this machine."""
        return cls(presence.addresses[0], Path(presence.certificates), timeout=timeout, topology=presence.topology)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        within(CLOSE_SECONDS, self._channel.close)

    def create(self, request: JobRequest) -> Any:
        """Make a job; returns a CreateJobReply with the job and its token."""
        message = pb.CreateJobRequest(
            name=request.name, kind=request.kind, workers=request.workers, root=request.root or "", slots=request.slots,
            rail=request.rail or "", streams=request.streams, rails=request.rails, roots=request.roots,
            grid=[pb.GridLevel(name=name, size=size) for name, size in request.grid], packed=request.packed,
            tags=request.tags,
        )  # fmt: skip
        return self._call(self._stub.CreateJob, message)

    def remove(self, job: str) -> None:
        """Take a job off its switches."""
        self._call(self._stub.RemoveJob, pb.JobName(job=job))

    def renew_token(self, job: str, *, revoke: bool = False) -> str:
        """Give a job's members another token (none with `revoke`); returns it."""
        return str(self._call(self._stub.RenewToken, pb.TokenRequest(job=job, revoke=revoke)).token)

    def job(self, name: str) -> Any:
        """A job, with its members."""
        return self._call(self._stub.ShowJob, pb.JobName(job=name))

    def jobs(self) -> list[Any]:
        """Every job."""
        return list(self._call(self._stub.ListJobs, pb.Empty()).jobs)

    def switches(self) -> list[Any]:
        """Every switch."""
        return list(self._call(self._stub.ShowSwitches, pb.Empty()).switches)

    def keep(self, switch: str) -> None:
        """Have what people put on a switch restored when it restarts: as it is now."""
        self._call(self._stub.KeepSwitch, pb.SwitchName(switch=switch))

    def _call(self, method: Callable[..., Any], message: Any) -> Any:
        try:
            return self._aside(method, message, timeout=self._timeout, metadata=self._metadata)
        except ValueError as error:
            raise ControllerError(f"not a request: {error}") from None
        except grpc.RpcError as error:
            code, said = error.code(), error.details()
            if code is grpc.StatusCode.PERMISSION_DENIED:
                raise RefusedError(said) from None
            if code is grpc.StatusCode.FAILED_PRECONDITION:
                raise ControllerError(said) from None
            raise ControllerError(
                f"the controller at {self._address} does not answer ({code.name}: {said}); is it running, and are the "
                "certificates of its authority?"
            ) from None
