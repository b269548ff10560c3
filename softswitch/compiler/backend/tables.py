"""Tables and value sets: key layout, lookup and dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import bitstrings, calls, externs
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.expressions import Expressions
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.backend.scope import Scope, action_name, table_name, variable_name
from catchment.softswitch.compiler.types import BoolType, ExternType, TupleType, Type

MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional")


@dataclass(frozen=True, slots=True)
class KeyField:
    """rt::KeyField: where one field of a key lies among its words."""

    word: int
    shift: int
    words: int
    is_range: bool


@dataclass(frozen=True, slots=True)
class KeyLayout:
    """rt::TableLayout."""

    fields: tuple[KeyField, ...]
    key_words: int
    ranges: int
    exact: bool


def words(width: int) -> int:
    return (width + 63) // 64


def key_layout(fields: Sequence[tuple[int, str]]) -> KeyLayout:
    """Packs fields (width, match kind): small ones share a word, wide ones begin their own."""
    places = []
    used: list[int] = []  # bits taken of each word
    ranges = 0
    for width, kind in fields:
        if kind == "range":
            places.append(KeyField(ranges, 0, 1, True))
            ranges += 1
            continue
        if width <= 64 and used and used[-1] + width <= 64:
            places.append(KeyField(len(used) - 1, used[-1], 1, False))
            used[-1] += width
            continue
        places.append(KeyField(len(used), 0, words(width), False))
        used += [64] * (words(width) - 1) + [width - 64 * (words(width) - 1)]
    exact = all(kind == "exact" for _, kind in fields)
    return KeyLayout(tuple(places), max(1, len(used)), ranges, exact)


def match_keys(table: ir.Table) -> list[ir.Key]:
    """The keys that entries have: all but those of the selector."""
    for key in table.keys:
        if key.kind not in (*MATCH_KINDS, "selector"):
            raise unsupported(key.loc, f"match kind {key.kind}")
    return [k for k in table.keys if k.kind != "selector"]


def table_layout(types: Types, table: ir.Table) -> KeyLayout:
    fields = []
    for key in match_keys(table):
        width = types.width(key.expr.type)
        if width <= 0:
            raise unsupported(key.loc, f"a key of type {key.expr.type}")
        if key.kind == "range" and width > 64:
            raise unsupported(key.loc, f"a range key of {width} bits")
        fields.append((width, key.kind))
    return key_layout(fields)


def key_words(ex: Expressions, layout: KeyLayout, values: Sequence[tuple[int, str]]) -> tuple[str, str]:
    """C++ initialisers of the key and of the range values, from (width, value) in field order."""
    parts: list[list[str]] = [[] for _ in range(layout.key_words)]
    ranges = []
    for place, (width, value) in zip(layout.fields, values, strict=True):
        if place.is_range:
            ranges.append(f"std::uint64_t{{{value}}}")
        elif width <= 64:
            word = f"static_cast<std::uint64_t>({value})"
            parts[place.word].append(f"({word} << {place.shift})" if place.shift else word)
        else:
            for i in range(place.words):
                parts[place.word + i].append(f"limb_of({value}, {i})")
    del ex
    return ", ".join(" | ".join(p) or "std::uint64_t{0}" for p in parts), ", ".join(ranges)


def lookup(layout: KeyLayout, table: str, key: str, ranges: str) -> str:
    """The expression that finds the row."""
    array = f"std::array<std::uint64_t, {layout.key_words}>{{{key}}}"
    if layout.exact:
        return f"match_exact<{layout.key_words}>({table}, {array})"
    inside = f"std::array<std::uint64_t, {layout.ranges}>{{{ranges}}}"
    return f"match_tuples<{layout.key_words}, {layout.ranges}>({table}, {array}, {inside})"


class TableFunction:
    """Writes one table's member function."""

    def __init__(self, scope: Scope, table: ir.Table) -> None:
        self.scope = scope
        self.ex = Expressions(scope)
        self.table = table
        self.may_exit = scope.program.exits.table(table)

    def write(self) -> None:
        out = self.scope.out
        name = table_name(self.table)
        with out.block(f"Applied {name}()"):
            out.line(f"const Table& table = *s.{name};")
            if match_keys(self.table):
                self._find()
            else:
                out.line("const Row* row = nullptr;")
            out.line("const bool hit = row != nullptr;")
            self._on_hit()
            self._resolve()
            if self.may_exit:
                out.line("bool exited = false;")
            self._dispatch()
            out.line(f"return {{hit, action->action, {'exited' if self.may_exit else 'false'}}};")

    def _key_value(self, key: ir.Key) -> str:
        """The field; of an invalid header it is zero."""
        value = self.ex.value(key.expr)
        cpp = self.ex.cpp(key.expr.type, key)
        if bitstrings.is_header_field(key.expr):
            assert isinstance(key.expr, ir.FieldRef)
            value = f"({self.ex.value(key.expr.base)}.valid ? {value} : {cpp}{{}})"
        return self.ex.keep(key.expr.type, value, key.expr)

    def _find(self) -> None:
        layout = table_layout(self.scope.program.types, self.table)
        values = []
        for key in match_keys(self.table):
            text = self._key_value(key)
            values.append((self.ex.width(key.expr.type), bitstrings.as_bits(key.expr.type, text)))
        found = lookup(layout, "table", *key_words(self.ex, layout, values))
        self.scope.out.line(f"const Row* row = {found};")

    def _on_hit(self) -> None:
        actions = []
        if self.table.counters is not None:
            actions += ["row->packets += 1;", "row->bytes += pkt.length;"]
        if self.table.support_timeout:
            actions.append("row->last_hit_us = pkt.engine.now_us;")
        if self.table.meters is not None:
            meter = self.table.meters
            by_bytes = any(isinstance(a, ir.EnumValue) and a.member == "bytes" for a in meter.args)
            units = "pkt.length" if by_bytes else "1"
            actions.append(f"color_{meter.name} = row->meter->execute(pkt.engine.now_us, {units}, pkt.length);")
        if actions:
            self.scope.out.line(f"if (hit) {{ {' '.join(actions)} }}")

    def _resolve(self) -> None:
        out = self.scope.out
        out.line("if (!hit) row = table.default_row;")
        selectors = [k for k in self.table.keys if k.kind == "selector"]
        implementation = self.table.implementation
        if implementation is None:
            out.line("const BoundAction* action = row->action;")
            return
        choice = "0"
        if selectors and implementation.type is not None and implementation.type.name == "action_selector":
            tuple_values = ir.Aggregate(self.table.loc, _tuple_of(selectors), tuple(k.expr for k in selectors))
            choice = bitstrings.hashed(self.ex, implementation.args[0], tuple_values, with_payload=False)
        out.line(f"const BoundAction* action = resolve(*row, {choice});")
        # A group without a live member runs the default action.
        out.line("if (action == nullptr) action = table.default_row->action;")

    def _dispatch(self) -> None:
        out = self.scope.out
        with out.block("switch (action->action)"):
            for i, choice in enumerate(self.table.actions):
                with out.block(f"case {i}:"):
                    self._run(choice)
                    out.line("break;")
            out.line("default: break;")

    def _run(self, choice: ir.TableAction) -> None:
        action = choice.action
        offset = 0
        data: list[str] = []
        for param in action.data:
            width = self.ex.width(param.type)
            data.append(_argument(param.type, width, offset))
            offset += words(width)
        directed = [
            (p, a) for p, a in zip(action.params, choice.bound, strict=True) if p.direction is not ir.Direction.NONE
        ]
        for param, bound in directed:
            if bound is None:
                raise unsupported(choice.loc, f"action {action.name} without an argument for {param.name}")
        bound_arguments = calls.Arguments(
            self.ex, [p for p, _ in directed], [a for _, a in directed if a is not None], by_reference=False
        )
        from_data, from_list = iter(data), iter(bound_arguments.texts)
        texts = [next(from_data if p.direction is ir.Direction.NONE else from_list) for p in action.params]
        text = f"{action_name(action)}({', '.join(texts)})"
        exits = self.scope.program.exits.action(action)
        self.scope.out.line(f"{'exited = ' if exits else ''}{text};")
        bound_arguments.copy_back()


def _tuple_of(keys: list[ir.Key]) -> Type:
    return TupleType(tuple(k.expr.type for k in keys))


def _argument(t: Type, width: int, offset: int) -> str:
    if isinstance(t, BoolType):
        return f"action->data[{offset}] != 0"
    if width <= 64:
        return f"static_cast<bits<{width}>>(action->data[{offset}])"
    limbs = ", ".join(f"action->data[{offset + i}]" for i in range(words(width)))
    return f"from_limbs<{width}>({{{limbs}}})"


def parameter(ex: Expressions, param: ir.Param) -> str:
    """A C++ parameter of an action or function."""
    if isinstance(param.type, ExternType):
        return f"[[maybe_unused]] {externs.reference(param.type, param.loc)} {variable_name(param)}"
    cpp = ex.cpp(param.type, param)
    if param.direction in (ir.Direction.OUT, ir.Direction.INOUT):
        return f"[[maybe_unused]] {cpp}& {variable_name(param)}"
    if calls.is_big(param.type):
        return f"[[maybe_unused]] const {cpp}& {variable_name(param)}"
    return f"[[maybe_unused]] const {cpp} {variable_name(param)}"
