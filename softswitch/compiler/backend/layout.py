"""How P4 types become C++ types: names, members, and where each field lies on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.registers import CACHE_LINE
from catchment.softswitch.compiler.backend.text import identifier
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    Field,
    FieldsType,
    HeaderType,
    InfIntType,
    IntType,
    SerEnumType,
    StackType,
    StructType,
    TupleType,
    Type,
    UnionType,
    VarbitType,
    bit_width,
)

RUN_WIDTHS = (8, 16, 32, 64)
SHORTEST_RUN = 8
LONG_RUN = 4 * CACHE_LINE
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive header fields of one width that are kept as one array, so that loops over them vectorize."""

    first: int
    length: int
    width: int
    array: str


@dataclass(frozen=True, slots=True)
class WireField:
    """A leaf of a header: its C++ path, type, and offset in bits (after a varbit: from the varbit's end)."""

    path: str
    type: Type
    offset: int
    after_varbit: bool
    run: Run | None


class Types:
    """Names for all types of one program."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._kept: list[Type] = []
        self._taken: set[str] = set()
        self.tuples: dict[TupleType, str] = {}
        self._runs: dict[int, dict[str, tuple[Run, int]]] = {}
        self._in_frames: set[tuple[int, str]] = set()
        self._in_cells: set[tuple[int, str]] = set()

    def width(self, t: Type) -> int:
        """Bits of a scalar's value."""
        if isinstance(t, SerEnumType):
            return t.underlying.width
        if isinstance(t, ErrorType):
            return 16
        if isinstance(t, EnumType):
            return 32
        if isinstance(t, InfIntType):
            return 64
        return bit_width(t)

    def cpp(self, t: Type, loc: Location) -> str:
        """The C++ type that holds a `t`."""
        if isinstance(t, BitType | IntType):
            if t.width == 0:
                raise unsupported(loc, "a type of width 0")
            return f"bits<{t.width}>"
        if isinstance(t, SerEnumType):
            return f"bits<{t.underlying.width}>"
        if isinstance(t, BoolType):
            return "bool"
        if isinstance(t, ErrorType):
            return "bits<16>"
        if isinstance(t, EnumType):
            return "bits<32>"
        if isinstance(t, InfIntType):
            return "bits<64>"
        if isinstance(t, VarbitType):
            return f"Varbit<{t.max_width}>"
        if isinstance(t, StackType):
            return f"Stack<{self.cpp(t.element, loc)}, {t.size}>"
        if isinstance(t, TupleType):
            return self._tuple(t)
        if isinstance(t, FieldsType):
            return self.name(t)
        raise unsupported(loc, f"a value of type {t}")

    def name(self, t: FieldsType) -> str:
        """The C++ name of a header, struct or union."""
        if id(t) not in self._names:
            prefix = {HeaderType: "H", StructType: "S", UnionType: "U"}[type(t)]
            base = name = f"{prefix}_{identifier(t.name)}"
            count = 1
            while name in self._taken:
                count += 1
                name = f"{base}_{count}"
            self._taken.add(name)
            self._names[id(t)] = name
            self._kept.append(t)
        return self._names[id(t)]

    def _tuple(self, t: TupleType) -> str:
        if t not in self.tuples:
            self.tuples[t] = f"T_{len(self.tuples)}"
        return self.tuples[t]

    def runs(self, header: HeaderType) -> dict[str, tuple[Run, int]]:
        """Maps a field's name to the run that it is part of, and its place there."""
        if id(header) not in self._runs:
            found: dict[str, tuple[Run, int]] = {}
            offset = start = 0
            while start < len(header.fields):
                end = start
                first = header.fields[start].type
                aligned = isinstance(first, BitType) and first.width in RUN_WIDTHS and offset % 8 == 0
                while aligned and end < len(header.fields) and _same_width(header.fields[end].type, first):
                    end += 1
                if end - start >= SHORTEST_RUN and isinstance(first, BitType):
                    run = Run(start, end - start, first.width, f"r_{identifier(header.fields[start].name)}")
                    found |= {f.name: (run, i) for i, f in enumerate(header.fields[start:end])}
                end = max(end, start + 1)
                offset += sum(bit_width(f.type) for f in header.fields[start:end])
                start = end
            self._runs[id(header)] = found
        return self._runs[id(header)]

    def leave_in_frames(self, header: HeaderType, runs: Iterable[Run]) -> None:
        """Marks runs of a header that extracting it leaves in the frame (frame_runs.py)."""
        self._in_frames |= {(id(header), run.array) for run in runs}

    def in_frame(self, header: Type, array: str) -> str:
        """The C++ member that says where such a run lies, null once it has been taken out; "" for other runs."""
        return f"frame_{array}" if (id(header), array) in self._in_frames else ""

    def leave_in_cells(self, header: HeaderType, runs: Iterable[Run]) -> None:
        """Marks runs of a header that loops leave in registers (cell_runs.py)."""
        self._in_cells |= {(id(header), run.array) for run in runs}

    def in_cells(self, header: Type, array: str) -> str:
        """The C++ member that says where such a run lies, null where it lies in its array; "" for other runs."""
        return f"cells_{array}" if (id(header), array) in self._in_cells else ""

    def member(self, owner: Type, name: str) -> str:
        """The C++ member that holds field `name` of `owner`."""
        if isinstance(owner, HeaderType) and name in self.runs(owner):
            run, place = self.runs(owner)[name]
            return f"{run.array}[{place}]"
        return f"f_{identifier(name)}"

    def wire(self, header: HeaderType, loc: Location) -> list[WireField]:
        """The leaves in wire order."""
        out: list[WireField] = []
        offset = 0
        after = False
        for path, field, run in self._leaves(header, ""):
            if isinstance(field.type, VarbitType):
                if after:
                    raise unsupported(loc, f"header {header.name} with two varbit fields")
                out.append(WireField(path, field.type, offset, False, None))
                after = True
                continue
            width = self.width(field.type)
            if width < 0 or isinstance(field.type, EnumType | ErrorType):
                raise unsupported(loc, f"field {field.name} of header {header.name}")
            out.append(WireField(path, field.type, offset, after, run))
            offset += width
        if offset % 8:
            raise unsupported(loc, f"header {header.name} of {offset} bits, not a multiple of 8")
        return out

    def _leaves(self, owner: FieldsType, prefix: str) -> Iterator[tuple[str, Field, Run | None]]:
        for field in owner.fields:
            path = prefix + self.member(owner, field.name)
            if isinstance(field.type, StructType):
                yield from self._leaves(field.type, path + ".")
            else:
                run = self.runs(owner).get(field.name) if isinstance(owner, HeaderType) else None
                yield path, field, run[0] if run else None


