"""Reading statements and the declarations that may stand among them."""

from __future__ import annotations

from catchment.softswitch.compiler import ast
from catchment.softswitch.compiler.diagnostics import Refusal, refuse_deep
from catchment.softswitch.compiler.lexer import Kind
from catchment.softswitch.compiler.parser.expressions import ExpressionParser
from catchment.softswitch.compiler.source import Location

_COMPOUND = ("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "|+|=", "|-|=")


class StatementParser(ExpressionParser):
    """Statements, variables, constants, instantiations."""

    def block(self, annotations: tuple[ast.Annotation, ...] = ()) -> ast.Block:
        """Reads `{ ... }` in a scope of its own."""
        loc = self.expect("{").loc
        self.push_scope()
        body: list[ast.Stmt] = []
        while not self.at("}"):
            if self.token.kind is Kind.END:
                raise Refusal(loc, "syntax error: `{` without closing `}`")
            body.append(self.statement())
        self.pop_scope()
        self.next()
        return ast.Block(loc, tuple(body), annotations)

    def statement(self) -> ast.Stmt:
        """Reads a statement or a declaration among statements."""
        with refuse_deep(self.loc):
            annotations = self.annotations()
            loc = self.loc
            if self.at("{"):
                return self.block(annotations)
            if self.at("const"):
                return self.constant(annotations)
            if self.at("for"):
                return self._for()
            if annotations or self.at_type():
                declared = self.declaration_ahead(annotations)
                if declared is not None:
                    return declared
            if self.accept(";"):
                return ast.Empty(loc)
            return self._keyword_statement(loc) or self._terminated(self._assignment_or_call())

    def _terminated(self, statement: ast.Stmt) -> ast.Stmt:
        self.expect(";", "after a statement")
        return statement

    def _keyword_statement(self, loc: Location) -> ast.Stmt | None:
        if self.accept("if"):
            return self._if(loc)
        if self.accept("switch"):
            return self._switch(loc)
        if self.accept("return"):
            value = None if self.at(";") else self.expression()
            return self._terminated(ast.Return(loc, value))
        if self.accept("exit"):
            return self._terminated(ast.Exit(loc))
        if self.accept("break"):
            return self._terminated(ast.Break(loc))
        if self.accept("continue"):
            return self._terminated(ast.Continue(loc))
        return None

    def _if(self, loc: Location) -> ast.If:
        """Reads an `if` that began at `loc`, with every `else if` after it."""
        links: list[tuple[Location, ast.Expr, ast.Stmt]] = []
        orelse: ast.Stmt | None = None
        another = True
        while another:
            self.expect("(", "after `if`")
            cond = self.expression()
            self.expect(")", "after a condition")
            links.append((loc, cond, self.statement()))
            another = self.at("else") and self.peek().text == "if"
            if self.accept("else"):
                loc = self.loc
                orelse = None if self.accept("if") else self.statement()
        first, *others = links
        for at, cond, then in reversed(others):
            orelse = ast.If(at, cond, then, orelse)
        return ast.If(*first, orelse)

    def _switch(self, loc: Location) -> ast.Switch:
        self.expect("(", "after `switch`")
        subject = self.expression()
        self.expect(")")
        self.expect("{", "before the cases of `switch`")
        cases: list[ast.SwitchCase] = []
        while not self.accept("}"):
            case_loc = self.loc
            label = None if self.accept("default") else self.expression()
            self.expect(":", "after a label")
            body = self.block() if self.at("{") else None
            cases.append(ast.SwitchCase(case_loc, label, body))
        return ast.Switch(loc, subject, tuple(cases))

    def _for(self) -> ast.Stmt:
        loc = self.expect("for").loc
        self.expect("(", "after `for`")
        self.push_scope()
        loop = self._for_in(loc) or self._for_three(loc)
        self.pop_scope()
        return loop

    def _for_in(self, loc: Location) -> ast.ForIn | None:
        position = self.save()
        self.annotations()
        type_ = self.type() if self.at_type() else None
        if type_ is None or not (self.at_name() and self.peek().text == "in"):
            self.restore(position)
            return None
        name = self.name().text
        self.declare(name, is_type=False)
        self.expect("in")
        collection = self.simple_keyset()
        self.expect(")", "after the collection of `for`")
        return ast.ForIn(loc, type_, name, collection, self.statement())

    def _for_three(self, loc: Location) -> ast.For:
        init = self._for_parts(";")
        self.expect(";", "after the initialisers of `for`")
        cond = self.expression()
        self.expect(";", "after the condition of `for`")
        update = self._for_parts(")")
        self.expect(")", "after the updates of `for`")
        return ast.For(loc, init, cond, update, self.statement())

    def _for_parts(self, end: str) -> tuple[ast.Stmt, ...]:
        parts: list[ast.Stmt] = []
        while not self.at(end):
            annotations = self.annotations()
            if self.at_type() and not self._type_is_prefix():
                parts.append(self._variable(annotations))
            else:
                parts.append(self._assignment_or_call())
            if not self.accept(","):
                break
        return tuple(parts)

    def _type_is_prefix(self) -> bool:
        """Whether the type ahead only begins an expression: `Type.member` or `Type(...)`."""
        position = self.save()
        try:
            self.type()
            return not self.at_name()
        except Refusal:
            return True
        finally:
            self.restore(position)

    def _assignment_or_call(self) -> ast.Stmt:
        loc = self.loc
        target = self._postfix(self._primary())
        if self.at("=", *_COMPOUND):
            operator = self.next()
            return ast.Assign(operator.loc, target, operator.text[:-1], self.expression())
        if self.at(">") and self.peek().text == ">=" and self.peek().glued:
            operator = self.next()
            self.next()
            return ast.Assign(operator.loc, target, ">>", self.expression())
        if not isinstance(target, ast.Call):
            raise self.unexpected("`=` or a call", "in a statement")
        return ast.CallStmt(loc, target)

    # declarations among statements

    def declaration_ahead(self, annotations: tuple[ast.Annotation, ...]) -> ast.Decl | None:
        """Reads a variable or instantiation if one comes next."""
        position = self.save()
        if not self.at_type():
            if annotations or (self.at_name() and self.peek().kind is Kind.NAME):
                return self._variable_or_instance(annotations, position)
            return None
        self.type()
        starts_here = self.at_name() or self.at("(")
        self.restore(position)
        return self._variable_or_instance(annotations, position) if starts_here else None

    def _variable_or_instance(self, annotations: tuple[ast.Annotation, ...], position: int) -> ast.Decl:
        self.restore(position)
        type_ = self.type()
        if self.at("("):
            return self._instantiation(annotations, type_)
        self.restore(position)
        variable = self._variable(annotations)
        self.expect(";", "after a declaration")
        return variable

    def _declarator(self, type_: ast.TypeExpr) -> tuple[ast.TypeExpr, str, Location]:
        name = self.name()
        while self.at("["):
            loc = self.next().loc
            type_ = ast.ArrayType(loc, type_, self.expression())
            self.expect("]", "after the size of a stack")
        return type_, name.text, name.loc

    def _variable(self, annotations: tuple[ast.Annotation, ...]) -> ast.VarDecl:
        type_, name, loc = self._declarator(self.type())
        init = self.expression() if self.accept("=") else None
        self.declare(name, is_type=False)
        return ast.VarDecl(loc, name, annotations, type_, init)

    def constant(self, annotations: tuple[ast.Annotation, ...]) -> ast.ConstDecl:
        """Reads `const type name = value;`."""
        self.expect("const")
        type_, name, loc = self._declarator(self.type())
        self.expect("=", "in a constant declaration")
        init = self.expression()
        self.expect(";", "after a constant declaration")
        self.declare(name, is_type=False)
        return ast.ConstDecl(loc, name, annotations, type_, init)

    def _instantiation(self, annotations: tuple[ast.Annotation, ...], type_: ast.TypeExpr) -> ast.Instantiation:
        args = self.arguments()
        name = self.name("the name of an instance")
        initializer = self._object_initializer() if self.accept("=") else None
        self.expect(";", "after an instantiation")
        self.declare(name.text, is_type=False)
        return ast.Instantiation(name.loc, name.text, annotations, type_, args, initializer)

    def _object_initializer(self) -> tuple[ast.Decl, ...]:
        raise Refusal(self.loc, "abstract methods of externs are not supported")

    def parameters(self) -> tuple[ast.Parameter, ...]:
        """Reads `(direction type name, ...)` and notes the names."""
        self.expect("(", "before parameters")
        params: list[ast.Parameter] = []
        while not self.at(")"):
            annotations = self.annotations()
            direction = self.next().text if self.at("in", "out", "inout") else ""
            type_, name, loc = self._declarator(self.type())
            default = self.expression() if self.accept("=") else None
            params.append(ast.Parameter(loc, name, annotations, direction, type_, default))
            if not self.accept(","):
                break
        self.expect(")", "after parameters")
        for parameter in params:
            self.declare(parameter.name, is_type=False)
        return tuple(params)
