"""One job of a group, described as if it were by itself: what plays a member needs the member's own addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs.group import ALONE


def job_of_part(described: Mapping[str, Any], label: str | None) -> Mapping[str, Any]:
    """The job with this label; without one a job by itself, or the job of all workers that a group has.

    Args:
        described: what `catchment.cli.job.find_job` says of the job or group.
        label: of a part of the group.

    Returns:
        Of `described` all keys, with the workers, root, rail and members of the one job.

    Raises:
        ControlPlaneError: there is no such part, the group has no job of all workers, or no switch adds up for it.
    """
    name, parts = described["name"], described.get("parts", {})
    labels = ", ".join(part for part in parts if part != ALONE)
    if label is None and parts and ALONE not in parts:
        raise ControlPlaneError(f"group {name} has no job of all workers; say with --part which of its jobs: {labels}")
    if label is not None and (label == ALONE or label not in parts):
        have = f"it has: {labels}" if labels else "it is one job, without parts"
        raise ControlPlaneError(f"job {name} has no part {label!r}; {have}")
    members: Mapping[str, Mapping[str, Any]] = described["members"]
    if label is None:
        own, inside = parts.get(ALONE, {}), {host: one for host, one in members.items() if "role" in one}
    else:
        own = parts[label]
        inside = {host: one["parts"][label] for host, one in members.items() if label in one.get("parts", {})}
    if not all("switch" in one for one in inside.values()):
        raise ControlPlaneError(f"job {name}{'' if label is None else f', part {label},'} has no switch: it is a ring")
    return {**described, **own, "members": inside}
