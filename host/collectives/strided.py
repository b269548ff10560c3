"""Places of the ranks' parts of an array that are not one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catchment.host.collectives.errors import CollectiveError
from catchment.host.collectives.whole_number import whole


@dataclass(frozen=True, slots=True)
class Strided:
    """Rank r's part is `blocks` blocks of `block` elements, block j at r * `step` + j * `stride`; elements.

    Raises:
        CollectiveError: kind ``argument``: a value is no whole number, there are no blocks, or those of one rank, or
            the first ones, overlap.
    """

    step: int
    block: int
    blocks: int = 1
    stride: int = 0

    def __post_init__(self) -> None:
        for name in ("step", "block", "blocks", "stride"):
            whole(f"Strided.{name}", getattr(self, name), "give a whole number of elements or blocks")
        if self.blocks < 1 or self.block < 0:
            raise CollectiveError(
                f"{self} has no blocks", kind="argument", hint="give 1 block or more, of 0 elements or more"
            )
        if self.step < self.block or (self.blocks > 1 and self.stride < self.block):
            raise CollectiveError(
                f"in {self} blocks overlap", kind="argument", hint="step and stride are a block or more"
            )

    @property
    def part(self) -> int:
        """Elements of each rank's part."""
        return self.block * self.blocks

    def end(self, ranks: int) -> int:
        """Elements of the array up to the end of the last block."""
        return (ranks - 1) * self.step + (self.blocks - 1) * self.stride + self.block

    def places(self, rank: int) -> Iterator[slice]:
        """The elements of each of a rank's blocks."""
        for number in range(self.blocks):
            first = rank * self.step + number * self.stride
            yield slice(first, first + self.block)
