"""Annotations: from tokens to values."""

from __future__ import annotations

from softswitch.compiler import ast, ir
from softswitch.compiler.lexer import Kind, Token


def lower_annotations(annotations: tuple[ast.Annotation, ...]) -> tuple[ir.Annotation, ...]:
    """The annotations with literal values read; anything else stays in `text`."""
    return tuple(_lower(a) for a in annotations)


def _lower(annotation: ast.Annotation) -> ir.Annotation:
    if annotation.structured:
        values = tuple(_literal(v) for v in annotation.values)
        pairs = tuple((key, _literal(value)) for key, value in annotation.pairs)
        return ir.Annotation(annotation.name, values, pairs, "", True, annotation.loc)
    text = _text(annotation.tokens)
    values = _values(annotation.tokens)
    return ir.Annotation(annotation.name, values, (), text, False, annotation.loc)


def _text(tokens: tuple[Token, ...]) -> str:
    """The body as P4Info shows it: every token set off by a space."""
    return " ".join(f'"{token.text}"' if token.kind is Kind.STRING else token.text for token in tokens)


def _values(tokens: tuple[Token, ...]) -> tuple[ir.ConstantValue, ...]:
    """Literals between commas; adjacent strings are one. Empty when anything else stands there."""
    values: list[ir.ConstantValue] = []
    fresh = True
    negative = False
    for token in tokens:
        if token.kind is Kind.SYMBOL and token.text == ",":
            fresh = True
        elif token.kind is Kind.SYMBOL and token.text == "-" and fresh:
            negative = True
        elif token.kind is Kind.STRING:
            if fresh:
                values.append(unescape(token.text))
            elif isinstance(values[-1], str):
                values[-1] += unescape(token.text)
            fresh = False
        elif token.kind is Kind.NUMBER and token.number is not None and fresh:
            values.append(-token.number.value if negative else token.number.value)
            fresh = negative = False
        else:
            return ()
    return tuple(values)


def unescape(text: str) -> str:
    """A string literal's text with `\\"` and `\\\\` resolved."""
    return text.replace('\\"', '"').replace("\\\\", "\\").replace("\\n", "\n")


def _literal(expr: ast.Expr) -> ir.ConstantValue:
    if isinstance(expr, ast.Number):
        return expr.number.value
    if isinstance(expr, ast.Bool):
        return expr.value
    if isinstance(expr, ast.String):
        return expr.value
    if isinstance(expr, ast.Unary) and expr.op == "-" and isinstance(expr.operand, ast.Number):
        return -expr.operand.number.value
    if isinstance(expr, ast.Name):
        return expr.name
    return ""
