"""The order in which a pass uses its layers: recorded in the first one, replayed in later ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import final


@final
class Plan:
    """The uses of one kind of pass; layers are numbers of `names`.

    Attributes:
        uses: as recorded; empty before the first pass has ended.
        deviations: passes that left the recorded order.
    """

    def __init__(self, kind: str, names: Sequence[str]) -> None:
        """`kind`: of the passes, for messages."""
        self._kind = kind
        self._names = names
        self.uses: tuple[int, ...] = ()
        self.deviations = 0
        self._seen: list[int] = []
        self._replaying = False

    def begin(self) -> None:
        """A pass begins."""
        self._seen = []
        self._replaying = bool(self.uses)

    def use(self, layer: int) -> None:
        """A layer is needed now; a deviation is told, and ends the replay of this pass."""
        at = len(self._seen)
        self._seen.append(layer)
        if self._replaying and (at >= len(self.uses) or self.uses[at] != layer):
            planned = f"layer {self._names[self.uses[at]]}" if at < len(self.uses) else "its end"
            self._deviate(f"uses layer {self._names[layer]}, where the first one had {planned}")

    def ahead(self, most: int) -> Iterator[int]:
        """The next `most` layers that will be needed; none while a pass is recorded."""
        if self._replaying:
            at = len(self._seen)
            yield from self.uses[at : at + most]

    def end(self) -> None:
        """A pass has ended: what it used is the plan of later ones."""
        seen = tuple(self._seen)
        if self._replaying and len(seen) < len(self.uses):
            self._deviate(f"ends before layer {self._names[self.uses[len(seen)]]}")
        self.uses = seen

    def _deviate(self, how: str) -> None:
        self._replaying = False
        self.deviations += 1
        warnings.warn(
            f"a {self._kind} pass {how}: nothing is gathered ahead in the rest of it, and its order is the new plan",
            RuntimeWarning,
            stacklevel=2,
        )
