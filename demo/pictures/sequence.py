"""Sequence diagrams as SVG: a line for each actor, time downwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from catchment.svg import document

_MARGIN, _TOP, _STEP, _NOTE, _GAP = 62, 56, 32, 22, 10
_LETTER = 6.2  # the mean width of a letter of a note
_STYLE = (
    "text{font:13px sans-serif;fill:#222;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".actor{font-weight:bold;stroke:none}.note{font-size:12px;fill:#333;stroke:none}"
    ".time{font-size:11px;fill:#555;text-anchor:start}.cross{fill:#c0392b;font-weight:bold;font-size:17px}"
    ".box{fill:#dbe9f6;stroke:#3b6ea5}.state{fill:#fdf6dd;stroke:#c9a227}.life{stroke:#999;stroke-dasharray:4 4}"
    ".frame{stroke:#1b6ca8;stroke-width:1.8}.head{fill:#1b6ca8}.lost{stroke:#c0392b;stroke-width:1.8}"
)


@dataclass(frozen=True, slots=True)
class Arrow:
    """A frame from one actor to another, at one time; one that is `lost` ends half way."""

    source: str
    target: str
    text: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    arrows: Sequence[Arrow]
    notes: Mapping[str, str]
    time: str

    @property
    def height(self) -> int:
        return _GAP + (_STEP - _GAP) * bool(self.arrows) + _NOTE * bool(self.notes)


@dataclass
class Diagram:
    """A sequence of frames and notes.

    Attributes:
        title: what the picture shows, for readers that do not see it.
        actors: their names, from left to right.
        between: pixels from one actor to the next.
        timed: whether times are written at the left.
    """

    title: str
    actors: Sequence[str]
    between: int = 180
    timed: bool = False
    _rows: list[_Row] = field(default_factory=list)

    def add(self, *arrows: Arrow, time: str = "", notes: Mapping[str, str] | None = None) -> None:
        """Frames of one time, and what is true of actors after them: a line of text each."""
        self._rows.append(_Row(arrows, notes or {}, time))

    def svg(self) -> str:
        """The picture as an SVG document."""
        height = _TOP + sum(row.height for row in self._rows) + 2 * _GAP
        parts = [self._actor(name, height) for name in self.actors]
        y = _TOP
        for row in self._rows:
            if row.time:
                parts.append(f'<text class="time" x="6" y="{y + _STEP - _GAP + 4}">{escape(row.time)}</text>')
            parts += [self._arrow(arrow, y + _STEP - _GAP) for arrow in row.arrows]
            parts += [self._note(actor, text, y + row.height - _NOTE // 2) for actor, text in row.notes.items()]
            y += row.height
        return document(self.title, self._width, height, _STYLE, parts)

    @property
    def _width(self) -> int:
        return self._x(self.actors[-1]) + _MARGIN

    def _x(self, name: str) -> int:
        return _MARGIN + 44 * self.timed + self.between * self.actors.index(name)

    def _actor(self, name: str, height: int) -> str:
        x = self._x(name)
        return (
            f'<line class="life" x1="{x}" y1="{_TOP - 18}" x2="{x}" y2="{height - _GAP}"/>'
            f'<rect class="box" x="{x - 54}" y="12" width="108" height="26" rx="5"/>'
            f'<text class="actor" x="{x}" y="30">{escape(name)}</text>'
        )

    def _note(self, actor: str, text: str, y: int) -> str:
        width = round(_LETTER * len(text)) + 14
        x = min(max(self._x(actor), width // 2 + 4), self._width - width // 2 - 4)
        return (
            f'<rect class="state" x="{x - width // 2}" y="{y - 10}" width="{width}" height="18" rx="4"/>'
            f'<text class="note" x="{x}" y="{y + 3}">{escape(text)}</text>'
        )

    def _arrow(self, arrow: Arrow, y: int) -> str:
        start, end = self._x(arrow.source), self._x(arrow.target)
        right = 1 if end > start else -1
        middle = (start + end) // 2
        text = f'<text x="{middle}" y="{y - 6}">{escape(arrow.text)}</text>'
        if arrow.lost:
            stop = round(start + 0.8 * (end - start))
            line = f'<line class="lost" x1="{start}" y1="{y}" x2="{stop - 8 * right}" y2="{y}"/>'
            return f'{text}{line}<text class="cross" x="{stop}" y="{y + 6}">&#215;</text>'
        tip = f"{end},{y} {end - 9 * right},{y - 4} {end - 9 * right},{y + 4}"
        line = f'<line class="frame" x1="{start}" y1="{y}" x2="{end - 8 * right}" y2="{y}"/>'
        return f'{text}{line}<polygon class="head" points="{tip}"/>'
