"""Applying a table: its key, its best entry, its action."""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import HeaderType
from catchment.softswitch.interpreter.bitstrings import hash_of, tuple_of
from catchment.softswitch.interpreter.entries import BoundAction, Row, TableState
from catchment.softswitch.interpreter.parser_states import ParserStates
from catchment.softswitch.interpreter.places import Place, Variables
from catchment.softswitch.interpreter.values import Header, show, to_bits


class Tables(ParserStates):
    """Applies the tables of the running control."""

    def table_apply(self, table: ir.Table) -> tuple[bool, ir.Action]:
        assert self.frame.instance is not None
        state = self.packet.state.tables[ir.full_name(self.frame.instance.path, table.cp_name)]
        keys = [k for k in table.keys if k.kind != "selector"]
        values = [self._key(key) for key in keys]
        row = state.lookup(values) if keys else None
        if self.trace.on:
            shown = ", ".join(f"{k.name}={show(v)}" for k, v in zip(keys, values, strict=True))
            self.trace.line(f"table {state.name}({shown}): {'hit' if row is not None else 'miss'}", table.loc)
        if row is not None:
            self._on_hit(table, row)
        bound = self._action(state, row)
        self.trace.depth += 1
        try:
            self._run(bound)
        finally:
            self.trace.depth -= 1
        return row is not None, bound.choice.action

    def _key(self, key: ir.Key) -> int:
        """The key as bits; a field of an invalid header counts as zero."""
        expr = key.expr
        if isinstance(expr, ir.FieldRef) and isinstance(expr.base.type, HeaderType):
            header = self.composite(expr.base)
            assert isinstance(header, Header)
            if not header.valid:
                return 0
        return to_bits(self.value(expr), expr.type)

    def _on_hit(self, table: ir.Table, row: Row) -> None:
        if table.counters is not None:
            row.packets += 1
            row.bytes += self.packet.length
        if table.meters is not None:
            self.frame.colors[table.meters.name] = 0  # direct meters are not configured here: green

    def _action(self, state: TableState, row: Row | None) -> BoundAction:
        target = row.action if row is not None else state.default
        if isinstance(target, BoundAction):
            return target
        assert state.profile is not None
        found = state.profile.resolve(target, self._choice(state.table) if state.profile.selector else 0)
        if found is None:
            assert isinstance(state.default, BoundAction)
            return state.default
        return found

    def _choice(self, table: ir.Table) -> int:
        selectors = [k.expr for k in table.keys if k.kind == "selector"]
        if not selectors:
            return 0
        assert table.implementation is not None
        return hash_of(self, table.implementation.args[0], tuple_of(table.loc, selectors))

    def _run(self, bound: BoundAction) -> None:
        action = bound.choice.action
        variables: Variables = {}
        outs: list[tuple[ir.Param, Place]] = []
        directed = [
            (param, arg)
            for param, arg in zip(action.params, bound.choice.bound, strict=True)
            if param.direction is not ir.Direction.NONE and arg is not None
        ]
        variables, outs = self.copy_in([p for p, _ in directed], [a for _, a in directed])
        variables.update(zip(action.data, bound.data, strict=True))
        self.run_action(action, variables, outs)
