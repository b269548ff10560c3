"""Jobs in the memory of a controller, which is the truth while it runs; the job file follows.

What must survive the controller (that a job exists, or is going) is on the disk before it counts. The rest follows when
there is room: generations that replace others, members, what people put on switches.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

from catchment.controlplane.deployment import database
from catchment.controlplane.deployment.records import Contents
from catchment.controlplane.deployment.store import JobStore
from catchment.controlplane.jobs import JobError
from catchment.controlplane.jobs.generations import MAX_GENERATION
from catchment.controlplane.topology import Topology

_log = logging.getLogger(__name__)
_UNSAVED = 64
"""Most generations that may be given out before they are on the disk: so many are passed over at a start."""


class LiveStore:
    """Transactions on jobs in memory; may be used from any thread.

    Args:
        topology: whose jobs.
        folder: of the job file.

    Attributes:
        trouble: why the file is behind; empty while it is not.
        passed_over: generations that an earlier controller may have given out without a note in the file.

    Raises:
        JobError: the file cannot be read, or comes from another version.
    """

    def __init__(self, topology: Topology, folder: Path) -> None:
        self.topology = topology
        self.trouble = ""
        self._path = database.job_file(topology.name, folder)
        self._lock = threading.RLock()
        is_there = self._path.exists()
        self._now = database.read(self._path)
        self._saved = self._now if is_there else Contents()
        self._next = self._now.settings["next_generation"]
        self.passed_over = frozenset(self.look().allocator.next_ones(_UNSAVED))
        self._pass_over(_UNSAVED)  # a controller that ended may have given out some that the file does not know of
        if self.trouble:  # and so may one more that found no room to say so
            self._pass_over(secrets.randbelow(MAX_GENERATION // 2))

    def _pass_over(self, count: int) -> None:
        with self._lock:
            store = JobStore(self.topology, self._now)
            store.allocator.pass_over(count)
            self._now = store.contents()
            self._next = store.allocator.next_generation
            self.save()

    @contextlib.contextmanager
    def __call__(self) -> Iterator[JobStore]:
        """A transaction: kept at the end of the block, undone when it fails.

        Raises:
            JobError: the file cannot be written, and it cannot wait, or too much waits already.
        """
        with self._lock:
            store = JobStore(self.topology, self._now)
            yield store
            after = store.contents()
            if after == self._now:
                return
            try:
                self._write(after)
            except JobError:
                given_out = (store.allocator.next_generation - self._next) % MAX_GENERATION
                if not store.can_wait or given_out > _UNSAVED:
                    raise
            self._now = after

    def look(self) -> JobStore:
        """The jobs, to look at; waits for nobody."""
        return JobStore(self.topology, self._now)

    def save(self) -> None:
        """Bring the file up to date, if it is behind and that is possible now."""
        with self._lock, contextlib.suppress(JobError):
            self._write(self._now)

    def _write(self, after: Contents) -> None:
        """Make the file hold this; says once that it cannot, and once that it can again."""
        if after == self._saved:
            return
        try:
            try:
                self._write_file(after)
            except database.DamagedError as error:
                aside = database.put_aside(self._path)
                self._write_file(after)
                _log.error("%s. It is now %s, and a new one was written from memory: nothing is lost", error, aside)
        except (JobError, OSError) as error:
            if not self.trouble:
                _log.error("%s. What changes meanwhile is kept in memory and written when there is room", error)
            self.trouble = str(error)
            raise JobError(self.trouble) from None
        if self.trouble:
            _log.warning("the job file %s is up to date again", self._path)
        self.trouble, self._saved, self._next = "", after, after.settings["next_generation"]

    def _write_file(self, after: Contents) -> None:
        with database.writing(self._path) as transaction:
            transaction.save(after)
