"""What is wrong with something that a simulation was asked for."""

from __future__ import annotations

from catchment.controlplane.documents import DocumentError
from catchment.controlplane.errors import ControlPlaneError


class PerformanceError(ControlPlaneError):
    """A simulation that cannot be run, or that does not come to an end."""


class ClusterError(DocumentError, PerformanceError):
    """A cluster file that cannot be used: file, line, what would be right."""
