"""Where the ranks' parts of an array lie that are not one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from catchment.host.collectives.errors import CollectiveError

_WORD: Final = 4
_MOST: Final = (1 << 36) - 1


@dataclass(frozen=True, slots=True)
class Strided:
    """Rank r's part is `blocks` blocks of `block` bytes, block j at r * `step` + j * `stride`; bytes, whole words.

    Raises:
        CollectiveError: kind ``argument``: not whole words, or blocks of one rank overlap.
    """

    step: int
    block: int
    blocks: int
    stride: int

    def __post_init__(self) -> None:
        if self.blocks < 1 or self.block < 0 or max(self.step, self.block * self.blocks, self.stride) > _MOST:
            raise CollectiveError(f"{self} has no blocks", kind="argument", hint="give 1 block or more, of 0..2**36-1 B")
        if any(value % _WORD for value in (self.step, self.block, self.stride)):
            raise CollectiveError(f"{self} is not in whole words", kind="argument", hint="give multiples of 4 bytes")
        if self.step < self.block or (self.blocks > 1 and self.stride < self.block):
            raise CollectiveError(f"in {self} blocks overlap", kind="argument", hint="step and stride are a block or more")

    @property
    def part(self) -> int:
        """Bytes of each rank's part."""
        return self.block * self.blocks

    def end(self, ranks: int) -> int:
        """Bytes of the array up to the last block's end."""
        return (ranks - 1) * self.step + (self.blocks - 1) * self.stride + self.block

    def places(self, rank: int) -> Iterator[slice]:
        """The bytes of each of a rank's blocks."""
        for number in range(self.blocks):
            first = rank * self.step + number * self.stride
            yield slice(first, first + self.block)
