"""Exchanges of a client with its switch: which calls it makes, in which order, and what it makes of the answers.

An exchange is a generator without any input or output of its own. It yields a call, and gets its answer back; a call
that fails is raised in it as a `grpc.RpcError`. `SwitchClient` carries exchanges out with calls that block,
`AsyncSwitchClient` with calls that are awaited, so that both clients do the same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import grpc

from catchment.controlplane.client.election import Candidate
from catchment.controlplane.client.entity import Update
from catchment.controlplane.client.errors import SwitchError, from_rpc, from_write
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.requests import Batch, batches, write_request
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.wire.generated import p4runtime_pb2

_T = TypeVar("_T")
_NO_GROUPS = (
    grpc.StatusCode.FAILED_PRECONDITION,  # no pipeline yet
    grpc.StatusCode.UNIMPLEMENTED,  # BMv2 has no read of clone sessions
    grpc.StatusCode.NOT_FOUND,
)
_PIPELINE_SECONDS = 60.0
_TAKE_OVERS = 12
"""How often a call takes the switch back from clients that want it at the same moment."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.25
"""Seconds that a client leaves the switch to others, at most, before it takes it back for the second time and later."""
_NOT_YET = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
"""What a call ends with whose switch is not there, or went before it answered."""
_REACH_PAUSE = 0.02
"""Seconds until a switch that is not there yet is asked again."""
_GET = p4runtime_pb2.GetForwardingPipelineConfigRequest


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the switch.

    Attributes:
        method: of the service. The answer of `Read` is the list of all entities; that of the others the reply.
        request: the message; serialized for `Write`.
        seconds: the least deadline of the call, where the client's own is shorter.
    """

    method: Literal["Write", "Read", "GetForwardingPipelineConfig", "SetForwardingPipelineConfig"]
    request: Any
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Become the primary again: another client has taken the switch over since."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reach:
    """Ask what the switch can do as soon as a connection to it stands, within so many seconds."""

    seconds: float


Step = Call | TakeOver | Pause | Reach
Exchange = Generator[Step, Any, _T]


def reach(where: str, seconds: float) -> Exchange[None]:
    """Wait until a switch answers, whatever it answers; one that ends the connection before is asked again.

    A call tells, not gRPC's watch of the channel: the watch may lose its last event, and closing the channel then waits
    for that event for ever; without a loss it waits for 0.2 s.

    Args:
        where: the switch in words, for messages.
        seconds: how long to wait.

    Raises:
        SwitchError: nothing answers in time.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            yield Reach(left)
        except grpc.RpcError as error:
            if error.code() in _NOT_YET:
                yield Pause(min(left, _REACH_PAUSE))
                continue
        return
    raise SwitchError(
        f"{where}: no P4Runtime server answers within {seconds:g} s; start the switch (`catchment net up` or "
        "`catchment switch run`) or correct its grpc address in the topology",
        code="UNAVAILABLE",
    )


