"""Sequence diagrams as SVG: a line for each actor, time downwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from catchment.demo.pictures.document import document

_MARGIN, _TOP, _STEP, _BETWEEN = 70, 58, 34, 250
_STYLE = (
    "text{font:12px sans-serif;fill:#222;text-anchor:middle}.actor{font-weight:bold;font-size:13px}"
    ".note{font-size:11px;fill:#444;text-anchor:start}.life{stroke:#999;stroke-dasharray:4 4}"
    ".box{fill:#dbe9f6;stroke:#3b6ea5}.frame{stroke:#1b6ca8;stroke-width:1.8}.lost{stroke:#c0392b;stroke-width:1.8}"
    ".cross{fill:#c0392b;font-weight:bold;font-size:15px}.head{fill:#1b6ca8}"
)


@dataclass(frozen=True, slots=True)
class Arrow:
    """A frame from one actor to others, at one time; one that is `lost` ends half way."""

    source: str
    target: str
    text: str
    lost: bool = False


@dataclass
class Diagram:
    """A sequence of frames and notes.

    Attributes:
        title: what the picture shows, for readers that do not see it.
        actors: their names, from left to right.
        rows: what happens at each time: frames, and what is noted at the right.
    """

    title: str
    actors: Sequence[str]
    rows: list[tuple[list[Arrow], str]] = field(default_factory=list)

    def add(self, *arrows: Arrow, note: str = "") -> None:
        """Frames of one time, and what is true after them."""
        self.rows.append((list(arrows), note))

    def svg(self) -> str:
        """The picture as an SVG document."""
        widest = max((len(note) for _, note in self.rows), default=0)
        width = 2 * _MARGIN + _BETWEEN * (len(self.actors) - 1) + 7 * widest
        height = _TOP + _STEP * (len(self.rows) + 1)
        parts = [self._actor(name, height) for name in self.actors]
        for at, (arrows, note) in enumerate(self.rows):
            y = _TOP + _STEP * (at + 0.7)
            parts += [self._arrow(arrow, y) for arrow in arrows]
            parts.append(
                f'<text class="note" x="{self._x(self.actors[-1]) + 16}" y="{y + 4:.0f}">{escape(note)}</text>'
            )
        return document(self.title, width, height, _STYLE, parts)

    def _x(self, name: str) -> int:
        return _MARGIN + _BETWEEN * self.actors.index(name)

    def _actor(self, name: str, height: int) -> str:
        x = self._x(name)
        return (
            f'<line class="life" x1="{x}" y1="{_TOP - 18}" x2="{x}" y2="{height - 12}"/>'
            f'<rect class="box" x="{x - 52}" y="14" width="104" height="26" rx="5"/>'
            f'<text class="actor" x="{x}" y="32">{escape(name)}</text>'
        )

    def _arrow(self, arrow: Arrow, y: float) -> str:
        start, end = self._x(arrow.source), self._x(arrow.target)
        right = 1 if end > start else -1
        text = f'<text x="{(start + end) / 2:.0f}" y="{y - 6:.0f}">{escape(arrow.text)}</text>'
        if arrow.lost:
            stop = start + 0.8 * (end - start)
            line = f'<line class="lost" x1="{start}" y1="{y:.0f}" x2="{stop - 8 * right:.0f}" y2="{y:.0f}"/>'
            return f'{text}{line}<text class="cross" x="{stop:.0f}" y="{y + 5:.0f}">&#215;</text>'
        tip = f"{end},{y:.0f} {end - 9 * right},{y - 4:.0f} {end - 9 * right},{y + 4:.0f}"
        line = f'<line class="frame" x1="{start}" y1="{y:.0f}" x2="{end - 8 * right}" y2="{y:.0f}"/>'
        return f'{text}{line}<polygon class="head" points="{tip}"/>'
