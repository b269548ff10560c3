"""Reading types."""

from __future__ import annotations

from abc import ABC, abstractmethod

from catchment.softswitch.compiler import ast
from catchment.softswitch.compiler.lexer import Kind
from catchment.softswitch.compiler.parser.cursor import Cursor

_BASE = frozenset(("bool", "error", "string", "void", "match_kind", "bit", "int", "varbit"))


class TypeParser(Cursor, ABC):
    """Types, type arguments and type parameters."""

    @abstractmethod
    def expression(self) -> ast.Expr:
        """Reads an expression."""

    @abstractmethod
    def shift_expression(self) -> ast.Expr:
        """Reads an expression in which `>` closes type arguments."""

    @abstractmethod
    def annotations(self) -> tuple[ast.Annotation, ...]:
        """Reads any number of annotations."""

    def at_type(self) -> bool:
        """Whether a type comes next, as far as one or two tokens can tell."""
        token = self.token
        if token.kind is Kind.KEYWORD and (token.text in _BASE or token.text == "tuple"):
            return not (token.text == "error" and self.peek().text == ".")
        if token.kind is Kind.KEYWORD and token.text == "list":
            return self.peek().text == "<"
        if self.at("."):
            return self.at_name(1) and self.is_type(self.peek().text)
        return self.at_name() and self.is_type(token.text)

    def type(self) -> ast.TypeExpr:
        """Reads a type, with any `[size]` after it."""
        result = self.simple_type()
        while self.at("[") and self.peek().text != "]":
            loc = self.next().loc
            size = self.expression()
            self.expect("]", "after the size of a stack")
            result = ast.ArrayType(loc, result, size)
        return result

    def simple_type(self) -> ast.TypeExpr:
        """Reads a type without array brackets."""
        token = self.token
        if token.kind is Kind.KEYWORD and token.text in _BASE:
            self.next()
            return ast.BaseType(token.loc, token.text, self._width(token.text))
        if self.at("tuple"):
            self.next()
            return ast.TupleTypeExpr(token.loc, self.type_args())
        if self.at("list") and self.peek().text == "<":
            self.next()
            (element,) = self.type_args() or (ast.DontCareType(token.loc),)
            return ast.ListTypeExpr(token.loc, element)
        absolute = self.accept(".")
        name = self.name("a type")
        args = self.type_args() if self.at("<") else None
        return ast.NamedType(name.loc, name.text, absolute, args)

    def _width(self, base: str) -> ast.Expr | None:
        if base not in ("bit", "int", "varbit") or not self.accept("<"):
            return None
        if self.accept("("):
            width = self.expression()
            self.expect(")", "after a width")
        else:
            width = self.shift_expression()
        self.expect(">", "after a width")
        return width

    def type_args(self) -> tuple[ast.TypeExpr, ...]:
        """Reads `<T, ...>`."""
        self.expect("<")
        args: list[ast.TypeExpr] = []
        while not self.at(">"):
            if self.at("_"):
                args.append(ast.DontCareType(self.next().loc))
            else:
                args.append(self.type())
            if not self.accept(","):
                break
        self.expect(">", "after type arguments")
        return tuple(args)

    def type_params(self) -> tuple[ast.TypeParam, ...]:
        """Reads `<T, ...>` of a declaration, if it is there, and notes the names as types."""
        if not self.accept("<"):
            return ()
        params: list[ast.TypeParam] = []
        while True:
            name = self.name("a type parameter")
            self.declare(name.text, is_type=True)
            params.append(ast.TypeParam(name.loc, name.text, ()))
            if not self.accept(","):
                break
        self.expect(">", "after type parameters")
        return tuple(params)
