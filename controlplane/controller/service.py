"""The gRPC service: checks each caller and request and hands it to the controller. Nothing in a request is trusted."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import grpc

from catchment.controlplane.controller import messages
from catchment.controlplane.controller.addressee import require_topology
from catchment.controlplane.controller.core import Controller
from catchment.controlplane.controller.door import Door
from catchment.controlplane.controller.errors import ControllerError, RefusedError
from catchment.controlplane.controller.identity import require_host, require_operator
from catchment.controlplane.controller.members import Members
from catchment.controlplane.controller.roster import Presence
from catchment.controlplane.controller.trust import Trust
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import Choice, JobRequest, SplitCall
from catchment.controlplane.jobs.kind import kind_of
from catchment.wire.generated import controller_pb2 as pb
from catchment.wire.generated import controller_pb2_grpc as pb_grpc
from catchment.wire.socket_folder import socket_folder

_log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 1 << 18
_MAX_CALLS = 4096
_MAX_TEXT = 256
_DEEDS = frozenset(
    {"CreateJob", "RemoveJob", "RenewToken", "KeepSwitch", "Join", "Split", "Leave", "GiveUp", "RenewKeys"}
)
_MAX_STALLS = 16
_MAX_TERMS = 256
_MAX_SPLITS = 256
_MAX_WAIT_SECONDS = 600.0
_FIRST_BEAT_SECONDS = 5.0
_GRACE_SECONDS = 0.2
_PROBE_SECONDS = 2.0
_NOBODY = (errno.ENOENT, errno.ECONNREFUSED)
_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 500),
)

Method = Callable[[Any, Any, Any], Awaitable[Any]]


def _answers(method: Method) -> Method:
    """What goes wrong becomes a gRPC status with our message; a bug of ours becomes one without."""

    @wraps(method)
    async def answer(self: Any, request: Any, context: Any) -> Any:
        self.peer(context)
        try:
            self.trust.check(context)
            reply = await method(self, request, context)
            self.note(method.__name__, request, context)
            return reply
        except RefusedError as error:
            _log.warning("%s refused: %s", method.__name__, error)
            self.note(method.__name__, request, context, f"refused: {error}")
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
        except ControlPlaneError as error:
            self.note(method.__name__, request, context, str(error))
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except asyncio.CancelledError:
            if method.__name__ in _DEEDS:  # what is under way by then goes on
                self.note(method.__name__, request, context, "its client left before it was done")
            raise
        except grpc.aio.AbortError:
            raise
        except Exception:
            _log.exception("%s failed", method.__name__)
            await context.abort(grpc.StatusCode.INTERNAL, "the controller failed; see its log")

    return answer


def _short(text: str, what: str) -> str:
    if len(text) > _MAX_TEXT:
        raise ControllerError(f"{what} is {len(text)} characters long; {_MAX_TEXT} are allowed")
    if not text.isprintable():
        raise ControllerError(f"{what} has characters that cannot be printed")
    return text


def _words(text: str, what: str) -> str:
    """What a member says, for logs and terminals: without lines, or orders to a terminal, of its own."""
    return _short("".join(letter if letter.isprintable() else " " for letter in text), what)


def _names(names: Iterable[str], what: str) -> tuple[str, ...]:
    return tuple(_short(name, what) for name in names)


class Service(pb_grpc.ControllerServicer):  # type: ignore[misc]
    """One method per call of wire/controller.proto."""

    def __init__(self, controller: Controller, members: Members, trust: Trust) -> None:
        self._controller = controller
        self._members = members
        self.trust = trust
        self.door: Door | None = None

    def peer(self, context: Any) -> str:
        """The address of a caller, whose connection has made a request with that."""
        seen: str = context.peer()
        return seen if self.door is None else self.door.peer(seen)

    def note(self, method: str, request: Any, context: Any, outcome: str = "ok") -> None:
        """Put a request into the audit log: those that change something, and whatever was refused."""
        if outcome == "ok" and (method not in _DEEDS or bool(getattr(request, "terms", False))):
            return
        told = [getattr(request, name, "") for name in ("name", "job", "host", "switch")]
        subject = " ".join(text[:_MAX_TEXT] for text in told if text)
        self._controller.audit.note(self.trust.peer(context), method, subject, outcome, peer=self.peer(context))

    def _require_operator(self, context: Any) -> None:
        require_operator(context)
        require_topology(context, self._controller.topology.name)

    # Operators

    @_answers
    async def CreateJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._require_operator(context)
        kind = kind_of(_short(request.kind, "the kind")).name
        asked = JobRequest(
            _short(request.name, "the name"), kind, tuple(request.workers), request.root or None, request.slots,
            _short(request.rail, "the rail") or None, streams=_names(request.streams, "a stream"),
            rails=_names(request.rails, "a rail"), roots=_names(request.roots, "a root"),
            grid=tuple((_short(level.name, "a name of the grid"), level.size) for level in request.grid),
            packed=request.packed, tags=request.tags,
        )  # fmt: skip
        watch, token = await self._controller.create(asked)
        return pb.CreateJobReply(job=messages.job(watch), token=token)

    @_answers
    async def RemoveJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._require_operator(context)
        await self._controller.remove(_short(request.job, "the name"))
        return pb.Empty()

    @_answers
    async def RenewToken(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._require_operator(context)
        name = _short(request.job, "the name")
        return pb.TokenReply(token=await self._controller.renew_token(name, revoke=request.revoke))

    @_answers
    async def ListJobs(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._require_operator(context)
        return pb.JobList(jobs=[messages.job(watch) for watch in self._controller.jobs.values()])

    @_answers
    async def ShowJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._require_operator(context)
        return messages.job(self._controller.job(_short(request.job, "the name")))

    @_answers
    async def ShowSwitches(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._require_operator(context)
        return pb.SwitchList(switches=[messages.switch(agent) for agent in self._controller.switches.values()])

    @_answers
    async def KeepSwitch(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._require_operator(context)
        await self._controller.keep(_short(request.switch, "the switch"))
        return pb.Empty()

    # Members

    @_answers
    async def Join(self, request: Any, context: Any) -> Any:  # noqa: N802
        require_host(context, _short(request.host, "the host"))
        joined = await self._members.join(
            _short(request.job, "the job"), request.host, _short(request.token, "the token")
        )
        record = joined.watch.record
        return pb.JoinReply(
            session=joined.session,
            epoch=record.epoch,
            description=messages.description(record.group, request.host),
            interval=self._controller.settings.timing.beat,
        )

    async def Heartbeat(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:  # noqa: N802
        try:
            async with asyncio.timeout(_FIRST_BEAT_SECONDS):
                first = await anext(requests)
            self.peer(context)
            self.trust.check(context)
            watch, seat = self._members.find(_short(first.session, "the session"))
            require_host(context, seat.host)
        except (TimeoutError, StopAsyncIteration):
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "no beat came")
            return
        except ControlPlaneError as error:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
            return
        session = seat.session
        known = first.epoch
        self._members.beat(watch, seat, first.epoch)

        async def listen() -> None:
            nonlocal known
            with contextlib.suppress(
                grpc.aio.BaseError, RefusedError
            ):  # how a member ends that vanishes, or is refused
                async for beat in requests:
                    self.trust.check(context)
                    known = max(known, beat.epoch)
                    if seat.session == session:
                        self._members.beat(watch, seat, beat.epoch)

        listening = asyncio.create_task(listen())
        news: asyncio.Task[Any] = listening
        sent = None
        try:
            while not listening.done():
                news = asyncio.create_task(watch.news(sent))
                await asyncio.wait((news, listening), return_when=asyncio.FIRST_COMPLETED)
                if not news.done():
                    news.cancel()
                    break
                sent = news.result()
                if seat.session != session or seat.presence is not Presence.JOINED:
                    # It must not learn the new generations: it has missed what happened.
                    await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"{seat.host} was given up for lost")
                if sent.epoch >= known:  # else it knows more than was stored, and gets new generations in a moment
                    yield messages.notice(sent, seat.host)
                if sent.removed:
                    break
        finally:
            for task in (listening, news):
                task.cancel()
            if seat.session == session:
                self._members.detach(watch, seat)

    @_answers
    async def Report(self, request: Any, context: Any) -> Any:  # noqa: N802
        watch, seat = self._members.find(_short(request.session, "the session"))
        require_host(context, seat.host)
        stalls = [
            f"{_words(s.stream, 'a stream')} at {s.seq} for {s.seconds:.1f} s ({_words(s.cause, 'a cause')})"
            for s in request.stalls[:_MAX_STALLS]
        ]
        verdict = await self._members.report(watch, seat, stalls)
        return pb.ReportReply(missing=verdict.missing, trouble=verdict.text)

    @_answers
    async def Split(self, request: Any, context: Any) -> Any:  # noqa: N802
        watch, seat = self._members.find(_short(request.session, "the session"))
        require_host(context, seat.host)
        if not 0 <= request.number < _MAX_SPLITS:
            raise ControllerError(
                f"split {request.number}: a job may be split {_MAX_SPLITS} times among the same workers"
            )
        if not 0 < request.timeout <= _MAX_WAIT_SECONDS:
            raise ControllerError(f"a timeout of {request.timeout:g} s: give up to {_MAX_WAIT_SECONDS:g}")
        call = SplitCall(request.number, tuple(request.among))
        choice = Choice(request.color if request.HasField("color") else None, request.key)
        record = await self._members.split(watch, seat, choice, epoch=request.epoch, call=call, timeout=request.timeout)
        return messages.split_reply(record.group, seat.host, call)

    @_answers
    async def Leave(self, request: Any, context: Any) -> Any:  # noqa: N802
        watch, seat = self._members.find(_short(request.session, "the session"))
        require_host(context, seat.host)
        await self._members.leave(watch, seat)
        return pb.Empty()

    @_answers
    async def GiveUp(self, request: Any, context: Any) -> Any:  # noqa: N802
        watch, seat = self._members.find(_short(request.session, "the session"))
        require_host(context, seat.host)
        await self._members.give_up(watch, seat, _words(request.cause, "the cause"))
        return pb.Empty()

    @_answers
    async def RenewKeys(self, request: Any, context: Any) -> Any:  # noqa: N802
        watch, seat = self._members.find(_short(request.session, "the session"))
        require_host(context, seat.host)
        if request.terms:
            terms = [(each.gen, each.term) for each in request.terms[:_MAX_TERMS]]
            await self._members.come_to(watch, seat, request.epoch, terms)
        else:
            await self._members.renew_keys(watch, seat, request.epoch)
        return pb.Empty()


def _is_answered(address: str) -> bool:
    """Whether a process listens on a Unix socket; no file, or one that a killed process left, is answered by none."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_SECONDS)
        return probe.connect_ex(address.removeprefix("unix:")) not in _NOBODY


