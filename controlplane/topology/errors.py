"""The error of a topology file."""

from catchment.controlplane.errors import ControlPlaneError


class TopologyError(ControlPlaneError):
    """A topology that cannot be used; says where in the file and what would be right."""
