"""Places registers in memory.

Arrays of one size in one block of the pipeline are taken to share an index: their cells of one index lie side by side
(a slot), the cells of sibling instances (the lanes) next to each other at the slot's beginning, so that one packet
touches one run of cache lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import externs

CACHE_LINE = 64


@dataclass(frozen=True, slots=True)
class Place:
    """rt::RegisterLayout, and the array's size."""

    offset: int
    stride: int
    cell_bytes: int
    width: int
    size: int


def cell_bytes(width: int) -> int:
    """sizeof(bits<width>)."""
    for size in (8, 16, 32, 64, 128):
        if width <= size:
            return size // 8
    return (width + 63) // 64 * 8


def walk(instance: ir.Instance) -> Iterator[tuple[ir.Instance, ir.ExternInstance]]:
    """Every extern below an instance, with the instance that has it."""
    for child in instance.children.values():
        if isinstance(child, ir.ExternInstance):
            yield instance, child
        else:
            yield from walk(child)


def array_size(extern: ir.ExternInstance) -> int:
    """The first constructor argument."""
    size = extern.decl.args[0]
    assert isinstance(size, ir.Literal)
    return int(size.value)


def place(
    pipeline: Mapping[str, ir.Instance], global_externs: Sequence[ir.ExternInstance]
) -> tuple[dict[int, Place], int]:
    """Offsets by id of the ExternInstance, and the bytes in all."""
    groups: dict[tuple[str, int], dict[tuple[int, str], list[ir.ExternInstance]]] = {}
    seen: set[int] = set()

    def add(block: str, family: tuple[int, str], extern: ir.ExternInstance) -> None:
        if id(extern) in seen or extern.decl.type is None or extern.decl.type.name != "register":
            return
        seen.add(id(extern))
        groups.setdefault((block, array_size(extern)), {}).setdefault(family, []).append(extern)

    for extern in global_externs:
        add("", (0, ""), extern)
    for block, root in pipeline.items():
        for owner, extern in walk(root):
            add(block, (id(owner.unit), extern.decl.name), extern)

    places: dict[int, Place] = {}
    total = 0
    for (_, size), families in groups.items():
        members = sorted(families.values(), key=lambda family: -len(family))
        offsets: list[tuple[ir.ExternInstance, int, int]] = []
        at = 0
        for family in members:
            for extern in family:
                assert extern.decl.type is not None, "a register is an extern"
                width = externs.element_type(extern.decl.type, extern.decl.loc).width
                cell = cell_bytes(width)
                align = min(cell, 16)
                at = (at + align - 1) // align * align
                offsets.append((extern, at, width))
                at += cell
        unit = CACHE_LINE if at > CACHE_LINE else max((min(cell_bytes(w), 16) for _, _, w in offsets), default=1)
        stride = (at + unit - 1) // unit * unit
        for extern, offset, width in offsets:
            places[id(extern)] = Place(total + offset, stride, cell_bytes(width), width, size)
        total += (stride * size + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE
    return places, total