@contextlib.asynccontextmanager
async def serving(service: Service, listen: tuple[str, ...]) -> AsyncIterator[list[str]]:
    """Have a server that accepts only callers with a certificate of our authority, until the context ends.

    TCP connections come in through `service.door`.

    Yields:
        The addresses it listens on (port 0 is replaced by the port it got).

    Raises:
        ControllerError: an address cannot be listened on.
    """
    server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=_MAX_CALLS)
    pb_grpc.add_ControllerServicer_to_server(service, server)
    async with contextlib.AsyncExitStack() as exits:
        inside = Path(exits.enter_context(socket_folder())) / "controller.sock"
        service.door = Door(str(inside))
        sockets = [each for each in listen if each.startswith("unix:")]
        for address in sockets:
            if await asyncio.to_thread(_is_answered, address):  # gRPC would take it over, and leave its owner deaf
                raise ControllerError(
                    f"cannot listen on {address}: another process does; end it, or give an address of your own with "
                    "--listen"
                )
        for address in (f"unix:{inside}", *sockets):
            try:
                # gRPC reads the first certificate once for each credentials object: every address needs its own.
                server.add_secure_port(address, service.trust.server_credentials())
            except RuntimeError as error:
                raise ControllerError(f"cannot listen on {address}: {error}; is another controller there?") from None
        exits.push_async_callback(service.door.close)
        await server.start()
        exits.push_async_callback(server.stop, _GRACE_SECONDS)
        yield [each if each.startswith("unix:") else await service.door.listen(each) for each in listen]
