"""Members of jobs under the controller: joining, living, being lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from catchment.controlplane.controller.core import Controller
from catchment.controlplane.controller.errors import ControllerError, RefusedError
from catchment.controlplane.controller.identity import digest, matches, new_secret
from catchment.controlplane.controller.job_watch import KEYS, JobWatch
from catchment.controlplane.controller.roster import Presence, Seat
from catchment.controlplane.controller.stalls import EVERYBODY_SENDS, Verdict, judge
from catchment.controlplane.controller.under_way import to_its_end
from catchment.controlplane.deployment.records import JobRecord
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import Choice, SplitCall

_log = logging.getLogger(__name__)

_MOST_UNNOTED = 1 << 16
"""So many epochs in a row may have found no room on the disk."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What a member gets.

    Attributes:
        session: names it from now on; a secret.
        watch: its job.
        seat: its place there.
    """

    session: str
    watch: JobWatch
    seat: Seat


class Members:
    """The members of a controller's jobs: they join, leave, report stalls, and are lost."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._timing = controller.settings.timing
        self.under_way = controller.under_way
        self._catching_up: dict[JobWatch, asyncio.Task[None]] = {}
        self._inquiries: WeakKeyDictionary[JobWatch, tuple[float, asyncio.Task[Verdict]]] = WeakKeyDictionary()

    async def join(self, job: str, host: str, token: str) -> Joined:
        """Seat a member. One that was here before in this epoch has lost its state: the generations are replaced.

        Raises:
            RefusedError: no such job, another token, or a host that is not in it (one message for all).
            ControllerError: the host's member is alive.
        """
        watch = self._controller.jobs.get(job)
        if watch is None or not matches(token, watch.record.token) or host not in watch.roster.seats:
            raise RefusedError(f"{host} may not join job {job}: there is no such job, or the token is not of it")
        return await self._seat(watch, host)

    @to_its_end
    async def _seat(self, watch: JobWatch, host: str) -> Joined:
        job = watch.record.group.name
        if watch.removed:
            raise RefusedError(f"job {job} was removed")
        if watch.roster.uses_up_epoch(host):
            await self._controller.renew(watch, f"{host} has joined again")
        session = new_secret()
        seat = watch.roster.join(host, digest(session), time.monotonic())
        watch.settle(f"member {host}")
        await self._store(watch)
        _log.info("job %s: %s has joined epoch %d", job, host, seat.epoch)
        watch.announce()
        return Joined(session, watch, seat)

    def find(self, session: str, host: str | None = None) -> tuple[JobWatch, Seat]:
        """The place that a session names.

        Raises:
            RefusedError: none; the member must join again.
        """
        key = digest(session)
        for watch in self._controller.jobs.values():
            for seat in watch.roster.seats.values():
                if seat.session == key and seat.presence is Presence.JOINED and host in (None, seat.host):
                    return watch, seat
        raise RefusedError("this session is not one of a living member; it was lost, has left, or its job is gone")

    def beat(self, watch: JobWatch, seat: Seat, epoch: int) -> None:
        """Note a sign of life.

        A member may know an epoch that the controller does not: the one before it found no room to note it on the disk.
        The job then gets new generations, in an epoch that is new to all. Nobody gets far ahead so, and who says that
        it did is not believed: epochs are counted with 32 bits.
        """
        watch.roster.beat(seat.host, epoch, time.monotonic())
        if watch.record.epoch < epoch <= watch.record.epoch + _MOST_UNNOTED and watch not in self._catching_up:
            self._catching_up[watch] = self.under_way.begin(self._catch_up(watch, seat.host, epoch))
        watch.announce()

    async def _catch_up(self, watch: JobWatch, host: str, epoch: int) -> None:
        try:
            async with watch.lock:
                if not watch.removed and epoch > watch.record.epoch:
                    await self._controller.renew(watch, f"{host} knows epoch {epoch}, which nobody noted", above=epoch)
                    await self._store(watch)
        except ControlPlaneError as error:
            _log.error("job %s: its generations cannot be replaced: %s", watch.record.group.name, error)
            watch.trouble("generations", str(error))
        finally:
            del self._catching_up[watch]
        watch.announce()

    def detach(self, watch: JobWatch, seat: Seat) -> None:
        """The connection of a member broke."""
        watch.roster.detach(seat.host, time.monotonic())

    async def leave(self, watch: JobWatch, seat: Seat) -> None:
        """A member has finished."""
        watch.roster.leave(seat.host)
        await self.under_way.finish(self._note_leave(watch, seat.host))

    async def _note_leave(self, watch: JobWatch, host: str) -> None:
        async with watch.lock:  # what another has stored since must not be undone
            if not watch.removed:
                await self._store(watch)
        _log.info("job %s: %s has left", watch.record.group.name, host)
        watch.announce()

    async def give_up(self, watch: JobWatch, seat: Seat, cause: str) -> None:
        """A member's host cannot go on: it counts as lost at once, as if it had fallen silent."""
        watch.roster.give_up(seat.host)
        text = f"{seat.host} is lost: {cause}"
        _log.warning("job %s: %s", watch.record.group.name, text)
        watch.trouble(f"member {seat.host}", text)
        # Whoever says so may end meanwhile; the generations are replaced all the same.
        await self.under_way.finish(self._lose(watch, text))

    @to_its_end
    async def renew_keys(self, watch: JobWatch, seat: Seat, epoch: int) -> None:
        """A member's keys are half used up: the job gets others, in new generations, before they serve for no more.

        Nothing happens when the epoch is over: another member has asked before, or somebody was lost.

        Raises:
            ControllerError: the job's frames carry no tags. ControlPlaneError: no generation is left.
        """
        name = watch.record.group.name
        if not any(plan.tags for plan in watch.record.group.plans):
            raise ControllerError(f"job {name} has no keys to renew: its frames carry no tags")
        if watch.removed or epoch != watch.record.epoch:
            return
        await self._controller.renew(watch, f"{seat.host} has used half of what its keys serve for")
        await self._store(watch)
        watch.announce()

    @to_its_end
    async def come_to(self, watch: JobWatch, seat: Seat, epoch: int, terms: Sequence[tuple[int, int]]) -> None:
        """A member's streams of ranks have come to terms: those get the next key whose members have all said so.

        Nothing happens when the epoch is over. The ranks go on meanwhile, and after.

        Args:
            watch: the job.
            seat: of the member.
            epoch: that it works in.
            terms: (generation, term) of each stream.

        Raises:
            ControlPlaneError: a switch is down or refuses, or the keys cannot be noted; the member asks again.
        """
        if watch.removed or epoch != watch.record.epoch:
            return
        complete = watch.key_asks.note(watch.record.group, seat.host, terms)
        try:
            if complete:
                await self._controller.give_keys(watch, complete)
        except ControlPlaneError as error:
            watch.trouble(KEYS, str(error))
            raise
        else:
            for gen, term in complete.items():
                watch.key_asks.forget(gen, term)
            if watch.key_asks.trouble:
                watch.trouble(KEYS, watch.key_asks.trouble)
            else:
                watch.settle(KEYS)
        finally:
            watch.announce()

    async def report(self, watch: JobWatch, seat: Seat, stalls: Sequence[str]) -> Verdict:
        """A member reports a stall: say which members or switches are missing, and tell all members."""
        verdict = await self._judge(watch)
        said = verdict.text or f"{seat.host} {EVERYBODY_SENDS}: {'; '.join(stalls)}"
        if watch.state().trouble != said:
            _log.warning("job %s stalls: %s", watch.record.group.name, said)
        watch.stall(said, time.monotonic())
        watch.announce()
        return Verdict(verdict.missing, said)

    async def split(
        self, watch: JobWatch, seat: Seat, choice: Choice, *, epoch: int, call: SplitCall, timeout: float
    ) -> JobRecord:
        """A worker calls a split: waits until all who take part have, then until the parts are on their switches.

        Raises:
            ControlPlaneError: the host takes no part, not all call in `timeout` seconds (names them), the epoch is
                over, or the parts cannot be made.
        """
        name, everybody = watch.record.group.name, watch.record.group.first.workers
        workers = call.workers(everybody)
        if seat.host not in workers:
            whose = f"one of {', '.join(workers)}" if call.among else f"a worker of job {name}"
            raise ControllerError(f"{call} of job {name}: {seat.host} is not {whose}, and only they split it")
        if epoch != watch.record.epoch:
            raise ControllerError(f"{call}: epoch {epoch} of job {name} is over: split in the next one")
        gathering = watch.splits.choose(call, seat.host, choice)
        if len(gathering.choices) == len(workers):
            choices = watch.splits.close(call)
            self.under_way.begin(self._split(watch, epoch, call, choices, gathering.outcome))
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.shield(gathering.outcome)
        except TimeoutError:
            silent = ", ".join(worker for worker in workers if worker not in gathering.choices)
            raise ControllerError(
                f"{call} of job {name} is not complete after {timeout:g} s"
                + (f": not called by {silent}" if silent else "")
            ) from None
        finally:
            watch.splits.withdraw(call, seat.host, gathering)

    async def _split(
        self,
        watch: JobWatch,
        epoch: int,
        call: SplitCall,
        choices: Mapping[str, Choice],
        outcome: asyncio.Future[JobRecord],
    ) -> None:
        async with watch.lock:
            try:
                if watch.removed or watch.record.epoch != epoch:
                    raise ControllerError(f"{call}: epoch {epoch} is over")
                await self._controller.split(watch, call, choices)
                outcome.set_result(watch.record)
            except ControlPlaneError as error:
                outcome.set_exception(error)
            except Exception as error:  # every worker waits for an answer
                _log.exception("job %s cannot be split", watch.record.group.name)
                outcome.set_exception(error)
        watch.announce()

    async def _judge(self, watch: JobWatch) -> Verdict:
        """Look once at the switches for all members that report at about the same time."""
        now = time.monotonic()
        since, inquiry = self._inquiries.get(watch, (0.0, None))
        if inquiry is None or (inquiry.done() and now - since > self._timing.inquiry):
            inquiry = asyncio.create_task(judge(watch, self._controller.switches))
            self._inquiries[watch] = (now, inquiry)
        return await asyncio.shield(inquiry)

    async def look_for_losses(self) -> None:
        """Notice members that fell silent, until cancelled.

        A controller that was stopped, or kept from its processor, finds every member silent for as long: it must not
        expel them for what they could not say.
        """
        async with asyncio.TaskGroup() as renewals:
            before = time.monotonic()
            while True:
                await asyncio.sleep(self._timing.check)
                now = time.monotonic()
                late, before = now - before - self._timing.check, now
                if late > self._timing.beat:
                    _log.warning("the controller was late by %.1f s, which counts as no member's silence", late)
                for watch in list(self._controller.jobs.values()):
                    if late > 0:
                        watch.roster.excuse(late, now)
                    watch.forget_stall(now)
                    lost = watch.roster.lose(now)
                    if lost:
                        text = self._name(watch, lost, now)
                        renewals.create_task(self.under_way.finish(self._lose(watch, text)))
                    watch.announce()

    def _name(self, watch: JobWatch, lost: Sequence[Seat], now: float) -> str:
        texts = [
            f"{seat.host} is lost: "
            + ("its connection ended" if seat.detached else f"not heard for {now - seat.heard:.1f} s")
            for seat in lost
        ]
        for seat, text in zip(lost, texts, strict=True):
            _log.warning("job %s: %s", watch.record.group.name, text)
            watch.trouble(f"member {seat.host}", text)
        return "; ".join(texts)

    async def _lose(self, watch: JobWatch, cause: str) -> None:
        async with watch.lock:
            if watch.removed:
                return
            try:
                # Whatever the lost ones still send is of an old generation from here on.
                await self._controller.renew(watch, cause)
            except ControlPlaneError as error:
                _log.error("job %s: its generations cannot be replaced: %s", watch.record.group.name, error)
                watch.trouble("generations", str(error))
            except Exception:  # one job's accident must not end the watch over the others
                _log.exception("job %s: its generations cannot be replaced", watch.record.group.name)
                watch.trouble("generations", "the controller failed; see its log")
            await self._store(watch)
        watch.announce()

    async def _store(self, watch: JobWatch) -> None:
        """Note the members of a job; hold its lock, so that nothing older is written over it."""
        name = watch.record.group.name
        records = [s.record() for s in watch.roster.seats.values() if s.presence is not Presence.ABSENT]

        def store() -> None:
            with self._controller.store() as stored:
                stored.can_wait = True
                if name in stored.records:
                    for record in records:
                        stored.put_member(name, record)

        await asyncio.to_thread(store)
