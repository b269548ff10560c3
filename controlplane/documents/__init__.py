"""YAML files that people write: whatever is wrong in one is said as `file:line: what, what to do`."""

from catchment.controlplane.documents.reader import DocumentError, Kind, Tree, read
from catchment.controlplane.documents.section import Section

__all__ = ["DocumentError", "Kind", "Section", "Tree", "read"]
