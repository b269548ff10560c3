"""Tokens, literals, places."""

from __future__ import annotations

import pytest

from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.lexer import Kind, NumberValue, tokenize


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", NumberValue(10)),
        ("0x1F", NumberValue(31, base=16)),
        ("0b1010_1010", NumberValue(0xAA, base=2)),
        ("0o17", NumberValue(15, base=8)),
        ("0d19", NumberValue(19)),
        ("8w0xfF", NumberValue(255, 8, False, 16)),
        ("16s0b11", NumberValue(3, 16, True, 2)),
        ("32w1_000", NumberValue(1000, 32)),
        ("2048w1", NumberValue(1, 2048)),
    ],
)
def test_number(text: str, value: NumberValue) -> None:
    token, end = tokenize(text, "f")
    assert token.number == value
    assert end.kind is Kind.END


def test_symbols_are_taken_longest_first() -> None:
    texts = [t.text for t in tokenize("a&&&b<<=c|+|=d..e...f+:g{#}h|-|i", "f")][:-1]
    assert texts == ["a", "&&&", "b", "<<=", "c", "|+|=", "d", "..", "e", "...", "f", "+:", "g", "{#}", "h", "|-|", "i"]


def test_shift_right_is_two_glued_angles() -> None:
    tokens = tokenize("a >> b > > c", "f")
    assert [(t.text, t.glued) for t in tokens if t.text == ">"] == [
        (">", False),
        (">", True),
        (">", False),
        (">", False),
    ]


def test_line_markers_and_comments_keep_places() -> None:
    text = '# 7 "x.p4"\nfoo /* two\nlines */ bar\n# 1 "y.p4" 1\n  baz // rest\nqux'
    places = [(t.text, t.loc.file, t.loc.line, t.loc.col) for t in tokenize(text, "first")][:-1]
    assert places == [("foo", "x.p4", 7, 1), ("bar", "x.p4", 8, 10), ("baz", "y.p4", 1, 3), ("qux", "y.p4", 2, 1)]


@pytest.mark.parametrize(
    ("text", "line", "col", "word"),
    [
        ('a "no end', 1, 3, "string without end"),
        ("/* no end", 1, 1, "comment without end"),
        ("0x_", 1, 1, "no digits"),
        ("a 0x;", 1, 3, "`0x` has no digits"),
        ("a = 8w0b12;", 1, 5, "number `8w0b12`: `2` is not a binary digit"),
        ("0b2", 1, 1, "`2` is not a binary digit"),
        ("4s0o78", 1, 1, "`8` is not an octal digit"),
        ("0xFG", 1, 1, "`G` is not a hexadecimal digit"),
        ("8w_", 1, 1, "no digits"),
        ("8w1A", 1, 1, "`A` is not a decimal digit"),
        ("9" * 5000, 1, 1, "a decimal number of 5000 digits"),
    ],
)
def test_refused(text: str, line: int, col: int, word: str) -> None:
    with pytest.raises(CompileError) as caught:
        tokenize(text, "f.p4")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.loc.file, diagnostic.loc.line, diagnostic.loc.col) == ("f.p4", line, col)
    assert word in diagnostic.message


def test_a_number_without_size_or_base_ends_where_its_digits_do() -> None:
    """An annotation may have such text: `@timeout(5s)`."""
    assert [t.text for t in tokenize("5s 12ab 0z 8wx", "f")][:-1] == ["5", "s", "12", "ab", "0", "z", "8", "wx"]
