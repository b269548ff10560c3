"""C++ definitions of a program's headers, unions, structs and tuples."""

from __future__ import annotations

from itertools import groupby

from catchment.softswitch.compiler.backend.layout import (
    LONG_RUN,
    Types,
    WireField,
    fixed_bits,
    varbit_width,
)
from catchment.softswitch.compiler.backend.registers import CACHE_LINE
from catchment.softswitch.compiler.backend.text import Writer
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BoolType,
    FieldsType,
    HeaderType,
    StackType,
    StructType,
    TupleType,
    Type,
    UnionType,
    VarbitType,
)

_FIXED, _MOVING = "fixed", "moving"
"""Whether the place of a field within its header is known before the program runs."""


class Declarations:
    """Writes each type once, after those it is made of."""

    def __init__(self, types: Types) -> None:
        self._types = types
        self._done: set[int] = set()
        self._done_tuples: set[TupleType] = set()
        self.out = Writer()

    def require(self, t: Type, loc: Location) -> None:
        """Defines `t` if it is a type of the program. `loc` is where it is used."""
        if isinstance(t, StackType):
            self.require(t.element, loc)
        elif isinstance(t, TupleType):
            self._tuple(t, loc)
        elif isinstance(t, FieldsType) and id(t) not in self._done:
            self._done.add(id(t))
            for field in t.fields:
                self.require(field.type, field.loc)
            if isinstance(t, HeaderType):
                self._header(t)
            elif isinstance(t, UnionType):
                self._union(t)
            elif isinstance(t, StructType):
                self._struct(t)

    def _members(self, t: FieldsType) -> None:
        for field in t.fields:
            self.out.line(f"{self._types.cpp(field.type, field.loc)} {self._types.member(t, field.name)}{{}};")

    def _tuple(self, t: TupleType, loc: Location) -> None:
        if t in self._done_tuples:
            return
        self._done_tuples.add(t)
        for element in t.elements:
            self.require(element, loc)
        name = self._types.cpp(t, loc)
        with self.out.block(f"struct {name}", "};"):
            for i, element in enumerate(t.elements):
                self.out.line(f"{self._types.cpp(element, loc)} f_{i}{{}};")
            self.out.line(f"friend bool operator==(const {name}&, const {name}&) = default;")

    def _struct(self, t: StructType) -> None:
        name = self._types.name(t)
        with self.out.block(f"struct {name}", "};"):
            self._members(t)
            self.out.line(f"friend bool operator==(const {name}&, const {name}&) = default;")

    def _union(self, t: UnionType) -> None:
        name = self._types.name(t)
        members = [self._types.member(t, f.name) for f in t.fields]
        with self.out.block(f"struct {name}", "};"):
            self._members(t)
            any_valid = " || ".join(f"{m}.valid" for m in members) or "false"
            self.out.line(f"[[nodiscard]] bool is_valid() const {{ return {any_valid}; }}")
            for member in members:
                with self.out.block(f"void only_{member}()"):
                    for other in members:
                        if other != member:
                            self.out.line(f"{other}.valid = false;")
            self.out.line(f"friend bool operator==(const {name}&, const {name}&) = default;")

    def _header(self, t: HeaderType) -> None:
        name = self._types.name(t)
        fields = self._types.wire(t, t.loc)
        varbit = next((f for f in fields if isinstance(f.type, VarbitType)), None)
        with self.out.block(f"struct {name}", "};"):
            self.out.line(f"static constexpr std::uint32_t kBytes = {fixed_bits(t) // 8};")
            self.out.line(f"static constexpr std::uint32_t kMaxVarbit = {varbit_width(t)};")
            self.out.line("bool valid{};")
            runs = self._types.runs(t)
            for field in t.fields:
                if field.name not in runs:
                    cpp = self._types.cpp(field.type, field.loc)
                    self.out.line(f"{cpp} {self._types.member(t, field.name)}{{}};")
                elif runs[field.name][1] == 0:
                    run = runs[field.name][0]
                    # Vectors of a long run lie in one cache line each.
                    align = f"alignas({CACHE_LINE}) " if run.length * run.width // 8 >= LONG_RUN else ""
                    self.out.line(f"{align}bits<{run.width}> {run.array}[{run.length}]{{}};")
                    if in_frame := self._types.in_frame(t, run.array):
                        self.out.line(f"const std::uint8_t* {in_frame}{{}};")
                    if in_cells := self._types.in_cells(t, run.array):
                        self.out.line(f"const std::uint8_t* {in_cells}{{}};")
            size = f"kBytes + {varbit.path}.width / 8" if varbit else "kBytes"
            self.out.line(f"[[nodiscard]] std::uint32_t size() const {{ return {size}; }}")
            unused = "" if fields else "[[maybe_unused]] "
            width = "std::uint32_t varbit_bits" if varbit else "std::uint32_t"
            with self.out.block(f"void load({unused}const std::uint8_t* p, {width} = 0)"):
                if varbit and any(f.after_varbit for f in fields):
                    self.out.line("const std::size_t shift = varbit_bits;")
                self.out.line("valid = true;")
                self._transfer(t, fields, store=False)
            with self.out.block(f"void store({unused}std::uint8_t* p, [[maybe_unused]] bool streams = false) const"):
                if varbit and any(f.after_varbit for f in fields):
                    self.out.line(f"const std::size_t shift = {varbit.path}.width;")
                self._transfer(t, fields, store=True)
            with self.out.block(f"friend bool operator==(const {name}& a, const {name}& b)"):
                self._equality(t)

    def _equality(self, t: HeaderType) -> None:
        self.out.line("if (a.valid != b.valid) return false;")
        self.out.line("if (!a.valid) return true;")
        runs = self._types.runs(t)
        for field in t.fields:
            member = self._types.member(t, field.name)
            if field.name not in runs:
                self.out.line(f"if (!(a.{member} == b.{member})) return false;")
            elif runs[field.name][1] == 0:
                array = runs[field.name][0].array
                self.out.line(f"if (std::memcmp(a.{array}, b.{array}, sizeof a.{array}) != 0) return false;")
        self.out.line("return true;")

    def _transfer(self, header: HeaderType, fields: list[WireField], *, store: bool) -> None:
        for together, group in groupby(fields, self._neighbours):
            members = list(group)
            if members[0].run is not None:
                self._transfer_run(header, members[0], store=store)
            elif store and together is _FIXED and sum(self._types.width(field.type) for field in members) % 8 == 0:
                self._store_words(members)
            else:
                for field in members:
                    self._transfer_alone(field, store=store)

    def _neighbours(self, field: WireField) -> object:
        """The same for neighbours that may be transferred together."""
        if field.run is not None:
            return field.run
        return _MOVING if field.after_varbit or isinstance(field.type, VarbitType) else _FIXED

    def _store_words(self, fields: list[WireField]) -> None:
        """Fields that are whole bytes together, at a known place."""
        first = fields[0].offset
        size = sum(self._types.width(field.type) for field in fields) // 8
        with self.out.block():
            self.out.line(f"FieldWords<{size}> words;")
            for field in fields:
                width, value = self._types.width(field.type), self._bits_of(field)
                self.out.line(f"words.put<{width}>({field.offset - first}, {value});")
            self.out.line(f"words.store(p + {first // 8});")

    @staticmethod
    def _bits_of(field: WireField) -> str:
        return f"static_cast<bits<1>>({field.path})" if isinstance(field.type, BoolType) else field.path

    def _transfer_alone(self, field: WireField, *, store: bool) -> None:
        offset = f"shift + {field.offset}" if field.after_varbit else str(field.offset)
        if isinstance(field.type, VarbitType):
            call = f"store(p, {offset})" if store else f"load(p, {offset}, varbit_bits)"
            self.out.line(f"{field.path}.{call};")
            return
        width = self._types.width(field.type)
        if store:
            self.out.line(f"store_bits<{width}>(p, {offset}, {self._bits_of(field)});")
        else:
            tail = " != 0" if isinstance(field.type, BoolType) else ""
            self.out.line(f"{field.path} = load_bits<{width}>(p, {offset}){tail};")

    def _transfer_run(self, header: HeaderType, field: WireField, *, store: bool) -> None:
        run = field.run
        assert run is not None
        base = f"p + (shift + {field.offset}) / 8" if field.after_varbit else f"p + {field.offset // 8}"
        in_frame = self._types.in_frame(header, run.array)
        if in_frame and store:
            self.out.line(f"if ({in_frame} != nullptr) std::memcpy({base}, {in_frame}, sizeof {run.array});")
            if in_cells := self._types.in_cells(header, run.array):
                cells = f"store_cells<bits<{run.width}>, {run.length}>({base}, {in_cells}, streams)"
                self.out.line(f"else if ({in_cells} != nullptr) {cells};")
            self.out.line(f"else store_run({base}, {run.array}, streams);")
            return
        if in_frame:
            self.out.line(f"{in_frame} = {base};")
            return
        if not field.after_varbit:
            call = f"store_run({base}, {run.array}, streams);" if store else f"load_run({run.array}, {base});"
            self.out.line(call)
            return
        # The varbit may have left the run unaligned.
        at = f"shift + {field.offset} + {run.width} * i"
        body = (
            f"store_bits<{run.width}>(p, {at}, {run.array}[i]);"
            if store
            else f"{run.array}[i] = load_bits<{run.width}>(p, {at});"
        )
        self.out.line(f"for (std::size_t i = 0; i < {run.length}; ++i) {body}")
