"""Reading top-level declarations: types, externs, functions, controls, parsers, packages."""

from __future__ import annotations

from catchment.softswitch.compiler import ast
from catchment.softswitch.compiler.diagnostics import Refusal, refuse_deep
from catchment.softswitch.compiler.lexer import Kind
from catchment.softswitch.compiler.parser.tables import TableParser
from catchment.softswitch.compiler.source import Location

_Notes = tuple[ast.Annotation, ...]


class ProgramParser(TableParser):
    """A whole program."""

    def program(self) -> ast.ProgramDecl:
        """Reads to the end of the text."""
        loc = self.loc
        declarations: list[ast.Decl] = []
        while self.token.kind is not Kind.END:
            if not self.accept(";"):
                with refuse_deep(self.loc):
                    declarations.append(self.declaration())
        return ast.ProgramDecl(loc, tuple(declarations))

    def declaration(self) -> ast.Decl:
        """Reads one top-level declaration."""
        notes = self.annotations()
        readers = {
            "const": self.constant,
            "extern": self._extern,
            "action": self.action,
            "parser": self._parser,
            "control": self._control,
            "package": self._package,
            "header": self._fields,
            "header_union": self._fields,
            "struct": self._fields,
            "enum": self._enum,
            "typedef": self._typedef,
            "type": self._typedef,
            "match_kind": self._names,
        }
        reader = readers.get(self.token.text) if self.token.kind is Kind.KEYWORD else None
        if reader is not None:
            return reader(notes)
        if self.at("error") and self.peek().text == "{":
            return self._names(notes)
        if self.at_type() or self.at_name():
            return self._function_or_instance(notes)
        raise self.unexpected("a declaration")

    def _function_or_instance(self, notes: _Notes) -> ast.Decl:
        position = self.save()
        self.type()
        if self.at("("):
            self.restore(position)
            declared = self.declaration_ahead(notes)
            if declared is not None:
                return declared
            raise Refusal(self.loc, f"{self.token.text}: no such type")
        self.restore(position)
        function = self._prototype(notes)
        body = self.block()
        self.pop_scope()
        return ast.FunctionDecl(
            function.loc, function.name, notes, function.result, function.type_params, function.params, body
        )

    def _prototype(self, notes: _Notes, abstract: bool = False) -> ast.FunctionDecl:
        """Reads `type name<T>(params)`; the scope of its names stays open. The result may be one of its parameters."""
        result_at = self.save()
        scope = self._type_params_ahead()
        self.restore(result_at)
        self.push_scope()
        for name in scope:
            self.declare(name, is_type=True)
        result = self.type()
        name_token = self.name("a function's name")
        type_params = self.type_params()
        params = self.parameters()
        scopes = self._types.pop()
        self.declare(name_token.text, is_type=False, is_template=bool(type_params))
        self._types.append(scopes)
        return ast.FunctionDecl(name_token.loc, name_token.text, notes, result, type_params, params, None, abstract)

    def _type_params_ahead(self) -> list[str]:
        """The type parameters of the prototype ahead: its result's type may be one of them."""
        self.type()
        self.name("a function's name")
        if not self.accept("<"):
            return []
        names: list[str] = []
        while self.at_name():
            names.append(self.next().text)
            self.accept(",")
        return names

    def _extern(self, notes: _Notes) -> ast.Decl:
        self.expect("extern")
        named = self.at_name() and (self.peek().text in ("{", "<", ";"))
        if not named or (self.peek().text == "<" and self._generic_result_ahead()):
            function = self._prototype(notes)
            self.pop_scope()
            self.expect(";", "after an extern function")
            return function
        name = self.name()
        self.declare(name.text, is_type=True, is_template=self.at("<"))
        self.push_scope()
        type_params = self.type_params()
        methods: list[ast.FunctionDecl] = []
        if not self.accept(";"):
            self.expect("{", "before the methods of an extern")
            while not self.accept("}"):
                methods.append(self._method(name.text))
        self.pop_scope()
        return ast.ExternDecl(name.loc, name.text, notes, type_params, tuple(methods))

    def _generic_result_ahead(self) -> bool:
        position = self.save()
        try:
            self.type()
            return self.at_name()
        except Refusal:
            return False
        finally:
            self.restore(position)

    def _method(self, extern: str) -> ast.FunctionDecl:
        notes = self.annotations()
        abstract = self.accept("abstract")
        if self.at_name() and self.token.text == extern and self.peek().text == "(":
            name = self.next()
            self.push_scope()
            params = self.parameters()
            self.pop_scope()
            self.expect(";", "after a constructor")
            return ast.FunctionDecl(name.loc, name.text, notes, None, (), params, None)
        method = self._prototype(notes, abstract)
        self.pop_scope()
        if method.type_params:
            self._templates.add(method.name)
        self.expect(";", "after a method")
        return method

    def _parser(self, notes: _Notes) -> ast.ParserDecl:
        name, type_params, params = self._block_type("parser")
        if self.accept(";"):
            self.pop_scope()
            return ast.ParserDecl(name[1], name[0], notes, type_params, params, (), (), None)
        constructor = self.parameters() if self.at("(") else ()
        self.expect("{", "before a parser's body")
        locals_: list[ast.Decl] = []
        states: list[ast.StateDecl] = []
        while not self.accept("}"):
            with refuse_deep(self.loc):
                inner = self.annotations()
                if self.at("state"):
                    states.append(self._state(inner))
                elif states:
                    raise self.unexpected("`state`", "after a parser's first state")
                else:
                    locals_.append(self._local(inner))
        self.pop_scope()
        return ast.ParserDecl(name[1], name[0], notes, type_params, params, constructor, tuple(locals_), tuple(states))

    def _control(self, notes: _Notes) -> ast.ControlDecl:
        name, type_params, params = self._block_type("control")
        if self.accept(";"):
            self.pop_scope()
            return ast.ControlDecl(name[1], name[0], notes, type_params, params, (), (), None)
        constructor = self.parameters() if self.at("(") else ()
        self.expect("{", "before a control's body")
        locals_: list[ast.Decl] = []
        while not self.at("apply"):
            with refuse_deep(self.loc):
                inner = self.annotations()
                if self.at("action"):
                    locals_.append(self.action(inner))
                elif self.at("table"):
                    locals_.append(self.table(inner))
                else:
                    locals_.append(self._local(inner))
        self.next()
        body = self.block(self.annotations())
        self.expect("}", "after a control's apply block")
        self.pop_scope()
        return ast.ControlDecl(name[1], name[0], notes, type_params, params, constructor, tuple(locals_), body)

    def _block_type(
        self, keyword: str
    ) -> tuple[tuple[str, Location], tuple[ast.TypeParam, ...], tuple[ast.Parameter, ...]]:
        self.expect(keyword)
        name = self.name(f"a {keyword}'s name")
        self.declare(name.text, is_type=True, is_template=self.at("<"))
        self.push_scope()
        return (name.text, name.loc), self.type_params(), self.parameters()

    def _local(self, notes: _Notes) -> ast.Decl:
        if self.at("const"):
            return self.constant(notes)
        if self.accept("value_set"):
            self.expect("<", "after `value_set`")
            type_ = self.type()
            self.expect(">", "after the type of a value set")
            self.expect("(", "before the size of a value set")
            size = self.expression()
            self.expect(")", "after the size of a value set")
            name = self.name("a value set's name")
            self.expect(";", "after a value set")
            self.declare(name.text, is_type=False)
            return ast.ValueSetDecl(name.loc, name.text, notes, type_, size)
        declared = self.declaration_ahead(notes)
        if declared is None:
            raise self.unexpected("a declaration")
        return declared

    def _state(self, notes: _Notes) -> ast.StateDecl:
        self.expect("state")
        name = self.name("a state's name")
        self.expect("{", "before a state's body")
        self.push_scope()
        body: list[ast.Stmt] = []
        transition: ast.SelectDecl | ast.GotoDecl | None = None
        while not self.at("}", "transition"):
            body.append(self.statement())
        if self.accept("transition"):
            transition = self._transition()
        self.expect("}", "after a state's transition")
        self.pop_scope()
        return ast.StateDecl(name.loc, name.text, notes, tuple(body), transition)

    def _transition(self) -> ast.SelectDecl | ast.GotoDecl:
        loc = self.loc
        if not self.accept("select"):
            name = self.name("a state or `select`")
            self.expect(";", "after a transition")
            return ast.GotoDecl(name.loc, name.text)
        self.expect("(", "after `select`")
        exprs: list[ast.Expr] = []
        while not self.at(")"):
            exprs.append(self.expression())
            if not self.accept(","):
                break
        self.expect(")", "after the selectors")
        self.expect("{", "before the cases of `select`")
        cases: list[ast.SelectCaseDecl] = []
        while not self.accept("}"):
            case_loc = self.loc
            keys = self.keyset()
            self.expect(":", "after a label")
            name = self.name("a state")
            self.expect(";", "after a case")
            cases.append(ast.SelectCaseDecl(case_loc, keys, name.text, name.loc))
        return ast.SelectDecl(loc, tuple(exprs), tuple(cases))

    def _package(self, notes: _Notes) -> ast.PackageDecl:
        name, type_params, params = self._block_type("package")
        self.pop_scope()
        self.expect(";", "after a package")
        return ast.PackageDecl(name[1], name[0], notes, type_params, params)

    def _fields(self, notes: _Notes) -> ast.FieldsDecl:
        kind = self.next().text
        name = self.name(f"a {kind}'s name")
        self.declare(name.text, is_type=True, is_template=self.at("<"))
        self.push_scope()
        type_params = self.type_params()
        self.expect("{", "before fields")
        fields: list[ast.FieldDecl] = []
        while not self.accept("}"):
            inner = self.annotations()
            type_, field_name, loc = self._declarator(self.type())
            self.expect(";", "after a field")
            fields.append(ast.FieldDecl(loc, field_name, inner, type_))
        self.pop_scope()
        return ast.FieldsDecl(name.loc, name.text, notes, kind, type_params, tuple(fields))

    def _enum(self, notes: _Notes) -> ast.EnumDecl:
        self.expect("enum")
        underlying = None if self.at_name() and self.peek().text == "{" else self.type()
        name = self.name("an enum's name")
        self.declare(name.text, is_type=True)
        self.expect("{", "before the members of an enum")
        members: list[ast.EnumMember] = []
        while not self.at("}"):
            inner = self.annotations()
            member = self.name("a member's name")
            value = self.expression() if self.accept("=") else None
            members.append(ast.EnumMember(member.loc, member.text, inner, value))
            if not self.accept(","):
                break
        self.expect("}", "after the members of an enum")
        return ast.EnumDecl(name.loc, name.text, notes, underlying, tuple(members))

    def _typedef(self, notes: _Notes) -> ast.TypedefDecl:
        is_new = self.next().text == "type"
        type_, name, loc = self._declarator(self.type())
        self.expect(";", "after a type declaration")
        self.declare(name, is_type=True)
        return ast.TypedefDecl(loc, name, notes, type_, is_new)

    def _names(self, notes: _Notes) -> ast.NamesDecl:
        keyword = self.next()
        self.expect("{", f"after `{keyword.text}`")
        members: list[tuple[str, Location]] = []
        while not self.at("}"):
            member = self.name("a member's name")
            members.append((member.text, member.loc))
            if not self.accept(","):
                break
        self.expect("}", "after members")
        return ast.NamesDecl(keyword.loc, keyword.text, notes, tuple(members))
