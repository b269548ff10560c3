"""Actions and tables."""

from __future__ import annotations

from abc import abstractmethod

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.annotations import lower_annotations
from catchment.softswitch.compiler.check.context import Place, UnitState, annotation_name
from catchment.softswitch.compiler.check.entries import (
    assign_priorities,
    check_annotated,
    refuse_duplicates,
    without_empty,
)
from catchment.softswitch.compiler.check.keynames import key_name
from catchment.softswitch.compiler.check.keysets import KeysetChecker
from catchment.softswitch.compiler.check.values import describe
from catchment.softswitch.compiler.diagnostics import Diagnostics, Refusal, shown
from catchment.softswitch.compiler.scope import ActionSymbol, InstanceSymbol, OpenSymbol, TableSymbol
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    ExternType,
    InfIntType,
    IntType,
    SerEnumType,
    VarbitType,
    bit_width,
)

_KEY_TYPES = BitType | IntType | BoolType | EnumType | SerEnumType | ErrorType | VarbitType
_ALLOWED = {
    "exact": (ir.MatchValueKind.EXACT,),
    "lpm": (ir.MatchValueKind.EXACT, ir.MatchValueKind.MASK, ir.MatchValueKind.ANY),
    "ternary": (ir.MatchValueKind.EXACT, ir.MatchValueKind.MASK, ir.MatchValueKind.ANY),
    "range": (ir.MatchValueKind.EXACT, ir.MatchValueKind.RANGE, ir.MatchValueKind.ANY),
    "optional": (ir.MatchValueKind.EXACT, ir.MatchValueKind.ANY),
}


