"""The controller itself, whatever its clients speak: switches, jobs, members."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.controller.audit import CONTROLLER, AuditLog
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.identity import digest, new_secret
from catchment.controlplane.controller.job_watch import JobWatch
from catchment.controlplane.controller.keeper import Keeper
from catchment.controlplane.controller.settings import Settings
from catchment.controlplane.controller.switches import SwitchAgent
from catchment.controlplane.controller.under_way import UnderWay, to_its_end
from catchment.controlplane.deployment import lifecycle
from catchment.controlplane.deployment.fabric import restore, share_of
from catchment.controlplane.deployment.live_store import LiveStore
from catchment.controlplane.deployment.ownership import Ownership, holdings
from catchment.controlplane.deployment.records import JobRecord, JobState
from catchment.controlplane.deployment.store import JobStore
from catchment.controlplane.jobs import Choice, JobError, JobRequest, SplitCall, TakenError
from catchment.controlplane.jobs.errors import job_of_name
from catchment.controlplane.programs.cache import programs_of
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.state.desired import JOBS, Differences, SwitchConfig, reconcile

_log = logging.getLogger(__name__)
_THREADS_PER_SWITCH = 4
_SAVE_SECONDS = 1.0
_ATTEMPTS, _BACKOFF_SECONDS = 8, 0.1


class Controller:
    """Everything but the service; an async context manager.

    Attributes:
        settings: what it was told.
        switches: name -> what keeps it as it should be.
        audit: who did what.
        jobs: name -> job.
        tasks: what runs for as long as it does: one for each switch, and one that brings the job file up to date.
        under_way: what was asked for, and is not done yet.
        store: transactions on the jobs in memory; not in the event loop's thread.
    """

    store: LiveStore
    _loop: asyncio.AbstractEventLoop

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.topology = settings.topology
        self.switches: dict[str, SwitchAgent] = {}
        self.jobs: dict[str, JobWatch] = {}
        self.audit = AuditLog(settings.folder / f"{settings.topology.name}.audit.jsonl")
        self._programs: dict[str, PipelineConfig] = {}
        self.tasks: list[asyncio.Task[None]] = []
        self.under_way = UnderWay()

    async def __aenter__(self) -> Self:
        """Read what is stored, then keep every switch as it should be.

        Raises:
            ControlPlaneError: a program does not compile, or the stored jobs cannot be read.
        """
        self._loop = asyncio.get_running_loop()
        threads = ThreadPoolExecutor(8 + _THREADS_PER_SWITCH * len(self.topology.switches), "controller")
        self._loop.set_default_executor(threads)
        programs = await asyncio.to_thread(programs_of, self.topology)
        await asyncio.to_thread(self._recover)
        self._programs = programs
        for name, switch in self.topology.switches.items():
            self.switches[name] = SwitchAgent(
                name,
                self.settings.addresses[name],
                switch.device_id,
                program=programs[name],
                wanted=partial(self._wanted, name),
                compare=partial(self._compare, name),
                changed=partial(self._switch_changed, name),
                keeper=Keeper(name, self.settings.addresses[name], self.store, self.settings.ports),
                timing=self.settings.timing,
                network=self.settings.network,
            )
        self.tasks = [asyncio.create_task(agent.run(), name=f"switch {name}") for name, agent in self.switches.items()]
        self.tasks.append(asyncio.create_task(self._save(), name="job file"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.under_way.end()  # while its switches are still kept
        pending = set(self.tasks)
        while pending:  # a task that just handles an error may miss the first time
            for task in pending:
                task.cancel()
            _, pending = await asyncio.wait(pending, timeout=1.0)
        self.audit.close()

    async def _save(self) -> None:
        while True:
            await asyncio.sleep(_SAVE_SECONDS)
            await asyncio.to_thread(self.store.save)

    def _recover(self) -> None:
        """Jobs as they were stored; what was half made or half removed is dropped, and reconciled away."""
        now = time.monotonic()
        self.store = LiveStore(self.topology, self.settings.folder)
        with self.store() as stored:
            stored.can_wait = True
            for name, record in list(stored.records.items()):
                if record.state is not JobState.UP:
                    _log.warning("job %s was %s when the controller ended: dropped", name, record.state)
                    stored.discard(name)
                    continue
                members = stored.members(name)
                watch = self.jobs[name] = JobWatch(record, self.settings.timing, members.values(), now)
                if misfit := record.group.misfit(self.topology):
                    _log.error("it is on no switch: %s", misfit)
                    watch.trouble("topology", misfit)

    def _wanted(self, switch: str) -> list[SwitchConfig]:
        return share_of(switch, self.topology, self.store.look().deployed)

    def _refuse_misfit(self, watch: JobWatch) -> None:
        if misfit := watch.record.group.misfit(self.topology):
            raise JobError(misfit)

    def _compare(self, switch: str, client: SwitchClient) -> Differences:
        """Make a switch hold what it should, and note what other control planes hold there."""
        jobs = self.store.look()
        owned = Ownership(jobs, switch)
        differences = reconcile(client, share_of(switch, self.topology, jobs.deployed), owned.is_foreign)
        found = holdings(differences.foreign)
        if found != jobs.foreign(switch):
            with self.store() as stored:
                stored.can_wait = True
                stored.note_foreign(switch, found)
        if differences:
            self.audit.note(CONTROLLER, "put right", switch, f"{differences}; {client.rival}".removesuffix("; "))
        for record in self._renewed_unsaved(switch, jobs, differences):
            asyncio.run_coroutine_threadsafe(self._renew_again(record), self._loop)
        return differences

    def _renewed_unsaved(self, switch: str, jobs: JobStore, differences: Differences) -> list[JobRecord]:
        """Jobs that had newer generations on a switch than the job file knows: its disk was full when they got them."""
        rows = {
            int(entry.params["job"])
            for entry in differences.removed
            if entry.table == JOBS and int(entry.match["gen"]) in self.store.passed_over
        }
        return [
            record
            for record in jobs.records.values()
            if any(
                share.switch == switch and share.row in rows
                for plan in record.group.plans
                for stream in plan.streams
                for share in stream.shares
            )
        ]

    async def _renew_again(self, found: JobRecord) -> None:
        watch = self.jobs.get(found.group.name)
        if watch is not None:
            await self._renew_epoch(watch, found.epoch)

    @to_its_end
    async def _renew_epoch(self, watch: JobWatch, epoch: int) -> None:
        if not watch.removed and watch.record.epoch == epoch:  # another switch may have told already
            await self.renew(watch, "an earlier controller had replaced its generations, and could not note it")

    def _switch_changed(self, name: str) -> None:
        agent = self.switches[name]
        for watch in self.jobs.values():
            if name in watch.record.group.switches:
                if agent.detail:
                    watch.trouble(f"switch {name}", agent.detail)
                else:
                    watch.settle(f"switch {name}")
                watch.announce()

    # Jobs

    def job(self, name: str) -> JobWatch:
        """A job by name.

        Raises:
            JobError: there is none; names those there are.
        """
        return job_of_name(self.jobs, name, self.topology.name)

    async def create(self, request: JobRequest) -> tuple[JobWatch, str]:
        """Plan a job and put it on its switches; returns it with the token of its members.

        Raises:
            ControlPlaneError: an impossible request, a switch is full, down or refuses. Nothing is left behind.
        """
        return await self.under_way.finish(self._create(request))

    async def _create(self, request: JobRequest) -> tuple[JobWatch, str]:
        await self._keep_generations_clean()
        for attempt in range(1, _ATTEMPTS):
            with contextlib.suppress(TakenError):
                return await self._create_once(request)
            # Another controller was at it at the same moment, and may have withdrawn, too.
            await asyncio.sleep(random.uniform(0, attempt * _BACKOFF_SECONDS))
        return await self._create_once(request)

    async def _create_once(self, request: JobRequest) -> tuple[JobWatch, str]:
        if rings := [rail for rail in request.rails if rail in self.topology.rings]:
            raise ControllerError(
                f"job {request.name}: {rings[0]} is a ring, which no member can join through a controller; give rails "
                "with switches, or create the job without a controller"
            )
        for agent in self.switches.values():
            if agent.client is not None and not agent.is_undisturbed:
                with contextlib.suppress(SwitchError):  # if the job needs it, that is said when it is written
                    async with agent.lock:
                        await agent.look_again()
        token = new_secret()
        record = await asyncio.to_thread(lifecycle.reserve_job, self.store, request, self.topology, digest(token))
        switches = record.group.switches
        try:
            async with self._locked(switches) as clients:
                down = [name for name in switches if name not in clients]
                if down:
                    raise ControllerError(f"job {request.name}: {'; '.join(self.switches[n].detail for n in down)}")
                record = await asyncio.to_thread(
                    lifecycle.deploy_job,
                    self.store,
                    record,
                    self.topology,
                    clients,
                    undisturbed=self._is_undisturbed,
                )
        except BaseException as error:
            await asyncio.to_thread(lifecycle.forget_job, self.store, request.name)
            if isinstance(error, SwitchError):
                self._reconnect(switches)  # something may be left on one of them
            raise
        watch = self.jobs[request.name] = JobWatch(record, self.settings.timing)
        _log.info("job %s is up on %s", request.name, ", ".join(switches))
        return watch, token

    def _is_undisturbed(self, switch: str) -> bool:
        return self.switches[switch].is_undisturbed

    async def renew_token(self, name: str, *, revoke: bool = False) -> str:
        """Give a job's members another token to join with; members that have joined stay.

        Args:
            name: of the job.
            revoke: give none, so that nobody may join.

        Returns:
            The token; empty when it was revoked.

        Raises:
            JobError: there is no such job, or the change cannot be noted: the old token counts on then.
        """
        return await self._renew_token(self.job(name), "" if revoke else new_secret())

    @to_its_end
    async def _renew_token(self, watch: JobWatch, token: str) -> str:
        self._refuse_removed(watch)
        record = replace(watch.record, token=digest(token) if token else b"")

        def store() -> None:
            with self.store() as stored:
                stored.put(record)

        await asyncio.to_thread(store)
        watch.record = record
        return token

    async def remove(self, name: str) -> None:
        """Take a job off its switches; one that is down loses it when it comes back.

        Raises:
            JobError: there is no such job, or it cannot be noted that it goes: it is as it was then.
        """
        await self._remove(self.job(name))

    @to_its_end
    async def _remove(self, watch: JobWatch) -> None:
        self._refuse_removed(watch)
        name, switches = watch.record.group.name, watch.record.group.switches
        async with self._locked(switches) as clients:
            failures = await asyncio.to_thread(lifecycle.remove_job_where_possible, self.store, name, clients)
            if failures:
                self._reconnect(switches)
        del self.jobs[name]
        watch.removed = True
        watch.splits.fail(f"job {name} was removed")
        watch.announce()
        _log.info("job %s is removed", name)

    def _refuse_removed(self, watch: JobWatch) -> None:
        """Whoever waited for the lock of a job may find that it is gone."""
        if watch.removed:
            raise JobError(f"job {watch.record.group.name} is being removed already")

    async def keep(self, switch: str) -> None:
        """Note what people put on a switch: it comes back after a restart of the switch.

        Raises:
            TopologyError: there is no such switch.
            ControllerError: it is down. SwitchError: it does not answer.
        """
        await self.under_way.finish(self._keep(self.topology.switch(switch).name))

    async def _keep(self, name: str) -> None:
        async with self._locked([name]) as clients:
            if name not in clients:
                raise ControllerError(self.switches[name].detail)
            await self.switches[name].note()

    async def renew(self, watch: JobWatch, cause: str, *, above: int = 0) -> None:
        """Give a job new generations, in an epoch that comes after `above`, too; hold its lock, in `under_way`.

        Raises:
            JobError: no generation is left, or the topology has no place for the job any more.
        """
        self._refuse_misfit(watch)
        name = watch.record.group.name
        await self._keep_generations_clean()
        switches = watch.record.group.switches
        async with self._locked(switches) as clients:
            record, failures = await asyncio.to_thread(
                partial(lifecycle.renew_job, self.store, name, self.topology, clients, above=above)
            )
        if failures:
            self._reconnect(switches)
        watch.renew(record, cause)
        _log.info("job %s has new generations (epoch %d): %s", name, record.epoch, cause)
        self.audit.note(CONTROLLER, "renew generations", name, f"epoch {record.epoch}: {cause}")

    async def give_keys(self, watch: JobWatch, terms: Mapping[int, int]) -> None:
        """Give streams of a job, whose ranks have all come to these terms, the keys of the next ones; hold its lock,
        in `under_way`.

        Members learn of the keys once every switch has them.

        Raises:
            ControlPlaneError: a switch does not answer or refuses, or the keys cannot be noted; members ask again.
        """
        self._refuse_misfit(watch)
        name = watch.record.group.name
        switches = watch.record.group.switches
        async with self._locked(switches) as clients:
            record, failures = await asyncio.to_thread(
                lifecycle.give_job_keys, self.store, name, self.topology, clients, terms
            )
        if failures:
            self._reconnect(switches)
            raise failures[0]
        watch.record = record
        _log.info("job %s has new keys (generation, term: %s)", name, terms)
        self.audit.note(CONTROLLER, "renew keys", name, f"generation, term: {terms}")

    async def split(self, watch: JobWatch, call: SplitCall, choices: Mapping[str, Choice]) -> None:
        """Give a job a part for each color that its workers chose; hold its lock, in `under_way`.

        Raises:
            ControlPlaneError: a switch is full, down or refuses; the job is as before then.
        """
        self._refuse_misfit(watch)
        name = watch.record.group.name
        await self._keep_generations_clean()
        # The parts may need switches that the job has not: which ones is known when they are planned.
        async with self._locked(self.switches) as clients:
            try:
                watch.record = await asyncio.to_thread(
                    partial(lifecycle.split_job, call=call, choices=choices, undisturbed=self._is_undisturbed),
                    self.store,
                    name,
                    self.topology,
                    clients,
                )
            except SwitchError:
                self._reconnect(self.switches)
                raise
        _log.info("job %s is split (%s): its parts are %s", name, call, ", ".join(watch.record.group.parts))

    async def _keep_generations_clean(self) -> None:
        if not await asyncio.to_thread(lifecycle.generations_run_out, self.store):
            return
        async with self._locked(self.switches) as clients:
            await asyncio.to_thread(lifecycle.keep_generations_clean, self.store, self.topology, clients, self._reload)

    def _reload(self, switch: str, client: SwitchClient) -> None:
        restore(self.topology, switch, client, self._programs[switch], self.store.look().deployed)

    @contextlib.asynccontextmanager
    async def _locked(self, switches: Iterable[str]) -> AsyncIterator[dict[str, SwitchClient]]:
        """The clients of those switches that are up; no other task of the controller writes to them meanwhile.

        There is none to a switch that has gone out of the topology.
        """
        here = sorted(name for name in switches if name in self.switches)
        async with contextlib.AsyncExitStack() as exits:
            for name in here:
                await exits.enter_async_context(self.switches[name].lock)
            clients = {name: self.switches[name].client for name in here}
            yield {name: client for name, client in clients.items() if client is not None}

    def _reconnect(self, switches: Iterable[str]) -> None:
        for name in self.switches.keys() & set(switches):
            self.switches[name].reconnect()
