"""torch's ranks and the job's worker indices: torchrun numbers processes as they come, a job has its order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch

from catchment.host.collectives import CollectiveError


@final
class RankOrder:
    """Which worker index each rank has.

    Raises:
        CollectiveError: kind ``argument``: two ranks have the same index.
    """

    def __init__(self, workers: Sequence[int], of_all: Sequence[int] = ()) -> None:
        """Take each rank's worker index, and its rank in the group of all, unless that is the same."""
        self._workers = tuple(workers)
        self._of_all = tuple(of_all)
        if sorted(workers) != list(range(len(workers))):
            twice = sorted({worker for worker in workers if list(workers).count(worker) > 1})
            raise CollectiveError(
                f"the ranks' places in the job are {list(workers)}: {twice} are taken twice",
                kind="argument",
                hint="give every process another host of the job",
            )
        self._ranks = tuple(sorted(range(len(workers)), key=workers.__getitem__))
        self.is_same = self._workers == tuple(range(len(workers)))

    def worker(self, rank: int) -> int:
        """The worker index of a rank."""
        return self._workers[rank]

    def ranks(self, workers: Sequence[int]) -> tuple[int, ...]:
        """The ranks of worker indices."""
        return tuple(self._ranks[worker] for worker in workers if worker < len(self._ranks))

    def in_all(self, error: CollectiveError) -> CollectiveError:
        """The error, whose hint says which ranks its peers are in the group of all, where they are others there."""
        known = dict(enumerate(self._of_all))
        others = [rank for rank in error.peers if known.get(rank, rank) != rank]
        if not others:
            return error
        said = ", ".join(f"rank {rank} of this group is rank {known[rank]} of all" for rank in others)
        return error.but(hint="; ".join(filter(None, (said, error.hint))))

    def by_rank(self, parts: torch.Tensor) -> torch.Tensor:
        """Parts (ranks, ...) in the order of workers, in the order of ranks."""
        return parts[list(self._workers)]

    def by_worker(self, parts: torch.Tensor) -> torch.Tensor:
        """Parts (ranks, ...) in the order of ranks, in the order of workers."""
        return parts[list(self._ranks)]
