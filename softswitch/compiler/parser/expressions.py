"""Reading expressions, by precedence climbing, and annotations."""

from __future__ import annotations

from catchment.softswitch.compiler import ast
from catchment.softswitch.compiler.diagnostics import Refusal
from catchment.softswitch.compiler.lexer import Kind, Token
from catchment.softswitch.compiler.parser.types import TypeParser
from catchment.softswitch.compiler.source import Location

_LEVELS: dict[str, int] = {
    op: level
    for level, ops in enumerate(
        ("||", "&&", "== !=", "< > <= >=", "|", "^", "&", "<< >>", "++ + - |+| |-|", "* / %"), start=1
    )
    for op in ops.split()
}
_SHIFT_LEVEL = _LEVELS["<<"]
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class ExpressionParser(TypeParser):
    """Expressions, arguments, key sets, annotations."""

    def expression(self) -> ast.Expr:
        """Reads an expression."""
        condition = self._binary(1)
        if not self.at("?"):
            return condition
        self.next()
        yes = self.expression()
        self.expect(":", "between the branches of `?`")
        return ast.Ternary(condition.loc, condition, yes, self.expression())

    def shift_expression(self) -> ast.Expr:
        """Reads an expression in which `>` closes type arguments."""
        return self._binary(_SHIFT_LEVEL, closing=True)

    def _operator(self, closing: bool) -> tuple[str, int]:
        token = self.token
        if token.kind is not Kind.SYMBOL:
            return "", 0
        if token.text == ">":
            if closing:
                return "", 0
            following = self.peek()
            if following.text in (">", ">=") and following.glued:
                return (">>", 2) if following.text == ">" else ("", 0)
        return (token.text, 1) if token.text in _LEVELS else ("", 0)

    def _binary(self, lowest: int, closing: bool = False) -> ast.Expr:
        left = self._prefix()
        while True:
            operator, length = self._operator(closing)
            if not operator or _LEVELS[operator] < lowest:
                return left
            for _ in range(length):
                self.next()
            right = self._binary(_LEVELS[operator] + 1, closing)
            left = ast.Binary(left.loc, operator, left, right)

    def _prefix(self) -> ast.Expr:
        token = self.token
        if self.at("!", "~", "-", "+"):
            self.next()
            return ast.Unary(token.loc, token.text, self._prefix())
        if self.at("(") and self._cast_ahead():
            self.next()
            type_ = self.type()
            self.expect(")", "after the type of a cast")
            return ast.CastExpr(token.loc, type_, self._prefix())
        return self._postfix(self._primary())

    def _cast_ahead(self) -> bool:
        position = self.save()
        self.next()
        try:
            if not self.at_type():
                return False
            self.type()
            return self.at(")")
        except Refusal:
            return False
        finally:
            self.restore(position)

    def _primary(self) -> ast.Expr:
        token = self.token
        if token.kind is Kind.NUMBER:
            assert token.number is not None, "a number token carries its value"
            self.next()
            return ast.Number(token.loc, token.number)
        if token.kind is Kind.STRING:
            return self._string()
        if self.at("true", "false"):
            self.next()
            return ast.Bool(token.loc, token.text == "true")
        if self.accept("this"):
            return ast.This(token.loc)
        if self.accept("{#}"):
            return ast.Invalid(token.loc)
        if self.accept("..."):
            return ast.Dots(token.loc)
        if self.at("{"):
            return self._braces()
        if self.accept("("):
            inner = self.expression()
            self.expect(")", "after an expression in parentheses")
            return inner
        if self.at("error"):
            self.next()
            return ast.TypeName(token.loc, ast.BaseType(token.loc, "error"))
        if self.at_type():
            return ast.TypeName(token.loc, self.simple_type())
        absolute = self.accept(".")
        name = self.name("an expression")
        return ast.Name(name.loc, name.text, absolute)

    def _string(self) -> ast.String:
        loc, text = self.loc, ""
        raw = self.next().text
        position = 0
        while position < len(raw):
            if raw[position] == "\\" and position + 1 < len(raw):
                text += _ESCAPES.get(raw[position + 1], raw[position : position + 2])
                position += 2
            else:
                text += raw[position]
                position += 1
        return ast.String(loc, text)

    def _braces(self) -> ast.Expr:
        loc = self.expect("{").loc
        if self.at_name() and self.peek().text == "=":
            return self._struct(loc)
        items: list[ast.Expr] = []
        dots = False
        while not self.at("}"):
            if self.at("..."):
                self.next()
                dots = True
            else:
                items.append(self.expression())
            if not self.accept(","):
                break
        self.expect("}", "after a list")
        return ast.ListExpr(loc, tuple(items), dots)

    def _struct(self, loc: Location) -> ast.StructExpr:
        fields: list[tuple[str, ast.Expr]] = []
        dots = False
        while not self.at("}"):
            if self.accept("..."):
                dots = True
            else:
                name = self.name("a field name")
                self.expect("=", f"after the field `{name.text}`")
                if name.text in dict(fields):
                    raise Refusal(name.loc, f"{name.text}: duplicate field in a structure initialiser")
                fields.append((name.text, self.expression()))
            if not self.accept(","):
                break
        self.expect("}", "after a structure initialiser")
        return ast.StructExpr(loc, tuple(fields), dots)

    def _postfix(self, expr: ast.Expr) -> ast.Expr:
        while True:
            if self.accept("."):
                name = self._member_name()
                expr = ast.Member(expr.loc, expr, name.text, name.loc)
            elif self.at("["):
                expr = self._brackets(expr)
            elif self.at("("):
                expr = ast.Call(expr.loc, expr, None, self.arguments())
            elif self.at("<") and self._takes_type_args(expr) and self._type_call_ahead():
                type_args = self.type_args()
                expr = ast.Call(expr.loc, expr, type_args, self.arguments())
            else:
                return expr

    def _member_name(self) -> Token:
        if self.token.kind is Kind.KEYWORD and not self.at_name():
            raise self.unexpected("a member's name", "after `.`")
        return self.name("a member's name")

    def _takes_type_args(self, expr: ast.Expr) -> bool:
        return isinstance(expr, ast.Name | ast.Member) and self.is_template(expr.name)

    def _type_call_ahead(self) -> bool:
        position = self.save()
        try:
            self.type_args()
            return self.at("(")
        except Refusal:
            return False
        finally:
            self.restore(position)

    def _brackets(self, base: ast.Expr) -> ast.Expr:
        self.expect("[")
        first = self.expression()
        loc = base.loc
        result: ast.Expr
        if self.accept(":"):
            result = ast.Slice(loc, base, first, self.expression())
        elif self.accept("+:"):
            result = ast.PlusSlice(loc, base, first, self.expression())
        else:
            result = ast.Index(loc, base, first)
        self.expect("]", "after an index")
        return result

    def arguments(self) -> tuple[ast.Argument, ...]:
        """Reads `(a, name = b, _)`."""
        self.expect("(")
        args: list[ast.Argument] = []
        while not self.at(")"):
            loc, name = self.loc, None
            if self.at_name() and self.peek().text == "=":
                name = self.next().text
                self.next()
            value = None if self.accept("_") else self.expression()
            args.append(ast.Argument(loc, name, value))
            if not self.accept(","):
                break
        self.expect(")", "after arguments")
        return tuple(args)

    # key sets

    def keyset(self) -> tuple[ast.Expr, ...]:
        """Reads a label of a select or entry: one key set, or several in parentheses."""
        if not self.at("("):
            return (self.simple_keyset(),)
        position = self.save()
        self.next()
        try:
            first = self.simple_keyset()
            several = self.at(",") or (isinstance(first, ast.MaskSet | ast.RangeSet | ast.Anything) and self.at(")"))
        except Refusal:
            several = False
        if not several:
            self.restore(position)
            return (self.simple_keyset(),)
        sets = [first]
        while self.accept(","):
            sets.append(self.simple_keyset())
        self.expect(")", "after a key set")
        return tuple(sets)

    def simple_keyset(self) -> ast.Expr:
        """Reads `e`, `e &&& mask`, `low .. high`, `default` or `_`."""
        loc = self.loc
        if self.at("default", "_"):
            self.next()
            return ast.Anything(loc)
        first = self.expression()
        if self.accept("&&&"):
            return ast.MaskSet(loc, first, self.expression())
        if self.accept(".."):
            return ast.RangeSet(loc, first, self.expression())
        return first

    # annotations

    def annotations(self) -> tuple[ast.Annotation, ...]:
        """Reads any number of annotations."""
        found: list[ast.Annotation] = []
        while self.at("@"):
            loc = self.next().loc
            name = self.next()
            if name.kind not in (Kind.NAME, Kind.KEYWORD):
                raise Refusal(name.loc, f"syntax error: unexpected {name}, expected an annotation's name")
            if name.text == "pragma" and name.glued:
                found.append(self._pragma(loc))
            elif self.at("("):
                found.append(ast.Annotation(loc, name.text, self._unstructured()))
            elif self.at("["):
                found.append(self._structured(loc, name.text))
            else:
                found.append(ast.Annotation(loc, name.text, ()))
        return tuple(found)

    def _pragma(self, loc: Location) -> ast.Annotation:
        name = self.next().text
        tokens: list[Token] = []
        while self.token.kind not in (Kind.PRAGMA_END, Kind.END):
            tokens.append(self.next())
        self.next()
        return ast.Annotation(loc, name, tuple(tokens))

    def _unstructured(self) -> tuple[Token, ...]:
        opening = self.expect("(")
        tokens: list[Token] = []
        depth = 1
        while True:
            token = self.next()
            if token.kind is Kind.END:
                raise Refusal(opening.loc, "syntax error: annotation without closing `)`")
            if token.kind is Kind.SYMBOL and token.text in "()":
                depth += 1 if token.text == "(" else -1
                if depth == 0:
                    return tuple(tokens)
            tokens.append(token)

    def _structured(self, loc: Location, name: str) -> ast.Annotation:
        self.expect("[")
        values: list[ast.Expr] = []
        pairs: list[tuple[str, ast.Expr]] = []
        while not self.at("]"):
            if self.at_name() and self.peek().text == "=":
                key = self.next().text
                self.next()
                pairs.append((key, self.expression()))
            else:
                values.append(self.expression())
            if not self.accept(","):
                break
        self.expect("]", "after an annotation")
        return ast.Annotation(loc, name, (), tuple(values), tuple(pairs), structured=True)
