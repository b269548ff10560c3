"""Jobs: planned on a topology, written to switches as table entries (docs/control-plane.md)."""

from catchment.controlplane.jobs.allocation import Allocator, Share
from catchment.controlplane.jobs.deploy import deploy, remove, remove_where_possible, renew
from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.plan import JobKind, JobPlan, StreamPlan

__all__ = [
    "Allocator",
    "JobError",
    "JobKind",
    "JobPlan",
    "Share",
    "StreamPlan",
    "deploy",
    "remove",
    "remove_where_possible",
    "renew",
]
