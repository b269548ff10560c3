"""How the workers of a job divide into smaller jobs: by color and key (MPI_Comm_split), or by a grid of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catchment.controlplane.jobs.errors import JobError

ACROSS = "across-"
"""Begins the name of the jobs that join workers at equal places of all blocks."""
SPLIT = "split"
"""Begins the labels of the jobs that a split makes."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a worker says when its job is split.

    Attributes:
        color: workers of one color get a job of their own; None for a worker that is to be in none.
        key: orders the workers of a color; equal keys keep the order of the ranks.
    """

    color: int | None
    key: int = 0


@dataclass(frozen=True, slots=True)
class SplitCall:
    """Which split of a job it is: what every worker that takes part calls alike.

    Attributes:
        number: of the splits among the same workers, from 0.
        among: indices of the workers that take part, in ascending order; empty for every worker.
    """

    number: int
    among: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Name it in labels and messages: ``split0`` of all workers, ``split0-of-1-3`` of two."""
        return f"{SPLIT}{self.number}" + "".join(f"-{word}" for word in (("of", *self.among) if self.among else ()))

    def workers(self, everybody: Sequence[str]) -> tuple[str, ...]:
        """Names of the workers that take part, of all names in the order of the indices.

        Raises:
            JobError: indices that are not in ascending order, or of no worker.
        """
        if list(self.among) != sorted(set(self.among)) or (self.among and self.among[-1] >= len(everybody)):
            raise JobError(
                f"a split among workers {', '.join(map(str, self.among))}: give indices of the {len(everybody)} "
                "workers, in ascending order, each once"
            )
        return tuple(everybody[index] for index in self.among) if self.among else tuple(everybody)


def split(workers: Sequence[str], choices: Mapping[str, Choice]) -> dict[int, tuple[str, ...]]:
    """Divide workers as MPI_Comm_split does.

    Args:
        workers: host names in the order of their ranks.
        choices: of every worker.

    Returns:
        Color -> the workers of the color, ordered by key and then by rank; colors in ascending order.

    Raises:
        JobError: a worker has no choice, or a choice is of a host that is no worker.
    """
    silent = [worker for worker in workers if worker not in choices]
    if silent:
        raise JobError(f"every worker must choose a color; not chosen: {', '.join(silent)}")
    strangers = [host for host in choices if host not in workers]
    if strangers:
        raise JobError(f"only workers choose a color; no workers: {', '.join(strangers)}")
    colors = sorted({color for choice in choices.values() if (color := choice.color) is not None})
    # Sorting is stable: equal keys keep the order of the ranks.
    return {
        color: tuple(sorted((w for w in workers if choices[w].color == color), key=lambda w: choices[w].key))
        for color in colors
    }


def grid(workers: Sequence[str], sizes: Sequence[tuple[str, int]], job: str) -> dict[str, tuple[str, ...]]:
    """Divide workers into nested blocks of consecutive ranks, and join those at equal places of the blocks.

    For each name NAME with its size, from the outermost: ``NAME.0``, ``NAME.1``, ... are the blocks of that many ranks,
    ``across-NAME.0``, ... the ranks at equal places of the blocks that lie in one block of the level above (of the
    whole job at the first level).

    Args:
        workers: host names in the order of their ranks.
        sizes: (name, ranks in a block), from the outermost; each must divide the one before, the first the job.
        job: its name, for messages.

    Returns:
        Label -> workers in the order of the ranks.

    Raises:
        JobError: sizes that do not nest, or a name given twice.
    """
    found: dict[str, tuple[str, ...]] = {}
    outer = len(workers)
    for name, size in sizes:
        if size < 1 or outer % size:
            raise JobError(f"job {job}: --grid {name}={size}: blocks of {size} do not fill {outer} workers evenly")
        if f"{name}.0" in found or name.startswith(ACROSS):
            raise JobError(f"job {job}: --grid {name}={size}: the name is taken; choose another")
        ranks = range(len(workers))
        blocks = {w: Choice(rank // size) for rank, w in zip(ranks, workers, strict=True)}
        places = {w: Choice(rank // outer * size + rank % size) for rank, w in zip(ranks, workers, strict=True)}
        for prefix, choices in ((name, blocks), (f"{ACROSS}{name}", places)):
            found.update({f"{prefix}.{color}": members for color, members in split(workers, choices).items()})
        outer = size
    return found
