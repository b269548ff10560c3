"""Jobs: planned on a topology, written to switches as table entries (docs/control-plane.md)."""

from controlplane.jobs.allocation import Allocator, Share
from controlplane.jobs.deploy import deploy, remove, remove_where_possible, renew
from controlplane.jobs.errors import JobError
from controlplane.jobs.plan import JobKind, JobPlan, StreamPlan

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
