"""A snapshot of an optimizer node's store: what lies where on disk while training goes on, read from a real store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from catchment.host.layers import LayerSpec, LayerTable
from catchment.host.optimizer.store import Geometry, Store, page_aligned
from catchment.svg import document

_LAYERS, _SNAPSHOT = 3, "night"
_LEFT, _CELL, _BETWEEN, _ROW, _TOP = 148, 30, 14, 46, 50
_LEGEND = {
    "present": "of the present state",
    "kept": "of the snapshot",
    "both": "of both",
    "written": "written, no commit yet",
    "old": "nobody needs it: the next step may write here",
}
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.plane{font-weight:bold;text-anchor:middle}.step{text-anchor:middle}"
    ".present{fill:#cfe3f5;stroke:#1b6ca8}.kept{fill:#fbe9b0;stroke:#c9a227}.both{fill:#cdebd6;stroke:#2e8b57}"
    ".written{fill:#fff;stroke:#1b6ca8;stroke-dasharray:4 3;stroke-width:1.6}.old{fill:#f2f2f2;stroke:#bbb}"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A layer's place in a plane: the training step that it holds, and what needs it (a key of the legend)."""

    step: int
    needed: str


Cells = dict[tuple[int, int], Cell]
"""(plane, layer) -> what is there; places that were never written are left out."""


class _Training:
    """A store in which steps are written one layer after the other."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held = {(0, layer): 0 for layer in range(_LAYERS)}

    def begin(self, step: int, layers: Iterable[int]) -> None:
        """Write a step's versions of some layers."""
        for layer in layers:
            self._write(step, layer)

    def _write(self, step: int, layer: int) -> None:
        store, geometry = self._store, self._store.geometry
        plane = store.place(layer)
        sections = {each.name: page_aligned(geometry.section_bytes(layer, each)) for each in geometry.sections}
        store.put(layer, store.write_layer(plane, layer, sections, (step,)))
        self._held[plane, layer] = step

    def step(self, step: int) -> None:
        """Write what a step has not written yet, and commit it."""
        for layer in range(_LAYERS):
            if self._store.version(layer).steps != (step,):
                self._write(step, layer)
        self._store.commit(step)

    def cells(self) -> Cells:
        """What lies where."""
        return {place: Cell(step, self._needed(*place)) for place, step in self._held.items()}

    def _needed(self, plane: int, layer: int) -> str:
        store = self._store
        kept = _SNAPSHOT in store.snapshots and store.snapshots[_SNAPSHOT].layers[layer].plane == plane
        if store.state.layers[layer].plane == plane:
            return "both" if kept else "present"
        if kept:
            return "kept"
        return "written" if store.version(layer).plane == plane else "old"


def history() -> list[tuple[str, Cells]]:
    """What was done to a store, and what it has after that."""
    table = LayerTable(tuple(LayerSpec.of(layer, f"layer {layer}", [("weight", (8,))]) for layer in range(_LAYERS)))
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.create([folder], Geometry(table, devices=1), lambda _: torch.zeros(8)) as store,
    ):
        training = _Training(store)
        done: tuple[tuple[str, Callable[[], None]], ...] = (
            ("step 1", lambda: training.step(1)),
            ("a snapshot is taken", lambda: store.take_snapshot(_SNAPSHOT)),
            ("step 2, two layers in", lambda: training.begin(2, (0, 1))),
            ("step 2", lambda: training.step(2)),
            ("step 3", lambda: training.step(3)),
            ("step 4", lambda: training.step(4)),
            ("back to the snapshot", lambda: store.restore_snapshot(_SNAPSHOT)),
        )
        for text, do in done:
            do()
            rows.append((text, training.cells()))
    return rows


def draw() -> str:
    """The picture as an SVG document."""
    rows = history()
    planes = 1 + max(plane for _, cells in rows for plane, _ in cells)
    width = _LEFT + planes * (_LAYERS * _CELL + _BETWEEN)
    parts = [
        f'<text class="plane" x="{_x(plane, 0) + _LAYERS * _CELL // 2}" y="30">plane {plane}</text>'
        for plane in range(planes)
    ]
    for at, (text, cells) in enumerate(rows):
        y = _TOP + at * _ROW
        parts.append(f'<text x="{_BETWEEN}" y="{y + 20}">{text}</text>')
        parts += [_cell(_x(*place), y, cell) for place, cell in sorted(cells.items())]
    y = _TOP + len(rows) * _ROW
    for needed, text in _LEGEND.items():
        parts.append(f'<rect class="{needed}" x="{_BETWEEN}" y="{y}" width="18" height="14"/>')
        parts.append(f'<text x="{_BETWEEN + 26}" y="{y + 12}">{text}</text>')
        y += 20
    title = (
        f"A snapshot costs no copy: {_LAYERS} layers, each with the training step that it holds; a step writes beside "
        "what the last commit and the snapshot need"
    )
    return document(title, width, y + 6, _STYLE, parts)


def _x(plane: int, layer: int) -> int:
    return _LEFT + plane * (_LAYERS * _CELL + _BETWEEN) + layer * _CELL


def _cell(x: int, y: int, cell: Cell) -> str:
    return (
        f'<rect class="{cell.needed}" x="{x + 1}" y="{y}" width="{_CELL - 2}" height="{_CELL}" rx="2"/>'
        f'<text class="step" x="{x + _CELL // 2}" y="{y + 20}">{cell.step}</text>'
    )
