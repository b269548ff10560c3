"""Jobs: planned on a topology, written to switches as table entries (docs/explanation/jobs.md)."""

from catchment.controlplane.jobs import kinds  # noqa: F401  registers them
from catchment.controlplane.jobs.allocation import Allocator, Share
from catchment.controlplane.jobs.deploy import (
    deploy,
    give_keys,
    remove,
    remove_where_possible,
    renew,
    somebody_may_have_written,
)
from catchment.controlplane.jobs.division import Choice, SplitCall
from catchment.controlplane.jobs.errors import JobError, TakenError
from catchment.controlplane.jobs.group import JobGroup
from catchment.controlplane.jobs.plan import JobPlan, StreamPlan
from catchment.controlplane.jobs.planning import plan_job
from catchment.controlplane.jobs.request import JobRequest

__all__ = [
    "Allocator",
    "Choice",
    "JobError",
    "JobGroup",
    "JobPlan",
    "JobRequest",
    "Share",
    "SplitCall",
    "StreamPlan",
    "TakenError",
    "deploy",
    "give_keys",
    "plan_job",
    "remove",
    "remove_where_possible",
    "renew",
    "somebody_may_have_written",
]
