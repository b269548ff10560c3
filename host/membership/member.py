"""Membership: heartbeats to the controller in the background, and what it says back."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, final

import grpc

from catchment.host.errors import EndpointError
from catchment.host.membership.credentials import Credentials
from catchment.host.membership.description import Description
from catchment.host.membership.endpoints import Endpoints
from catchment.host.membership.errors import MembershipError
from catchment.host.membership.given import check_texts, seconds_of
from catchment.host.membership.keys import Keyed, Keys
from catchment.host.transport.all_reducer import AllReducer
from catchment.host.transport.endpoint import Endpoint
from catchment.wire.generated import controller_pb2 as pb
from catchment.wire.generated import controller_pb2_grpc as pb_grpc

_RETRY_SECONDS = 0.1
_STALL_CHECK_SECONDS = 0.2
_CALL_SECONDS = 5.0


class _Closable(Protocol):
    """What takes part in a job for a while."""

    def close(self, linger: float) -> None:
        """End it."""


_Port = TypeVar("_Port", bound=_Closable)


@final
class Membership:
    """This host's place in a job; `join` makes one, `with` or `leave` ends it.

    Beats are sent for as long as the process lives. When the controller replaces the job's generations (somebody was
    lost, or came back), the endpoint is closed: what is pending on it fails, `superseded` is true, and `endpoint` makes
    the next one (`reducer` in a job of kind slots). Whoever trains then goes back to the last state that all have. An
    endpoint that has used half of what its keys serve for (`Stream.key_frames`) makes the member ask for such a change.
    Communicators get keys that follow one another (`Stream.term_bits`) and go on meanwhile; those that `take` does not
    make are told of by `follow`.
    """

    def __init__(self, channel: Any, reply: Any) -> None:
        self._channel = channel
        self._stub = pb_grpc.ControllerStub(channel)
        self._session: str = reply.session
        self._interval: float = reply.interval
        self._description = Description.of(reply.description, reply.epoch)
        self._working = 0
        self._asked = 0
        self._keys = Keys()
        self._splits: Counter[tuple[int, ...]] = Counter()
        self._complete = False
        self._trouble = ""
        self._cause = ""
        self._lost: tuple[str, ...] = ()
        self._error: MembershipError | None = None
        self._part: _Closable | None = None
        self._news = threading.Condition()
        self._stop = threading.Event()
        self._beat_now = threading.Event()
        self._call: Any = None
        self._threads = [
            threading.Thread(target=body, name=f"membership-{body.__name__}", daemon=True)
            for body in (self._listen, self._watch)
        ]
        for thread in self._threads:
            thread.start()

    @classmethod
    def join(
        cls, *, controller: str, job: str, host: str, token: str, credentials: Credentials, timeout: float = 10.0
    ) -> Self:
        """Take this host's place in a job.

        Args:
            controller: address of its service, `host:port` or `unix:PATH`.
            job: name of the job.
            host: this host's name in the topology, which `credentials` prove.
            token: of the job.
            credentials: of this host.
            timeout: seconds in which to reach the controller, or for an earlier member of this host to be counted out.

        Raises:
            MembershipError: the controller does not answer, or refuses; or an argument is of another type.
        """
        texts = {"controller": controller, "job": job, "host": host, "token": token}
        check_texts(texts, secret="token")
        if not isinstance(credentials, Credentials):
            raise MembershipError(f"credentials {credentials!r:.80}: give Credentials, as Credentials.of makes them")
        timeout = seconds_of("a timeout of", timeout)
        channel = credentials.channel(controller)
        stub = pb_grpc.ControllerStub(channel)
        request = pb.JoinRequest(job=job, host=host, token=token)
        deadline = time.monotonic() + timeout
        refusal: tuple[grpc.StatusCode, str] | None = None
        while True:
            left = max(0.1, deadline - time.monotonic())
            try:
                return cls(channel, stub.Join(request, timeout=left, wait_for_ready=True))
            except grpc.RpcError as error:
                code, said = error.code(), error.details()
                # An earlier member of this host may not have been noticed as lost yet.
                if code is grpc.StatusCode.FAILED_PRECONDITION:
                    refusal = code, said
                    if time.monotonic() < deadline:
                        time.sleep(_RETRY_SECONDS)
                        continue
                elif code is grpc.StatusCode.DEADLINE_EXCEEDED and refusal is not None:
                    code, said = refusal  # that the last try ran out of time explains nothing
                channel.close()
                raise MembershipError(f"{host} cannot join job {job} at {controller}: {code.name}: {said}") from None

    # What is known

    @property
    def description(self) -> Description:
        """This host's part in the present epoch."""
        return self._description

    @property
    def epoch(self) -> int:
        """How often the generations were replaced, from 1."""
        return self._description.epoch

    @property
    def session(self) -> str:
        """The secret that names this member to the controller, for other processes of its host (`Guest`)."""
        return self._session

    @property
    def trouble(self) -> str:
        """Which members or switches the controller says are missing; empty when all is well."""
        return self._trouble

    @property
    def cause(self) -> str:
        """Why the present epoch took the place of the one before."""
        return self._cause

    @property
    def lost(self) -> tuple[str, ...]:
        """Hosts whose members were lost when the present epoch began; empty where it began for another cause."""
        return self._lost

    @property
    def error(self) -> MembershipError | None:
        """Why this membership has ended, if it has."""
        return self._error

    def superseded(self, timeout: float = 0.0) -> bool:
        """Whether the latest endpoint is of an epoch that is over; waits up to `timeout` seconds for it to be.

        Raises:
            MembershipError: the membership has ended: no endpoint can be made any more.
        """
        return self._await(lambda: self._working not in (0, self._description.epoch), timeout)

    def wait_complete(self, timeout: float) -> None:
        """Wait until every member has made its endpoint of the present epoch.

        Raises:
            MembershipError: they have not in time (says who is missing), or the membership has ended.
        """
        if not self._await(lambda: self._complete, timeout):
            raise MembershipError(
                f"job {self._description.job} is not complete after {timeout:g} s"
                + (f": {self._trouble}" if self._trouble else "")
            )

    def _await(self, ready: Any, timeout: float) -> bool:
        timeout = seconds_of("a timeout of", timeout)
        with self._news:
            self._news.wait_for(lambda: ready() or self._error is not None, timeout)
            if self._error is not None:
                raise self._error
            return bool(ready())

    # What is done

    def endpoint(self, *, timeout: float = 10.0, window: int | None = None) -> Endpoint:
        """An endpoint of the present epoch; the one before is closed. Its stalls are reported to the controller.

        Raises:
            MembershipError: the membership has ended.
            EndpointError: as `Endpoint.worker`.
        """
        return self.take(lambda description: description.open(timeout=timeout, window=window))

    def endpoints(self, *, timeout: float = 10.0, window: int | None = None) -> Endpoints:
        """An endpoint for each job of a group, by label: one for each optimizer node of a training with several.

        Raises:
            MembershipError: the membership has ended.
            EndpointError: as `Endpoint.worker`.
        """
        return self.take(lambda description: description.open_all(timeout=timeout, window=window))

    def reducer(self, *, timeout: float = 10.0, window: int | None = None, **options: Any) -> AllReducer:
        """Make an `AllReducer` of this member in a job of kind slots; further arguments as `AllReducer` (port, spin).

        When the generations change, what is pending on it fails soon after; close it before making the next.

        Raises:
            MembershipError: the membership has ended, or the job is of another kind.
            EndpointError: as `AllReducer`.
        """
        return self.take(lambda description: description.open_reducer(timeout=timeout, window=window, **options))

    def take(self, make: Callable[[Description], _Port]) -> _Port:
        """Attach anything else that takes part: `make` gives what is closed when the generations change.

        Raises:
            MembershipError: the membership has ended.
        """
        with self._news:
            if self._error is not None:
                raise self._error
            if self._part is not None:
                self._part.close(0.0)
            self._part = made = make(self._description)
            self._working = self._description.epoch
        part: object = made
        if isinstance(part, Keyed):
            self._keys.follow(part)
        self._beat_now.set()
        return made

    def follow(self, rank: Keyed) -> None:
        """Ask for the keys of a communicator of this job, or of a part of it, for as long as it lives."""
        self._keys.follow(rank)

    def split(
        self, color: int | None, key: int = 0, *, among: Iterable[int] = (), timeout: float = 10.0
    ) -> tuple[Description, ...]:
        """Divide the job as MPI_Comm_split does: a job for each color, of the workers that gave it.

        Every worker of the job calls, or every one that `among` names (as MPI_Comm_create_group does), as often and in
        the same order as the others since the generations changed. The new jobs belong to this one: they get new
        generations when it does (`superseded`), and are removed with it.

        Args:
            color: of the job that this worker is to be in; None for none.
            key: orders the workers of a color; equal keys keep the order of the ranks.
            among: indices of the workers that call, this one among them; the same on all of them. Every worker unless
                given.
            timeout: seconds to wait for the other workers.

        Returns:
            This host's part in the job of its color: in a group of jobs one for each job of all workers (of each rail
            or optimizer node); none without a color.

        Raises:
            MembershipError: a worker does not call in time (names it), the generations have changed meanwhile, or the
                jobs cannot be made.
        """
        patience = seconds_of("a timeout of", timeout)
        with self._news:
            if self._error is not None:
                raise self._error
            now = self._description
            try:
                workers = tuple(sorted(set(among)))
                request = pb.SplitRequest(
                    session=self._session,
                    epoch=now.epoch,
                    number=self._splits[workers],
                    color=color,
                    key=key,
                    timeout=patience,
                    among=workers,
                )
            except (TypeError, ValueError) as error:
                raise MembershipError(
                    f"cannot split job {now.job} by color {color!r}, key {key!r}, among {among!r}: {error}"
                ) from None
            self._splits[workers] += 1
        try:
            reply = self._stub.Split(request, timeout=patience + _CALL_SECONDS)
        except grpc.RpcError as error:
            raise MembershipError(f"cannot split job {now.job}: {error.code().name}: {error.details()}") from None
        with self._news:
            if self._description.epoch != now.epoch:
                raise MembershipError(f"the generations of job {now.job} changed while it was split: {self._cause}")
            self._description = Description.of(reply.description, now.epoch)
            return tuple(self._description.parts[label] for label in reply.parts)

    @staticmethod
    def _give_up(part: _Closable) -> None:
        """What is pending fails; called in a thread of ours."""
        if isinstance(part, AllReducer):
            part.interrupt()  # only the thread that uses it may close it
        else:
            part.close(0.0)

    def leave(self) -> None:
        """Finish: the controller does not miss this member from here on. May be called twice.

        Waits up to 5 s for a controller that restarts; one that is away for longer takes this member for lost.
        """
        if not self._stop.is_set():
            with contextlib.suppress(grpc.RpcError):
                self._stub.Leave(pb.SessionName(session=self._session), timeout=_CALL_SECONDS, wait_for_ready=True)
        self._end()

    def _end(self) -> None:
        self._stop.set()
        self._beat_now.set()
        if self._call is not None:
            self._call.cancel()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_CALL_SECONDS)
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves at the end of the block; a block that fails is a loss, which the others learn of."""
        if kind is None:
            self.leave()
        else:
            self._end()

    # In the background

    def _beats(self) -> Iterator[Any]:
        while not self._stop.is_set():
            yield pb.Beat(session=self._session, epoch=self._working)
            self._beat_now.wait(self._interval)
            self._beat_now.clear()

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                self._call = self._stub.Heartbeat(self._beats(), wait_for_ready=True)
                for notice in self._call:
                    self._take(notice)
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.PERMISSION_DENIED:
                    self._fail(f"the controller has counted {self._description.host} out: {error.details()}")
                    return
            except Exception as error:  # beats go on without this thread: nobody else would notice
                if not self._stop.is_set():
                    self._fail(f"cannot use what the controller says of job {self._description.job}: {error!r}")
                return
            # A controller that restarts is back in a moment, and knows this session.
            self._stop.wait(_RETRY_SECONDS)

    def _take(self, notice: Any) -> None:
        if notice.removed:
            self._fail(f"job {self._description.job} was removed")
            return
        with self._news:
            changed = notice.epoch != self._description.epoch
            self._complete, self._trouble, self._cause = notice.complete, notice.trouble, notice.cause
            if changed:
                self._lost = tuple(notice.lost)
                self._splits.clear()
                # The last, since any thread reads these: who sees an epoch sees why it began.
                self._description = Description.of(notice.description, notice.epoch)
            part = self._part
            self._news.notify_all()
        self._keys.take(notice.keys)
        if changed and part is not None and self._working != notice.epoch:
            self._give_up(part)

    def _fail(self, text: str) -> None:
        with self._news:
            self._error = MembershipError(text)
            part = self._part
            self._news.notify_all()
        self._stop.set()
        if part is not None:
            self._give_up(part)

    def _watch(self) -> None:
        while not self._stop.wait(_STALL_CHECK_SECONDS):
            epoch, part = self._working, self._part  # in this order: a part is never of an epoch before the one read
            self._ask_for_keys(epoch)
            if not isinstance(part, Endpoint | Endpoints | AllReducer) or epoch != self._description.epoch:
                continue
            with contextlib.suppress(grpc.RpcError, EndpointError):
                if self._asked != epoch and part.wants_keys:
                    request = pb.RenewKeysRequest(session=self._session, epoch=epoch)
                    self._stub.RenewKeys(request, timeout=_CALL_SECONDS)
                    self._asked = epoch
                    continue
                stalls = [
                    pb.Stall(stream=s.stream, seconds=s.seconds, seq=s.seq, cause=s.cause) for s in part.stalled()
                ]
                if stalls:
                    request = pb.ReportRequest(session=self._session, stalls=stalls)
                    self._stub.Report(request, timeout=_CALL_SECONDS)

    def _ask_for_keys(self, epoch: int) -> None:
        if epoch != self._description.epoch or not (due := self._keys.due()):
            return
        terms = [pb.Term(gen=gen, term=term) for gen, term in due]
        request = pb.RenewKeysRequest(session=self._session, epoch=epoch, terms=terms)
        try:
            self._stub.RenewKeys(request, timeout=_CALL_SECONDS)
            self._keys.asked()
        except grpc.RpcError as error:
            self._keys.refused(f"{error.code().name}: {error.details()}")
