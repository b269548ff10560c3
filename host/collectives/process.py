"""Which process a communicator belongs to: after fork() the child has neither its thread nor its port."""

from __future__ import annotations

import os

_generation = [0]


def _forked() -> None:
    _generation[0] += 1


os.register_at_fork(after_in_child=_forked)


def generation() -> int:
    """Another number in every forked process than in its parent."""
    return _generation[0]
