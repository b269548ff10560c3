"""The communicators of one rank: gathers and gradients have streams of their own, so that none waits for others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import torch

from catchment.host.collectives import CollectiveError, Communicator
from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.groups import Groups, Ranks

Explain = Callable[[CollectiveError], tuple[CollectiveError, Ranks]]
"""What a communicator's owner knows more of an error: which process has ended, say, and its rank in the world."""
Opener = Callable[[str, Sequence[Ranks]], tuple[Communicator, Explain]]
"""Opens this rank's communicator of one of the groups, in which its rank is its place; `str` says what it is for.

All ranks of the world ask for the same groups in the same order.
"""


def as_it_is(error: CollectiveError) -> tuple[CollectiveError, Ranks]:
    """Nothing more is known."""
    return error, ()


@dataclass(frozen=True, slots=True)
class Line:
    """A communicator and the ranks of the world that it joins; without a communicator, this rank alone.

    Attributes:
        what: the group, in words.
        ranks: of the world.
    """

    what: str
    ranks: Ranks
    communicator: Communicator | None
    explain: Explain = as_it_is

    def sum(self, array: torch.Tensor, doing: str) -> None:
        """Add an array up over the ranks, in place; blocks.

        Raises:
            ShardingError: it failed.
        """
        if self.communicator is not None:
            try:
                self.communicator.all_reduce(array).wait()
            except CollectiveError as error:
                raise self.explained(error, doing) from error

    def explained(self, error: CollectiveError, doing: str) -> ShardingError:
        """An error that names ranks of the world."""
        error, ended = self.explain(error)
        ranks = ended or tuple(self.ranks[peer] for peer in error.peers if peer < len(self.ranks))
        who = f" (rank {', '.join(map(str, ranks))} of the world)" if ranks else ""
        joined = ", ".join(map(str, self.ranks))
        failure = ShardingError(
            f"{doing}: the {self.what} of ranks {joined} failed: {error.message}{who}; {error.hint}"
        )
        failure.ranks = ranks
        return failure


@dataclass(frozen=True, slots=True)
class Path:
    """How a partition group is crossed: between its nodes along a lane, and inside a node."""

    between: Line
    inside: Line


@dataclass(frozen=True, slots=True)
class Links:
    """Everything that one rank talks over.

    Attributes:
        groups: of the world.
        rank: of the world.
        nodes: parts of a partition group between which `between` goes; 1 if the group is crossed in one operation.
        gather: for parameters. scatter: for gradients.
        replicas: the ranks that hold the same part.
    """

    groups: Groups
    rank: int
    nodes: int
    gather: Path
    scatter: Path
    replicas: Line

    @classmethod
    def open(cls, groups: Groups, rank: int, opener: Opener, *, hierarchical: bool) -> Self:
        """Open the groups of `rank`, all ranks together."""
        found = groups.all()

        def line(what: str, purpose: str, kind: str, own: Ranks) -> Line:
            alone = len(own) == 1
            return Line(what, own, None) if alone else Line(what, own, *opener(f"{kind}-{purpose}", found[kind]))

        def path(purpose: str) -> Path:
            if hierarchical and groups.nodes > 1:
                between = line("lane group", purpose, "lane", groups.lane(rank))
                return Path(between, line("node group", purpose, "node", groups.node(rank)))
            return Path(
                Line("lane group", (rank,), None), line("partition group", purpose, "partition", groups.partition(rank))
            )

        nodes = groups.nodes if hierarchical else 1
        gather, scatter = path("gather"), path("scatter")
        replicas = line("replication group", "sum", "replication", groups.replication(rank))
        return cls(groups, rank, nodes, gather, scatter, replicas)

    @property
    def lanes(self) -> int:
        """Ranks that the operation inside a node joins."""
        return self.groups.partition_size // self.nodes

    @property
    def lines(self) -> tuple[Line, ...]:
        """All of them."""
        return (self.gather.between, self.gather.inside, self.scatter.between, self.scatter.inside, self.replicas)

    def close(self, linger: float = 0.25) -> None:
        """Give all of them back; what is pending fails."""
        for line in self.lines:
            if line.communicator is not None:
                with suppress(CollectiveError):
                    line.communicator.close(linger)