def contains(t: Type, header: HeaderType) -> bool:
    """Whether a value of type `t` is the header, or has one in it."""
    if t is header:
        return True
    if isinstance(t, StackType):
        return contains(t.element, header)
    return isinstance(t, FieldsType) and any(contains(field.type, header) for field in t.fields)


def _same_width(t: Type, other: Type) -> bool:
    return isinstance(t, BitType) and isinstance(other, BitType) and t.width == other.width


def fixed_bits(header: HeaderType) -> int:
    """The bits of a header on the wire without its varbit."""
    return sum(0 if isinstance(f.type, VarbitType) else bit_width(f.type) for f in header.fields)


def varbit_width(header: HeaderType) -> int:
    """The most bits of the header's varbit, 0 without one."""
    return sum(f.type.max_width for f in header.fields if isinstance(f.type, VarbitType))


def max_bytes(t: Type) -> int:
    """The most bytes that emitting `t` takes."""
    if isinstance(t, HeaderType):
        return (bit_width(t) + 7) // 8
    if isinstance(t, StackType):
        return t.size * max_bytes(t.element)
    if isinstance(t, UnionType):
        return max((max_bytes(f.type) for f in t.fields), default=0)
    if isinstance(t, StructType):
        return sum(max_bytes(f.type) for f in t.fields)
    return 0
