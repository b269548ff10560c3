"""What the controller tells a host about its part in a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Self

from catchment.host.membership.endpoints import Endpoints
from catchment.host.membership.errors import MembershipError
from catchment.host.transport.addresses import Address
from catchment.host.transport.all_reducer import AllReducer
from catchment.host.transport.endpoint import Endpoint
from catchment.host.transport.stream import Stream

_SLOTS = "slots"


@dataclass(frozen=True, slots=True)
class Description:
    """A host's part in one epoch of a job.

    Attributes:
        job: name of the job.
        kind: luwu, allreduce or slots.
        host: this host's name.
        role: worker, root, peer or slots.
        wid: its worker index.
        local: address to bind.
        switch: address of its switch.
        streams: by name: gradients and parameters, or sums.
        epoch: how often the generations were replaced, from 1.
        port: "shm:PATH" where the switch shares memory with this host, if both are on one machine; else empty.
        rail: that it runs on; empty in a topology without rails.
        label: of this job in the group that it belongs to; empty for a job by itself.
        parts: label -> this host's part in each job of a group that it is in. The attributes above are then of the job
            of all workers; a group without such a job has an empty role, and no streams.
        rate: bits per second of the host's NIC for this job, in each direction; 0 where nothing limits it.
        switch_name: of its switch, for messages.
    """

    job: str
    kind: str
    host: str
    role: str
    wid: int
    local: Address
    switch: Address
    streams: Mapping[str, Stream]
    epoch: int
    port: str = ""
    rail: str = ""
    label: str = ""
    parts: Mapping[str, Self] = field(default_factory=dict)
    rate: int = 0
    switch_name: str = ""

    @classmethod
    def of(cls, message: Any, epoch: int) -> Self:
        """Read a message of wire/controller.proto."""
        streams = {
            s.name: Stream(
                gen=s.gen,
                workers=s.workers,
                slots=s.slots,
                base_seq=s.base_seq,
                lanes=s.lanes,
                param_bytes=s.param_bytes,
                packed=s.packed,
                key=s.key,
                term_bits=s.term_bits,
            )
            for s in message.streams
        }
        local, switch = ((a.ip, a.port) for a in (message.local, message.switch))
        return cls(
            message.job, message.kind, message.host, message.role, message.wid,
            local, switch, streams, epoch, message.port, message.rail, message.part,
            {inner.part: cls.of(inner, epoch) for inner in message.parts}, message.rate, message.switch_name,
        )  # fmt: skip

    def as_member(self) -> dict[str, Any]:
        """The same of this part alone as a job file has it: what `Communicator.of_job` takes."""
        optional = {"rail": self.rail, "rate": self.rate, "switch_name": self.switch_name, "port": self.port}
        return {
            "job": self.job,
            "kind": self.kind,
            "host": self.host,
            "role": self.role,
            "wid": self.wid,
            "local": list(self.local),
            "switch": list(self.switch),
            **{key: value for key, value in optional.items() if value},
            # Whoever takes the place by these words has no membership to ask for keys with.
            **{name: asdict(replace(stream, term_bits=0)) for name, stream in self.streams.items()},
        }

    def open_reducer(self, *, timeout: float, window: int | None = None, **options: Any) -> AllReducer:
        """An all-reducer for this part of a job on p4sgd.p4; further arguments and errors as `AllReducer`.

        Raises:
            MembershipError: this job has endpoints.
        """
        if self.role != _SLOTS:
            raise MembershipError(f"{self.host} has the role {self.role!r} in job {self.job}: make an `endpoint`")
        (stream,) = self.streams.values()
        return AllReducer(
            stream=stream, wid=self.wid, local=self.local, switch=self.switch, timeout=timeout, window=window, **options
        )

    def open_all(self, *, timeout: float, window: int | None = None) -> Endpoints:
        """An endpoint for each job of the group that this host is in, or for the job by itself (its label is empty).

        Raises:
            MembershipError: as `open`. EndpointError: one cannot be made; none stays open.
        """
        parts: Mapping[str, Description] = self.parts or {self.label: self}
        return Endpoints({label: partial(part.open, timeout=timeout, window=window) for label, part in parts.items()})

    def open(self, *, timeout: float, window: int | None = None) -> Endpoint:
        """An endpoint for this part; arguments and errors as `Endpoint.worker`.

        Raises:
            MembershipError: a role that has no endpoint, or that this program does not know.
        """
        match self.role:
            case "":
                raise MembershipError(
                    f"job {self.job} is a group without a job of all workers; take one of its parts: "
                    f"{', '.join(self.parts)}"
                )
            case "slots":
                raise MembershipError(f"job {self.job} is of kind slots: make a `reducer` on {self.host}")
            case "peer":
                (stream,) = self.streams.values()
                return Endpoint.peer(
                    stream=stream, wid=self.wid, local=self.local, switch=self.switch, timeout=timeout, window=window
                )
            case "worker":
                return Endpoint.worker(
                    gradients=self.streams.get("gradients"),
                    parameters=self.streams.get("parameters"),
                    wid=self.wid,
                    local=self.local,
                    switch=self.switch,
                    timeout=timeout,
                    window=window,
                )
            case "root":
                return Endpoint.root(
                    gradients=self.streams.get("gradients"),
                    parameters=self.streams.get("parameters"),
                    local=self.local,
                    switch=self.switch,
                    timeout=timeout,
                    window=window,
                )
        raise MembershipError(f"the controller gives {self.host} the role {self.role!r}, which this host does not know")
