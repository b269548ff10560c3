"""Long tests of which `make test` runs some, drawn by the run's seed, and `make test-full` all.

The mark `sampled(n)` says that one in n of a test's cases is drawn; as `pytestmark` of a file, that the file is drawn
as a whole in one of n runs, so that what its tests share is not made for one of them. `sampled(n, together=True)` draws
all cases of a test or none, for the same reason. What is not drawn has the mark `slow`, so that every tier is still an
expression over marks.
"""

from __future__ import annotations

from zlib import crc32

import pytest

MARK = "sampled"


def is_drawn(name: str, one_in: int, seed: int) -> bool:
    """Whether the run of a seed has a test, or a file, of which one in so many is drawn."""
    return crc32(f"{seed}:{name}".encode()) % one_in == 0


def leave_to_the_long_run(item: pytest.Item, seed: int) -> None:
    """Give a test the mark `slow` if it is sampled and not drawn."""
    for node, mark in item.iter_markers_with_node(MARK):
        name = node.nodeid.partition("[")[0] if mark.kwargs.get("together") else node.nodeid
        if not is_drawn(name, *mark.args, seed):
            item.add_marker(pytest.mark.slow)