class TableChecker(KeysetChecker):
    """Declares actions and tables."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics)
        self._action_syntax: dict[ir.Action, tuple[ast.Parameter, ...]] = {}

    @property
    def action_syntax(self) -> dict[ir.Action, tuple[ast.Parameter, ...]]:
        """The parameters of each action as written."""
        return self._action_syntax

    # actions

    def action(self, written: ast.ActionDecl, is_global: bool) -> ir.Action:
        """Checks and declares an action."""
        with self.scoped(), self.within(Place.ACTION, unit=UnitState() if is_global else None):
            params = self.lower_params(written.params)
            self._check_data(params)
            body = self.block(written.body)
        notes = lower_annotations(written.annotations)
        cp_name = annotation_name(notes, written.name)
        action = ir.Action(written.loc, written.name, cp_name, params, body, is_global, notes)
        self._action_syntax[action] = written.params
        self.scope.declare(written.name, ActionSymbol(written.loc, action))
        return action

    def _check_data(self, params: tuple[ir.Param, ...]) -> None:
        data_seen: ir.Param | None = None
        for param in params:
            if param.direction is ir.Direction.NONE:
                data_seen = param
                if isinstance(param.type, ExternType | InfIntType):
                    raise Refusal(param.loc, f"{param.name}: action data cannot be of type {param.type}")
            elif data_seen is not None:
                raise Refusal(data_seen.loc, f"{data_seen.name}: parameters without direction must come last")

    # tables

    def table(self, written: ast.TableDecl) -> ir.Table:
        """Checks and declares a table."""
        with self.within(Place.TABLE), self.scoped() as inside:
            inside.declare(written.name, OpenSymbol(written.loc))
            table = self._table(written)
        self.scope.declare(written.name, TableSymbol(written.loc, table))
        return table

    def _table(self, written: ast.TableDecl) -> ir.Table:
        notes = lower_annotations(written.annotations)
        keys = tuple(self._key(k) for k in written.keys or ())
        if sum(k.kind == "lpm" for k in keys) > 1:
            raise Refusal(written.loc, f"{written.name}: a table can have only one lpm key")
        if written.actions is None:
            raise Refusal(written.loc, f"{written.name}: table does not have an `actions` property")
        choices = self._choices(written.actions)
        properties = self._properties(written)
        default, choices = self._default(written, properties.get("default_action"), choices)
        implementation = self._object(written, properties, "implementation", ("action_profile", "action_selector"))
        size = properties.get("size")
        priority_order = properties.get("largest_priority_wins")
        return ir.Table(
            loc=written.loc,
            name=written.name,
            cp_name=annotation_name(notes, written.name),
            keys=keys,
            actions=choices,
            default_action=default,
            const_default="default_action" in properties and properties["default_action"].is_const,
            entries=self._entries(written, keys, choices, properties),
            const_entries=written.entries is not None and written.entries.is_const,
            largest_priority_wins=priority_order is None or self._flag(priority_order),
            size=0 if size is None else self.size(size.value, "the size of a table"),
            implementation=implementation,
            counters=self._object(written, properties, "counters", ("direct_counter",)),
            meters=self._object(written, properties, "meters", ("direct_meter",)),
            support_timeout="support_timeout" in properties and self._flag(properties["support_timeout"]),
            annotations=notes,
        )

    def _properties(self, written: ast.TableDecl) -> dict[str, ast.PropertyDecl]:
        found: dict[str, ast.PropertyDecl] = {}
        for written_property in written.properties:
            if written_property.name in found:
                raise Refusal(written_property.loc, f"{written_property.name}: duplicate table property")
            found[written_property.name] = written_property
        return found

    def _delta(self, written: ast.PropertyDecl) -> int:
        value = self.constant_int(written.value, "priority_delta")
        if value < 1:
            raise Refusal(written.value.loc, f"{shown(value)}: priority_delta must be 1 or more")
        return value

    def _flag(self, written: ast.PropertyDecl) -> bool:
        value = self.expr(written.value)
        if isinstance(value, ir.Literal) and isinstance(value.value, bool):
            return value.value
        raise Refusal(written.value.loc, f"{written.name}: the value must be true or false")

    def _key(self, written: ast.KeyDecl) -> ir.Key:
        expr = self.settle(self.expr(written.expr))
        if not isinstance(expr.type, _KEY_TYPES):
            raise Refusal(written.loc, f"a table key cannot be of type {describe(expr)}")
        if written.kind not in self.match_kinds:
            raise Refusal(written.kind_loc, f"{written.kind}: no such match kind")
        if written.kind not in _ALLOWED and written.kind != "selector":
            raise Refusal(written.kind_loc, f"{written.kind}: this match kind is not supported")
        if written.kind in ("lpm", "range") and not isinstance(expr.type, BitType | IntType | BoolType | SerEnumType):
            raise Refusal(written.loc, f"a key of type {expr.type} cannot be matched by {written.kind}")
        notes = lower_annotations(written.annotations)
        name = annotation_name(notes, key_name(expr) or "")
        if not name:
            raise Refusal(written.loc, "a complex key needs a name", 'add @name("...") after its match kind')
        return ir.Key(written.loc, expr, written.kind, name, notes)

    # the actions of a table

    def _find_action(self, written: ast.ActionRef) -> ir.Action:
        symbol = self.lookup(written.name, written.loc, written.absolute)
        if not isinstance(symbol, ActionSymbol):
            raise Refusal(written.loc, f"{written.name}: is not an action")
        return symbol.action

    def _choices(self, written: tuple[ast.ActionRef, ...]) -> tuple[ir.TableAction, ...]:
        choices: list[ir.TableAction] = []
        for ref in written:
            action = self._find_action(ref)
            for data in action.data:
                if not isinstance(data.type, BitType | IntType | BoolType | EnumType | SerEnumType):
                    message = f"{data.name}: action data of type {data.type}"
                    raise Refusal(data.loc, message, "action data are bit<>, int<>, bool, type or enum")
            if any(c.action is action for c in choices):
                raise Refusal(ref.loc, f"{ref.name}: duplicate action name in table")
            choices.append(self._choice(ref, action))
        return tuple(choices)

    def _choice(self, ref: ast.ActionRef, action: ir.Action) -> ir.TableAction:
        params, syntax = action.params, self._action_syntax[action]
        directed = [(p, s) for p, s in zip(params, syntax, strict=True) if p.direction is not ir.Direction.NONE]
        args = ref.args or ()
        if len(args) > len(directed):
            message = f"{ref.name}: only parameters with a direction can be bound in the list of actions"
            raise Refusal(args[len(directed)].loc, message)
        aligned = self.align(tuple(s for _, s in directed), args, ref.loc, ref.name)
        values = {p: self._bound_argument(p, a, ref) for (p, _), a in zip(directed, aligned, strict=True)}
        notes = lower_annotations(ref.annotations)
        table_only = any(a.name == "tableonly" for a in notes)
        default_only = any(a.name == "defaultonly" for a in notes)
        return ir.TableAction(ref.loc, action, tuple(values.get(p) for p in params), notes, table_only, default_only)

    def _bound_argument(self, param: ir.Param, arg: ast.Argument | None, ref: ast.ActionRef) -> ir.Expr:
        if arg is None:
            raise Refusal(ref.loc, f"{param.name}: parameter of action {ref.name} must be bound")
        value = self.argument(param, arg)
        for node in ir.walk(value):
            if isinstance(node, ir.TableApply):
                raise Refusal(node.loc, f"{node.table.name}: a table cannot be applied in the argument of an action")
        return value

    def _action_value(self, ref: ast.ActionRef, choices: tuple[ir.TableAction, ...]) -> ir.ActionValue:
        """An action with its data, in an entry or as default; its bound arguments may be repeated or left out."""
        action = self._find_action(ref)
        choice = next((c for c in choices if c.action is action), None)
        if choice is None:
            raise Refusal(ref.loc, f"{ref.name}: not in the table's list of actions")
        syntax = dict(zip(action.params, self._action_syntax[action], strict=True))
        args = ref.args or ()
        data = action.data
        directed = len(action.params) - len(data)
        if directed and len(args) == len(action.params) and args[0].name is None:
            for param, bound, arg in zip(action.params, choice.bound, args[:directed], strict=False):
                if bound is None or not ir.same(self.argument(param, arg), bound):
                    raise Refusal(arg.loc, f"{param.name}: the argument is not that of the table's list of actions")
            args = args[directed:]
        elif directed and args and args[0].name is not None:
            args = tuple(a for a in args if any(a.name == p.name for p in data))
        aligned = self.align(tuple(syntax[p] for p in data), args, ref.loc, ref.name)
        values = self.bind(data, tuple(syntax[p] for p in data), aligned, ref.loc, constants=True, has_body=True)
        return ir.ActionValue(ref.loc, choice, values)

    def _default(
        self, table: ast.TableDecl, written: ast.PropertyDecl | None, choices: tuple[ir.TableAction, ...]
    ) -> tuple[ir.ActionValue, tuple[ir.TableAction, ...]]:
        if written is not None:
            value = self._action_value(_as_action_ref(written), choices)
            if value.choice.table_only:
                raise Refusal(written.loc, f"{value.choice.action.name}: marked @tableonly, it cannot be the default")
            return value, choices
        symbol = self.globals.find("NoAction")
        if not isinstance(symbol, ActionSymbol):
            raise Refusal(table.loc, f"{table.name}: has no default_action, and NoAction is not declared")
        choice = next((c for c in choices if c.action is symbol.action), None)
        if choice is None:
            notes = (ir.Annotation("defaultonly"),)
            choice = ir.TableAction(table.loc, symbol.action, (), notes, table_only=False, default_only=True)
            choices = (*choices, choice)
        return ir.ActionValue(table.loc, choice, ()), choices

    def _object(
        self, table: ast.TableDecl, properties: dict[str, ast.PropertyDecl], name: str, types: tuple[str, ...]
    ) -> ir.InstanceDecl | None:
        written = properties.get(name)
        if written is None:
            return None
        value = written.value
        if isinstance(value, ast.Call) and isinstance(value.callee, ast.TypeName):
            return self.property_instance(value, types, written, table)
        symbol = self.lookup(value.name, value.loc, value.absolute) if isinstance(value, ast.Name) else None
        if isinstance(symbol, InstanceSymbol) and symbol.decl.type is not None and symbol.decl.type.name in types:
            return symbol.decl
        raise Refusal(value.loc, f"{name}: the value must be a {' or '.join(types)}")

    @abstractmethod
    def property_instance(
        self, call: ast.Call, types: tuple[str, ...], written: ast.PropertyDecl, table: ast.TableDecl
    ) -> ir.InstanceDecl:
        """An object made in a table's property itself: it goes by the table's name."""

    # entries

    def _entries(
        self,
        table: ast.TableDecl,
        keys: tuple[ir.Key, ...],
        choices: tuple[ir.TableAction, ...],
        properties: dict[str, ast.PropertyDecl],
    ) -> tuple[ir.Entry, ...]:
        written = table.entries
        delta = 1 if "priority_delta" not in properties else self._delta(properties["priority_delta"])
        if written is None:
            return ()
        if not keys and written.entries:
            message = f"{table.name}: entries of a table without keys"
            raise Refusal(written.entries[0].loc, message, "its default_action always runs")
        if "implementation" in properties and written.entries:
            message = f"{table.name}: entries of a table with an implementation, whose members the control plane adds"
            raise Refusal(written.entries[0].loc, message, "leave the implementation out, or the entries")
        matched = tuple(k for k in keys if k.kind != "selector")
        entries = tuple(self._entry(e, matched, choices, written.is_const) for e in written.entries)
        if written.is_const:
            for entry in entries:
                if entry.priority is not None:
                    raise Refusal(entry.loc, "const entries cannot have priorities: the first that matches wins")
            check_annotated(entries)
        else:
            wins = properties.get("largest_priority_wins")
            entries = assign_priorities(entries, matched, largest_wins=wins is None or self._flag(wins), delta=delta)
        entries = without_empty(entries)
        refuse_duplicates(entries, matched)
        return entries

    def _entry(
        self, written: ast.EntryDecl, keys: tuple[ir.Key, ...], choices: tuple[ir.TableAction, ...], is_const: bool
    ) -> ir.Entry:
        sets = written.keys
        if len(sets) == 1 and isinstance(sets[0], ast.ListExpr):
            sets = sets[0].items
        if len(sets) == 1 and len(keys) > 1 and isinstance(sets[0], ast.Anything):
            sets = sets * len(keys)
        if len(sets) != len(keys):
            raise Refusal(written.loc, f"an entry of {len(sets)} values for {len(keys)} keys")
        matches = tuple(self._entry_match(s, k) for s, k in zip(sets, keys, strict=True))
        action = self._action_value(written.action, choices)
        if action.choice.default_only:
            message = f"{action.choice.action.name}: marked @defaultonly, it cannot be in an entry"
            raise Refusal(written.action.loc, message)
        priority = None if written.priority is None else self.constant_int(written.priority, "a priority")
        notes = lower_annotations(written.annotations)
        return ir.Entry(written.loc, matches, action, priority, is_const or written.is_const, notes)

    def _entry_match(self, written: ast.Expr, key: ir.Key) -> ir.Match:
        match = self.keyset(written, key.expr.type)
        if match.kind not in _ALLOWED[key.kind]:
            raise Refusal(written.loc, f"`{match.kind.value}` cannot be matched by a key of kind {key.kind}")
        if key.kind == "lpm" and match.kind is ir.MatchValueKind.MASK:
            self._check_prefix(match, key)
        return match

    def _check_prefix(self, match: ir.Match, key: ir.Key) -> None:
        type_ = key.expr.type
        width = bit_width(type_)
        if isinstance(match.second, ir.Literal):
            inverse = ~int(match.second.value) & ((1 << width) - 1)
            if inverse & (inverse + 1):
                raise Refusal(match.loc, f"{int(match.second.value):#x}: not a prefix mask")


def _as_action_ref(written: ast.PropertyDecl) -> ast.ActionRef:
    value = written.value
    args: tuple[ast.Argument, ...] | None = None
    if isinstance(value, ast.Call):
        args, value = value.args, value.callee
    if not isinstance(value, ast.Name):
        raise Refusal(written.value.loc, "default_action must be an action")
    return ast.ActionRef(value.loc, value.name, value.absolute, args)
