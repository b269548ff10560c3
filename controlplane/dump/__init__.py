"""What a control plane wrote to a switch, as a document: stable, so that `diff` compares two of them.

A document is a mapping of `tables`, `defaults`, `profiles`, `multicast_groups`, `clone_sessions` and `meters`. Counters
and registers are not in it: the switch writes those itself. Its text is YAML with one entry a line, or JSON.
"""

from catchment.controlplane.dump.apply import Changes, apply_document
from catchment.controlplane.dump.document import DumpError, load_document, to_text
from catchment.controlplane.dump.read import plain, read_document

__all__ = ["Changes", "DumpError", "apply_document", "load_document", "plain", "read_document", "to_text"]
