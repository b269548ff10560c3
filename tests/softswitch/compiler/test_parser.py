"""Syntax: precedence, generics against comparisons, casts, and the place of syntax errors."""

from __future__ import annotations

import pytest

from catchment.softswitch.compiler import ast
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.lexer import tokenize
from catchment.softswitch.compiler.parser import parse


def show(e: ast.Expr) -> str:
    """An expression with every operator in parentheses."""
    match e:
        case ast.Number():
            return str(e.number.value)
        case ast.Name():
            return e.name
        case ast.Binary():
            return f"({show(e.left)}{e.op}{show(e.right)})"
        case ast.Unary():
            return f"({e.op}{show(e.operand)})"
        case ast.Ternary():
            return f"({show(e.cond)}?{show(e.yes)}:{show(e.no)})"
        case ast.CastExpr():
            return f"cast({show(e.operand)})"
        case ast.Member():
            return f"{show(e.base)}.{e.name}"
        case ast.Slice():
            return f"{show(e.base)}[{show(e.hi)}:{show(e.lo)}]"
        case ast.Call():
            generic = f"<{len(e.type_args)}>" if e.type_args is not None else ""
            return f"{show(e.callee)}{generic}({','.join(show(a.value) for a in e.args if a.value is not None)})"
    return type(e).__name__


def expression(text: str) -> str:
    declarations = "typedef bit<8> T; extern void generic<X>(in X x); extern pk { X look<X>(); }"
    tree = parse(tokenize(f"{declarations} const bit<8> k = {text};", "f"))
    (constant,) = (d for d in tree.declarations if isinstance(d, ast.ConstDecl))
    return show(constant.init)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c", "(a+(b*c))"),
        ("a - b - c", "((a-b)-c)"),
        ("a & b == c", "((a&b)==c)"),
        ("a | b ^ c & d", "(a|(b^(c&d)))"),
        ("a << 1 + 2", "(a<<(1+2))"),
        ("a >> 2 > b", "((a>>2)>b)"),
        ("a ++ b ++ c", "((a++b)++c)"),
        ("a |+| b |-| c", "((a|+|b)|-|c)"),
        ("!a && ~b == c || d", "(((!a)&&((~b)==c))||d)"),
        ("a ? b : c ? d : e", "(a?b:(c?d:e))"),
        ("(T) a + b", "(cast(a)+b)"),
        ("(T)(a + b)", "cast((a+b))"),
        ("(a) - b", "(a-b)"),
        ("(bit<(4+4)>) a", "cast(a)"),
        ("-a[7:0]", "(-a[7:0])"),
        ("a < b", "(a<b)"),
        ("a < b && c > (d)", "((a<b)&&(c>d))"),
        ("generic<bit<8>>(a)", "generic<1>(a)"),
        ("p.look<tuple<bit<8>, bit<8>>>()", "p.look<1>()"),
        ("x.y.z", "x.y.z"),
    ],
)
def test_expression(text: str, tree: str) -> None:
    assert expression(text) == tree


def test_a_name_is_a_type_only_where_it_is_one() -> None:
    text = "typedef bit<8> T; control c(in bit<8> T) { apply { bit<8> v; v = (T) - 1; } }"
    control = parse(tokenize(text, "f")).declarations[1]
    assert isinstance(control, ast.ControlDecl)
    assert control.body is not None
    assign = control.body.body[1]
    assert isinstance(assign, ast.Assign)
    assert show(assign.value) == "(T-1)"


@pytest.mark.parametrize(
    ("text", "line", "col", "word"),
    [
        ("header h {\n  bit<8> a\n}", 3, 1, "expected `;`"),
        ("control c() { apply { a = ; } }", 1, 27, "unexpected `;`"),
        ("control c() { apply {", 1, 21, "without closing"),
        ("const bit<8> x = 1 +;", 1, 21, "unexpected `;`"),
        ("parser p() { state start { transition select(a { } } }", 1, 48, "expected `)`"),
        ("table t {}", 1, 1, "expected a declaration"),
        ("struct s { bit<8> if; }", 1, 19, "unexpected `if`"),
    ],
)
def test_syntax_error_has_its_place(text: str, line: int, col: int, word: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse(tokenize(text, "f.p4"))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.loc.line, diagnostic.loc.col) == (line, col), diagnostic
    assert word in diagnostic.message
