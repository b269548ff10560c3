"""The two stages of a hierarchical gather, drawn from the layout that carries them out."""

from __future__ import annotations

from catchment.host.collectives import Strided
from catchment.host.torch.sharded.layout import ShardLayout
from catchment.svg import document

_NODES, _LANES = 2, 4
_CELL, _ROW, _LEFT, _TITLE, _MARGIN = 30, 26, 112, 32, 12
_COLOURS = ("#1b6ca8", "#2e8b57", "#b7791f", "#8e44ad")  # a lane each
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.stage{font-weight:bold}.chunk{fill:#fff;font-size:11px;"
    "text-anchor:middle}.rank{text-anchor:end}rect.cell{stroke:#999}"
)
_STAGES = ("its own chunk", "gathered between nodes", "gathered in its node")

Chunks = frozenset[int]


def _covered(places: Strided, participant: int, start: int, chunk: int) -> Chunks:
    """Chunks of the buffer where a participant's contribution lands."""
    firsts = [start + participant * places.step + block * places.stride for block in range(places.blocks)]
    return frozenset(first // chunk for first in firsts)


def stages(layout: ShardLayout) -> list[list[Chunks]]:
    """The chunks that each rank has before, between and after the stages."""
    own = [frozenset({rank}) for rank in range(layout.ranks)]
    between, inside = [], []
    for rank in range(layout.ranks):
        lane = rank % layout.lanes
        start = lane * layout.chunk
        got = [_covered(layout.between_nodes, node, start, layout.chunk) for node in range(layout.nodes)]
        between.append(frozenset().union(*got))
    for _ in range(layout.ranks):
        got = [_covered(layout.in_node, lane, 0, layout.chunk) for lane in range(layout.lanes)]
        inside.append(frozenset().union(*got))
    return [own, between, inside]


def draw() -> str:
    """The picture as an SVG document."""
    layout = ShardLayout(numel=_NODES * _LANES * 2, nodes=_NODES, lanes=_LANES)
    width = _LEFT + layout.ranks * _CELL + _MARGIN
    title = f"A layer gathered in two stages by {_NODES} nodes of {_LANES} ranks"
    parts, y = [], 0
    for stage, held in zip(_STAGES, stages(layout), strict=True):
        parts.append(f'<text class="stage" x="{_LEFT}" y="{y + _TITLE - 10}">{stage}</text>')
        y += _TITLE
        for rank, chunks in enumerate(held):
            name = f"node {rank // _LANES}, lane {rank % _LANES}"
            parts.append(f'<text class="rank" x="{_LEFT - 10}" y="{y + 15}">{name}</text>')
            parts.append(_buffer(chunks, _LEFT, y, layout.ranks))
            y += _ROW
    return document(title, width, y + _MARGIN, _STYLE, parts)


def _buffer(chunks: Chunks, left: int, top: int, count: int) -> str:
    cells = []
    for chunk in range(count):
        x = left + chunk * _CELL
        fill = _COLOURS[chunk % _LANES] if chunk in chunks else "#f2f2f2"
        cells.append(f'<rect class="cell" x="{x}" y="{top}" width="{_CELL}" height="{_ROW - 4}" fill="{fill}"/>')
        if chunk in chunks:
            cells.append(f'<text class="chunk" x="{x + _CELL // 2}" y="{top + 15}">{chunk}</text>')
    return "".join(cells)
