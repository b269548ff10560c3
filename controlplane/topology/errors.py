"""The error of a topology file."""

from catchment.controlplane.documents import DocumentError


class TopologyError(DocumentError):
    """A topology that cannot be used; says where in the file and what would be right."""
