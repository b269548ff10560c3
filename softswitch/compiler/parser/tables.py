"""Reading tables and actions."""

from __future__ import annotations

from catchment.softswitch.compiler import ast
from catchment.softswitch.compiler.diagnostics import Refusal
from catchment.softswitch.compiler.lexer import Kind, NumberValue
from catchment.softswitch.compiler.parser.statements import StatementParser


class TableParser(StatementParser):
    """Actions, tables and their properties."""

    def action(self, annotations: tuple[ast.Annotation, ...]) -> ast.ActionDecl:
        """Reads `action name(params) { ... }`."""
        self.expect("action")
        name = self.name("an action's name")
        self.declare(name.text, is_type=False)
        self.push_scope()
        params = self.parameters()
        body = self.block()
        self.pop_scope()
        return ast.ActionDecl(name.loc, name.text, annotations, params, body)

    def table(self, annotations: tuple[ast.Annotation, ...]) -> ast.TableDecl:
        """Reads `table name { properties }`."""
        self.expect("table")
        name = self.name("a table's name")
        self.declare(name.text, is_type=False)
        self.expect("{", "before the properties of a table")
        keys: tuple[ast.KeyDecl, ...] | None = None
        actions: tuple[ast.ActionRef, ...] | None = None
        entries: ast.EntriesDecl | None = None
        properties: list[ast.PropertyDecl] = []
        while not self.at("}"):
            notes = self.annotations()
            loc = self.loc
            is_const = self.accept("const")
            if self.at("key") and not is_const:
                self._once(keys, "key")
                if entries is not None:
                    raise Refusal(entries.loc, "the list of entries must come after the key")
                keys = self._keys()
            elif self.at("actions") and not is_const:
                self._once(actions, "actions")
                actions = self._actions()
            elif self.at("entries"):
                self._once(entries, "entries")
                entries = ast.EntriesDecl(loc, self._entries(), is_const)
            else:
                properties.append(self._property(notes, is_const))
        self.expect("}")
        return ast.TableDecl(name.loc, name.text, annotations, keys, actions, entries, tuple(properties))

    def _once(self, previous: object, what: str) -> None:
        if previous is not None:
            raise Refusal(self.loc, f"duplicate table property `{what}`")

    def _open(self, what: str) -> None:
        self.next()
        self.expect("=", f"after `{what}`")
        self.expect("{", f"after `{what} =`")

    def _keys(self) -> tuple[ast.KeyDecl, ...]:
        self._open("key")
        keys: list[ast.KeyDecl] = []
        while not self.accept("}"):
            loc = self.loc
            expr = self.expression()
            self.expect(":", "after a key")
            kind = self.name("a match kind")
            annotations = self.annotations()
            self.expect(";", "after a match kind")
            keys.append(ast.KeyDecl(loc, expr, kind.text, kind.loc, annotations))
        return tuple(keys)

    def _action_ref(self, annotations: tuple[ast.Annotation, ...] = ()) -> ast.ActionRef:
        absolute = self.accept(".")
        name = self.name("an action")
        args = self.arguments() if self.at("(") else None
        return ast.ActionRef(name.loc, name.text, absolute, args, annotations)

    def _actions(self) -> tuple[ast.ActionRef, ...]:
        self._open("actions")
        actions: list[ast.ActionRef] = []
        while not self.accept("}"):
            annotations = self.annotations()
            actions.append(self._action_ref(annotations))
            self.expect(";", "after an action")
        return tuple(actions)

    def _entries(self) -> tuple[ast.EntryDecl, ...]:
        self._open("entries")
        entries: list[ast.EntryDecl] = []
        while not self.accept("}"):
            loc = self.loc
            is_const = self.accept("const")
            priority = self._priority()
            keys = self.keyset()
            self.expect(":", "after the keys of an entry")
            action = self._action_ref()
            annotations = self.annotations()
            self.expect(";", "after an entry")
            entries.append(ast.EntryDecl(loc, keys, action, priority, is_const, annotations))
        return tuple(entries)

    def _priority(self) -> ast.Expr | None:
        if not (self.at("priority") and self.peek().text == "="):
            return None
        self.next()
        self.next()
        priority: ast.Expr
        if self.token.kind is Kind.NUMBER:
            token = self.next()
            priority = ast.Number(token.loc, token.number or NumberValue(0))
        else:
            self.expect("(", "before a priority that is not a number")
            priority = self.expression()
            self.expect(")", "after a priority")
        self.expect(":", "after a priority")
        return priority

    def _property(self, annotations: tuple[ast.Annotation, ...], is_const: bool) -> ast.PropertyDecl:
        name = self.name("a table property")
        self.expect("=", f"after `{name.text}`")
        value = self.expression()
        self.expect(";", f"after the property `{name.text}`")
        return ast.PropertyDecl(name.loc, name.text, annotations, value, is_const)
