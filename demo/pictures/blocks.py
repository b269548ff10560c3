"""The blocks of a design in hardware: a box for each, with the blocks that it feeds and those inside it."""

from __future__ import annotations

import textwrap
from html import escape

from catchment.rtl.hierarchy import Block, blocks_of
from catchment.svg import document

_WIDTH, _MARGIN, _TITLE, _LINE, _GAP, _PAD, _LETTER = 480, 12, 20, 14, 5, 7, 6.2
_FILLS = ("#f7f7f7", "#dbe9f6", "#eef5fb", "#ffffff", "#fdf6dd")
_STYLE = (
    "text{font:11px sans-serif;fill:#222}.name{font-weight:bold;font-size:12px}.module{fill:#555}.feeds{fill:#1b6ca8}"
    ".outside{fill:#a8451b;font-weight:bold}rect.block{stroke:#7ea6cf}"
)


def draw(top: str) -> str:
    """The picture of a module of rtl/ as an SVG document."""
    block = blocks_of(top)
    parts, end = _draw(block, _MARGIN, _MARGIN, _WIDTH - 2 * _MARGIN, 0)
    title = (
        f"The blocks of {top}: each with those beside it that it feeds, and the interfaces of the chip that end in it"
    )
    return document(title, _WIDTH, end + _MARGIN, _STYLE, parts)


def _draw(block: Block, x: int, y: int, width: int, depth: int) -> tuple[list[str], int]:
    """The parts of a block's box, and where it ends."""
    module = f"{block.count} of {block.module}" if block.count > 1 else block.module
    beside = f'<tspan class="module" dx="6">{escape(module)}</tspan>' if module != block.name else ""
    parts = [f'<text x="{x + _PAD}" y="{y + 15}"><tspan class="name">{escape(block.name)}</tspan>{beside}</text>']
    below = y + _TITLE
    for style, names in (("feeds", block.feeds), ("outside", block.outside)):
        text = f"{'→' if style == 'feeds' else '↔'} {', '.join(names)}"
        for line in textwrap.wrap(text, round((width - 2 * _PAD) / _LETTER)) if names else ():
            parts.append(f'<text class="{style}" x="{x + _PAD}" y="{below + 10}">{escape(line)}</text>')
            below += _LINE
    below += _GAP if block.inside or len(parts) > 1 else 1
    inside, below = _inside(block, x + _PAD, below, width - 2 * _PAD, depth + 1)
    fill = _FILLS[depth % len(_FILLS)]
    box = f'<rect class="block" x="{x}" y="{y}" width="{width}" height="{below - y}" rx="5" fill="{fill}"/>'
    return [box, *parts, *inside], below


def _inside(block: Block, x: int, y: int, width: int, depth: int) -> tuple[list[str], int]:
    """The boxes of what is inside, in two columns where nothing is inside those; and where the outer box ends."""
    columns = 2 if len(block.inside) > 1 and not any(each.inside for each in block.inside) else 1
    across = (width - (columns - 1) * _GAP) // columns
    parts: list[str] = []
    for first in range(0, len(block.inside), columns):
        row = [
            _draw(each, x + column * (across + _GAP), y, across, depth)
            for column, each in enumerate(block.inside[first : first + columns])
        ]
        for drawn, _ in row:
            parts += drawn
        y = max(end for _, end in row) + _GAP
    return parts, y
