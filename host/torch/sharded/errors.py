"""The one exception of sharded training."""

from __future__ import annotations


class ShardingError(Exception):
    """A world, a plan, or a checkpoint does not fit what is asked of it; says which, where, and what to do.

    Attributes:
        ranks: of the world, that a failed operation is about; empty if it is about none.
    """

    ranks: tuple[int, ...] = ()
