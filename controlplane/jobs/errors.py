"""The error of planning, deploying or looking up jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from catchment.controlplane.errors import ControlPlaneError

_T = TypeVar("_T")


class JobError(ControlPlaneError):
    """A job that cannot be planned, deployed or found; says why and what would work."""


class TakenError(JobError):
    """A switch already has what a job was to get there: the job is deployed already, or another control plane is."""


def job_of_name(jobs: Mapping[str, _T], name: str, topology: str) -> _T:
    """What is kept of a job by its name.

    Args:
        jobs: name -> job, of all there are.
        name: of the job.
        topology: name of the topology, for the message.

    Raises:
        JobError: there is none of this name; names those there are.
    """
    try:
        return jobs[name]
    except KeyError:
        have = ", ".join(jobs) or "none; make one with `catchment job create`"
        raise JobError(f"no job {name!r} on topology {topology}; there are: {have}") from None
