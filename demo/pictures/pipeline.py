"""The pipeline of a switch program: a box for each stage, with its tables and arrays."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path

from catchment.demo.pictures.program_stages import Fork, Item, Memory, Stage, extracted, stages
from catchment.softswitch.compiler.driver import compile_program
from catchment.svg import document

_WIDTH, _MARGIN, _TITLE, _LINE, _BETWEEN, _INSET, _LETTER = 480, 12, 20, 14, 14, 7, 6.0
_STYLE = (
    "text{font:11px sans-serif;fill:#222}.name{font-weight:bold;font-size:12px}.stage{fill:#dbe9f6;stroke:#3b6ea5}"
    ".inner{fill:#eef5fb;stroke:#7ea6cf}.frame{fill:#f7f7f7;stroke:#999;stroke-dasharray:5 3}.copy{fill:#fdf6dd;"
    "stroke:#c9a227}.table{fill:#1b6ca8}.register,.counter{fill:#a8451b}.flow{stroke:#555;fill:none}.head{fill:#555}"
    ".label{font-weight:bold;fill:#555}"
)
_NARROW = 0.45
"""Share of the width that the second arm of a fork has when the first has more stages."""


def draw(program: Path) -> str:
    """The picture of a v1model program as an SVG document."""
    compiled = compile_program(program).ir
    inside = _WIDTH - 2 * _MARGIN
    parser = Stage("parser", "", (Memory("", "takes", ", ".join(extracted(compiled.pipeline["p"]))),))
    canvas = _Canvas()
    y = canvas.stage(parser, _MARGIN, _MARGIN, inside, "stage")
    y = canvas.pipeline("ingress", stages(compiled.pipeline["ig"]), canvas.arrow(y), inside)
    copies = Stage("replication", "", (Memory("", "makes", "a copy for each port of a multicast group"),))
    y = canvas.stage(copies, _MARGIN, canvas.arrow(y), inside, "copy")
    y = canvas.pipeline("egress, of each copy", stages(compiled.pipeline["eg"]), canvas.arrow(y), inside)
    y = canvas.stage(Stage("deparser", ""), _MARGIN, canvas.arrow(y), inside, "stage")
    title = f"The pipeline of {program.name}: stages in the order in which they are applied, with their tables"
    return document(title, _WIDTH, y + _MARGIN, _STYLE, canvas.parts)


class _Canvas:
    """Elements so far. Methods that draw say where what comes next may begin."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def arrow(self, y: float, x: float = _WIDTH / 2) -> float:
        """Draw an arrow from one box down to the next."""
        end = y + _BETWEEN
        self.parts.append(
            f'<line class="flow" x1="{x:.0f}" y1="{y:.0f}" x2="{x:.0f}" y2="{end - 5:.0f}"/>'
            f'<polygon class="head" points="{x:.0f},{end:.0f} {x - 4:.0f},{end - 6:.0f} {x + 4:.0f},{end - 6:.0f}"/>'
        )
        return end

    def pipeline(self, label: str, items: Sequence[Item], y: float, width: float) -> float:
        """Draw a control with all of its stages, in a frame."""
        at = len(self.parts)
        end = self.column(items, _MARGIN + _INSET, y + _TITLE + 4, width - 2 * _INSET) + _INSET
        self.parts.insert(at, _box("frame", _MARGIN, y, width, end - y) + _text("label", _MARGIN + 8, y + 15, label))
        return end

    def column(self, items: Sequence[Item], x: float, y: float, width: float) -> float:
        """Draw stages below one another."""
        middle = x + width / 2
        for number, item in enumerate(items):
            if isinstance(item, Fork):
                y = self.fork(item, x, y, width)
            else:
                y = self.stage(item, x, self.arrow(y, middle) if number else y, width, "stage")
        return y

    def fork(self, fork: Fork, x: float, y: float, width: float) -> float:
        """Draw arms beside one another, which part before and meet after."""
        middle, turn = x + width / 2, y + _BETWEEN / 2
        ends: list[tuple[float, float]] = []
        for left, arm_width in _columns(fork, width - _INSET):
            arm = fork.arms[len(ends)]
            at = x + left
            centre = at + arm_width / 2
            self.parts.append(_line([(middle, y), (middle, turn), (centre, turn)]))
            ends.append((centre, self.column(arm, at, self.arrow(turn, centre), arm_width)))
        meet = max(end for _, end in ends) + _BETWEEN / 2
        self.parts += [_line([(centre, end), (centre, meet), (middle, meet)]) for centre, end in ends]
        return meet

    def stage(self, stage: Stage, x: float, y: float, width: float, style: str) -> float:
        """Draw a box with a name, what the stage has, and the stages inside."""
        at = len(self.parts)
        self.parts.append(_text("name", x + 8, y + 15, stage.name))
        below = y + _TITLE
        for memory in stage.memories:
            for line in _lines(memory, width - 16):
                self.parts.append(f'<text x="{x + 8:.0f}" y="{below + 10:.0f}">{line}</text>')
                below += _LINE
        below += 3 if stage.memories else 1
        for one in stage.inside:
            below = self.stage(one, x + _INSET, below, width - 2 * _INSET, "inner") + 4
        end = below + (2 if stage.inside else 0)
        self.parts.insert(at, _box(style, x, y, width, end - y))
        return end


def _columns(fork: Fork, width: float) -> list[tuple[float, float]]:
    """Starts and widths of the arms of a fork."""
    shares = [1 / len(fork.arms)] * len(fork.arms)
    if len(fork.arms) == 2 and len(fork.arms[0]) > len(fork.arms[1]):
        shares = [1 - _NARROW, _NARROW]
    starts = [sum(shares[:arm]) * width + _INSET * arm for arm in range(len(shares))]
    between = _INSET * (len(shares) - 2) / len(shares)  # the first gap is not part of `width`
    return [(start, share * width - between) for start, share in zip(starts, shares, strict=True)]


def _lines(memory: Memory, width: float) -> list[str]:
    """What a stage has, in as many lines as it takes; the kind and the name are marked."""
    head = f"{memory.kind} {memory.name}".strip()
    first, *others = textwrap.wrap(f"{head}: {memory.text}", round(width / _LETTER), subsequent_indent="  ")
    marked = f'<tspan class="{memory.kind}">{escape(first[: len(head)])}</tspan>' if memory.kind else escape(head)
    return [marked + escape(first[len(head) :]), *map(escape, others)]


def _box(style: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{style}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="5"/>'


def _text(style: str, x: float, y: float, text: str) -> str:
    return f'<text class="{style}" x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'


def _line(points: Sequence[tuple[float, float]]) -> str:
    return f'<polyline class="flow" points="{" ".join(f"{x:.0f},{y:.0f}" for x, y in points)}"/>'
