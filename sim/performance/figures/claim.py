"""A number of a paper, and ours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    """The kind of calculation or run that our number comes from."""

    FORMULA = "formula"
    SIMULATED = "simulated"
    CYCLES = "cycle model"
    BALANCER = "the project's balancer"


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of the page.

    Attributes:
        paper, place: which paper, and where in it.
        what: in words, with the unit.
        theirs, ours: the number.
        tolerance: share of theirs that ours may differ by.
        source: of ours.
        inputs: what of it was taken from the paper.
        note: what a reader should know, above all where it does not hold.
    """

    paper: str
    place: str
    what: str
    theirs: float
    ours: float
    tolerance: float
    source: Source
    inputs: str = "none"
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether ours is within the tolerance."""
        return abs(self.ours - self.theirs) <= self.tolerance * abs(self.theirs)
