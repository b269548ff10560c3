"""Annotations: from tokens to values."""

from __future__ import annotations

import re

from catchment.softswitch.compiler import ast, fold, ir
from catchment.softswitch.compiler.diagnostics import Refusal
from catchment.softswitch.compiler.lexer import Kind, Token
from catchment.softswitch.compiler.types import InfIntType

_KEY_VALUE = ("pkginfo", "platform_property")
_NO_ARGUMENTS = ("hidden", "tableonly", "defaultonly", "optional", "pure", "noSideEffects")
_ONE_STRING = ("name", "controller_header", "deprecated", "noWarn")
_ONE_NUMBER = ("id", "priority", "max_group_size", "max_member_weight")
_MATCHES = ("exact", "lpm", "ternary", "range", "optional")
_SEMANTICS = ("sum_of_weights", "sum_of_members")
_PLATFORM_PROPERTIES = (
    "multicast_group_table_size",
    "multicast_group_table_total_replicas",
    "multicast_group_table_max_replicas_per_entry",
)
_TRANSLATED_TO = re.compile(r"string|(?:bit < )?(?P<width>[0-9]\w*)(?: >)?")


def lower_annotations(annotations: tuple[ast.Annotation, ...]) -> tuple[ir.Annotation, ...]:
    """The annotations with literal values read; anything else stays in `text`."""
    structured = [a.name for a in annotations if a.structured]
    for annotation in annotations:
        if annotation.structured and structured.count(annotation.name) > 1:
            raise Refusal(annotation.loc, f"@{annotation.name}: duplicate structured annotation")
        if annotation.structured and annotation.values and annotation.pairs:
            raise Refusal(annotation.loc, f"@{annotation.name}: holds either values or `key = value`, not both")
    return tuple(_lower(a) for a in annotations)


def _lower(annotation: ast.Annotation) -> ir.Annotation:
    if annotation.structured:
        values = tuple(_literal(v) for v in annotation.values)
        pairs = tuple((key, _literal(value)) for key, value in annotation.pairs)
        note = ir.Annotation(annotation.name, values, pairs, "", True, annotation.loc)
        return _checked(note) if note.name in _ONE_NUMBER else note
    text = _text(annotation.tokens)
    pairs = _pairs(annotation) if annotation.name in _KEY_VALUE else ()
    values = () if pairs else _values(annotation.tokens)
    return _checked(ir.Annotation(annotation.name, values, pairs, text, False, annotation.loc))


def _checked(note: ir.Annotation) -> ir.Annotation:
    wrong = _wrong_arguments(note)
    if wrong:
        raise Refusal(note.loc, f"@{note.name}: {wrong}")
    return note


def _wrong_arguments(note: ir.Annotation) -> str:
    """What an annotation that the compiler reads must hold, if it does not."""
    one = note.values[0] if len(note.values) == 1 else None
    number = one if isinstance(one, int) and not isinstance(one, bool) else -1
    match note.name:
        case name if name in _NO_ARGUMENTS:
            return "takes no arguments" if note.text else ""
        case name if name in _ONE_STRING:
            return "" if isinstance(one, str) else "must hold one string"
        case name if name in _ONE_NUMBER:
            return "" if 0 <= number < 1 << 32 else "must hold one number of 32 bits"
        case "match":
            return "" if note.text in _MATCHES else f"must hold one of {', '.join(_MATCHES)}"
        case "selector_size_semantics":
            return "" if str(one).lower() in _SEMANTICS else f"must hold one of {', '.join(_SEMANTICS)}"
        case "p4runtime_translation":
            return "" if _is_translation(note.text) else 'must hold a URI and bit<W>, W or string: ("uri", bit<32>)'
        case "platform_property":
            return _wrong_property(note)
    return ""


def _is_translation(text: str) -> bool:
    """Whether it is `"uri", type`, the type one that a controller can be given."""
    uri, comma, wanted = text.rpartition(" , ")
    found = _TRANSLATED_TO.fullmatch(wanted)
    is_uri = len(uri) >= 2 and uri[0] == uri[-1] == '"'
    return bool(comma) and is_uri and found is not None and wanted.startswith("bit") == wanted.endswith(">")


def _wrong_property(note: ir.Annotation) -> str:
    for key, value in note.pairs:
        if key not in _PLATFORM_PROPERTIES:
            return f"there is no property {key}: the properties are {', '.join(_PLATFORM_PROPERTIES)}"
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
            return f"{key} must be a number of 31 bits"
    return ""


def _pairs(annotation: ast.Annotation) -> tuple[tuple[str, ir.ConstantValue], ...]:
    """`key = literal, ...` written between round brackets."""
    pairs: list[tuple[str, ir.ConstantValue]] = []
    tokens = list(annotation.tokens)
    while tokens:
        if len(tokens) < 3 or tokens[1].text != "=" or tokens[0].kind not in (Kind.NAME, Kind.KEYWORD):
            raise Refusal(annotation.loc, f"@{annotation.name}: must be a list of `key = value`")
        end = next((i for i, t in enumerate(tokens) if t.text == "," and t.kind is Kind.SYMBOL), len(tokens))
        (value,) = _values(tuple(tokens[2:end])) or ("",)
        pairs.append((tokens[0].text, value))
        tokens = tokens[end + 1 :]
    return tuple(pairs)


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
        elif token.kind is Kind.SYMBOL and token.text == "++" and not fresh:
            continue
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
    """The value of an expression of literals."""
    match expr:
        case ast.Number():
            return expr.number.value
        case ast.Bool() | ast.String():
            return expr.value
        case ast.Unary():
            return _unary(expr, _literal(expr.operand))
        case ast.Binary():
            return _binary(expr, _literal(expr.left), _literal(expr.right))
    raise Refusal(expr.loc, "a structured annotation holds only compile-time int, string and bool values")


def _unary(expr: ast.Unary, value: ir.ConstantValue) -> ir.ConstantValue:
    if expr.op == "!" and isinstance(value, bool):
        return not value
    if isinstance(value, int) and not isinstance(value, bool) and expr.op in "-~+":
        return {"-": -value, "~": ~value, "+": value}[expr.op]
    raise Refusal(expr.loc, f"`{expr.op}` is not defined on this value")


def _binary(expr: ast.Binary, left: ir.ConstantValue, right: ir.ConstantValue) -> ir.ConstantValue:
    try:
        if expr.op in ("==", "!="):
            return (left == right) == (expr.op == "==")
        if isinstance(left, bool) and isinstance(right, bool) and expr.op in ("&&", "||"):
            return (left and right) if expr.op == "&&" else (left or right)
        if isinstance(left, int) and isinstance(right, int):
            if expr.op in ("<", ">", "<=", ">="):
                return fold.compare(expr.op, left, right)
            if expr.op in ("<<", ">>"):
                return fold.shift(expr.op, left, right, InfIntType())
            if expr.op in ("+", "-", "*", "/", "%", "&", "|", "^"):
                return fold.arithmetic(expr.op, left, right, InfIntType())
        if isinstance(left, str) and isinstance(right, str) and expr.op == "++":
            return left + right
    except fold.FoldError as error:
        raise Refusal(expr.loc, str(error)) from None
    raise Refusal(expr.loc, f"`{expr.op}` is not defined on these values")
