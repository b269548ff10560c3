"""The error of planning, deploying or looking up jobs."""

from catchment.controlplane.errors import ControlPlaneError


class JobError(ControlPlaneError):
    """A job that cannot be planned, deployed or found; says why and what would work."""


class TakenError(JobError):
    """A switch already has what a job was to get there: the job is deployed already, or another control plane is."""