@dataclass(slots=True)
class Exchanges:
    """The exchanges of one client.

    Attributes:
        where: the switch in words, for messages.
        candidate: the client's part in the election of a primary.
        read_only: the client takes no switch over, and so writes nothing.
        info: the P4Info of the program, once it is known.
    """

    where: str
    candidate: Candidate
    read_only: bool = False
    info: P4Info | None = field(default=None)

    @property
    def device_id(self) -> int:
        """P4Runtime device id."""
        return self.candidate.device_id

    def p4info(self) -> Exchange[P4Info]:
        """The P4Info of the program; asked from the switch where it is not known.

        Raises:
            SwitchError: the switch does not answer, or has no program.
        """
        if self.info is None:
            request = _GET(device_id=self.device_id, response_type=_GET.P4INFO_AND_COOKIE)
            try:
                reply = yield Call("GetForwardingPipelineConfig", request)
            except grpc.RpcError as error:
                raise from_rpc(self.where, "reading its P4Info", error) from None
            message = reply.config.p4info
            if not message.tables and not message.pkg_info.name:
                raise SwitchError(f"{self.where} has no program yet; push a pipeline first")
            self.info = P4Info(message, self.where)
        return self.info

    def cookie(self) -> Exchange[int | None]:
        """The cookie of the program that the switch runs; None when it has no program.

        Raises:
            SwitchError: the switch does not answer.
        """
        request = _GET(device_id=self.device_id, response_type=_GET.COOKIE_ONLY)
        try:
            reply = yield Call("GetForwardingPipelineConfig", request)
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND):
                return None
            raise from_rpc(self.where, "reading which program it runs", error) from None
        return int(reply.config.cookie.cookie) or None

    def runs(self, config: PipelineConfig) -> Exchange[bool]:
        """Whether the switch runs this very program, as far as it was loaded by `push`; errors as `cookie`."""
        return (yield from self.cookie()) == config.cookie()

    def push(self, config: PipelineConfig) -> Exchange[None]:
        """Replace the program of the switch; tables, groups and registers start empty.

        BMv2 keeps its replication engine over a new pipeline (every packet would then be copied twice),
        so groups and clone sessions are removed first.

        Raises:
            SwitchError: a file is missing, or the switch refuses the program.
        """
        self._require_writable()
        info = _loaded(config.p4info, config.p4info.stat().st_mtime_ns if config.p4info.exists() else 0)
        if not config.device_config.is_file():
            raise SwitchError(f"no compiled program at {config.device_config}; run `catchment p4 compile` first")
        yield from self._clear_replication()
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            action=p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        )
        request.config.p4info.CopyFrom(info.message)
        request.config.p4_device_config = config.device_config.read_bytes()
        request.config.cookie.cookie = config.cookie()
        try:
            yield from self._as_primary(lambda: self._setting(request))
        except grpc.RpcError as error:
            raise from_rpc(self.where, f"loading {config.device_config.name}", error) from None
        self.info = info

    def write(self, updates: Sequence[Update]) -> Exchange[None]:
        """Make changes in their order; all are checked against the program before the first is sent.

        Raises:
            SwitchError: a name or value that the program does not have, or, in `failures`, each update that the switch
                refuses (the others stay).
        """
        self._require_writable()
        for batch in list(batches(updates, (yield from self.p4info()))):
            yield from self._write(batch)

    def _write(self, batch: Batch) -> Exchange[None]:
        try:
            yield from self._as_primary(lambda: self._writing(batch.serialized))
        except grpc.RpcError as error:
            raise from_write(self.where, batch.words(), error) from None

    def _require_writable(self) -> None:
        if self.read_only:
            raise SwitchError(f"{self.where} was opened for reading; connect without read_only")

    def _setting(self, request: Any) -> Call:
        request.election_id.high, request.election_id.low = self.candidate.election_id
        return Call("SetForwardingPipelineConfig", request, _PIPELINE_SECONDS)

    def _writing(self, updates: bytes) -> Call:
        return Call("Write", write_request(self.device_id, self.candidate.election_id, updates))

    @staticmethod
    def _as_primary(call: Callable[[], Call]) -> Exchange[None]:
        """Make a call, with the election id of that moment.

        Another controller (a person's shell, say) may have been here since: the newest client wins. Two that write at
        the same time would take the switch from each other before either has written, so each waits at random.
        """
        for attempt in range(_TAKE_OVERS):
            try:
                yield call()
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.PERMISSION_DENIED:
                    raise
                if attempt:
                    yield Pause(random.uniform(0.0, min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE)))
                yield TakeOver()
            else:
                return
        yield call()

    def _clear_replication(self) -> Exchange[None]:
        """Delete every multicast group and clone session; a switch without a pipeline has none."""
        updates = []
        for kind in ("multicast_group_entry", "clone_session_entry"):
            request = p4runtime_pb2.ReadRequest(device_id=self.device_id)
            getattr(request.entities.add().packet_replication_engine_entry, kind).SetInParent()
            try:
                found = yield Call("Read", request)
            except grpc.RpcError as error:
                if error.code() not in _NO_GROUPS:
                    raise from_rpc(self.where, "reading the replication engine", error) from None
            else:
                delete = p4runtime_pb2.Update.DELETE
                updates += [p4runtime_pb2.Update(type=delete, entity=entity) for entity in found]
        if not updates:
            return
        serialized = p4runtime_pb2.WriteRequest(updates=updates).SerializeToString()
        try:
            yield from self._as_primary(lambda: self._writing(serialized))
        except grpc.RpcError as error:
            raise from_rpc(self.where, "clearing the replication engine", error) from None


@lru_cache(maxsize=16)
def _loaded(path: Path, _modified: int) -> P4Info:
    """Reading P4Info takes longer than loading the program: a switch that restarts gets it from here."""
    return P4Info.load(path)
