"""Memory of a sharded model, taken once: shards, gathered layers, gradients."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from itertools import accumulate
from typing import final

import torch

_HUGE = 2 << 20


@final
class Arena:
    """Zeros that are handed out piece by piece and never given back; of huge pages where there is enough of it.

    Attributes:
        nbytes: of all pieces.
    """

    def __init__(self, pieces: Sequence[int], dtype: torch.dtype) -> None:
        """Take memory for pieces of so many elements."""
        elements, self.nbytes = sum(pieces), sum(pieces) * dtype.itemsize
        if self.nbytes < _HUGE:
            memory = torch.zeros(elements, dtype=dtype)
        else:
            mapped = mmap.mmap(-1, self.nbytes)
            mapped.madvise(mmap.MADV_HUGEPAGE)
            memory = torch.frombuffer(mapped, dtype=dtype)
        ends = list(accumulate(pieces))
        self._pieces: list[torch.Tensor] = [memory[end - piece : end] for piece, end in zip(pieces, ends, strict=True)]

    def __getitem__(self, number: int) -> torch.Tensor:
        """The piece of that number, flat."""
        return self._pieces[number]


@final
class Places:
    """Which piece of memory each layer is in: one of its own, or one of `shared` that layers take in turn."""

    def __init__(self, sizes: Sequence[int], own: Sequence[bool], shared: int) -> None:
        """`sizes`: elements of each layer; `own`: layers that share with none."""
        turns = [layer for layer, alone in enumerate(own) if not alone]
        shared = min(shared, len(turns))
        self.of = [0] * len(sizes)
        self.pieces = [0] * shared
        for turn, layer in enumerate(turns):
            self.of[layer] = turn % shared
            self.pieces[turn % shared] = max(self.pieces[turn % shared], sizes[layer])
        for layer, alone in enumerate(own):
            if alone:
                self.of[layer] = len(self.pieces)
                self.pieces.append(sizes[layer])
