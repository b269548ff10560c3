"""Jobs that outlive one command: a small JSON file per topology."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from controlplane.jobs import Allocator, JobError, JobPlan
from controlplane.jobs.allocation import MAX_GENERATION
from controlplane.topology import Topology

_FORMAT = 1


def store_folder() -> Path:
    """Where job files live; CATCHMENT_STATE_DIR overrides."""
    fallback = Path(os.environ.get("XDG_STATE_HOME", Path.home() / ".local" / "state")) / "catchment"
    return Path(os.environ.get("CATCHMENT_STATE_DIR", fallback))


class JobStore:
    """The jobs of one topology; `open_store` makes one under a lock.

    A new file starts at a random generation, so that a lost file does not reuse numbers that a
    switch may still hold tags of.
    """

    def __init__(self, topology: Topology, jobs: dict[str, JobPlan], next_generation: int) -> None:
        self.jobs = jobs
        self.topology = topology
        self.allocator = Allocator(
            topology,
            [share for job in jobs.values() for stream in job.streams for share in stream.shares],
            next_generation=next_generation,
            used_generations=[stream.gen for job in jobs.values() for stream in job.streams],
        )
        for job in jobs.values():
            for host, port in job.ports.items():
                self.allocator.hold_port(host, port)

    def get(self, name: str) -> JobPlan:
        """A job by name.

        Raises:
            JobError: there is none; names those there are.
        """
        try:
            return self.jobs[name]
        except KeyError:
            have = ", ".join(self.jobs) or "none; make one with `catchment job create`"
            raise JobError(f"no job {name!r} on topology {self.topology.name}; there are: {have}") from None

    def add(self, job: JobPlan) -> None:
        """Note a job; it must not exist."""
        if job.name in self.jobs:
            raise JobError(
                f"job {job.name} exists; remove it with `catchment job remove {job.name}` or take another name"
            )
        self.jobs[job.name] = job

    def discard(self, name: str) -> None:
        """Forget a job."""
        self.jobs.pop(name, None)


@contextlib.contextmanager
def open_store(topology: Topology, folder: Path | None = None) -> Iterator[JobStore]:
    """Load the jobs of a topology, and save them at the end of the block unless it fails.

    Other commands wait meanwhile.

    Args:
        topology: whose jobs.
        folder: where the file lives; the user's state folder by default.

    Raises:
        JobError: the file cannot be read or written.
    """
    folder = store_folder() if folder is None else folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = (folder / f"{topology.name}.lock").open("w", encoding="ascii")
    except PermissionError:
        raise JobError(f"the jobs of {topology.name} are in {folder}, which is not yours to write: use sudo") from None
    path = folder / f"{topology.name}.jobs.json"
    with opened as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        store = _load(path, topology)
        yield store
        data = {
            "format": _FORMAT,
            "next_generation": store.allocator.next_generation,
            "jobs": [job.to_json() for job in store.jobs.values()],
        }
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(data, indent=1), encoding="utf-8")
        temporary.replace(path)


def _load(path: Path, topology: Topology) -> JobStore:
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return JobStore(topology, {}, secrets.randbelow(MAX_GENERATION) + 1)
    except (OSError, ValueError) as error:
        raise JobError(f"cannot read the job file {path}: {error}; move it away to start afresh") from None
    if data.get("format") != _FORMAT:
        raise JobError(f"{path} was written by another version; move it away to start afresh")
    jobs = [JobPlan.from_json(job) for job in data["jobs"]]
    return JobStore(topology, {job.name: job for job in jobs}, data["next_generation"])
