"""Turns preprocessed text into tokens, following `# line "file"` markers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostic, shown
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import MAX_WIDTH


class Kind(Enum):
    """What a token is."""

    NAME = "name"
    KEYWORD = "keyword"
    NUMBER = "number"
    STRING = "string"
    SYMBOL = "symbol"
    OTHER = "character of no meaning"
    PRAGMA_END = "end of @pragma line"
    END = "end of file"


@dataclass(frozen=True, slots=True)
class NumberValue:
    """An integer literal: `width` None means an `int` of no particular size."""

    value: int
    width: int | None = None
    signed: bool = False
    base: int = 10


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is as written (a string's without quotes). `glued`: nothing stands between it and the token before."""

    kind: Kind
    text: str
    loc: Location
    number: NumberValue | None = None
    glued: bool = False

    def __str__(self) -> str:
        return {Kind.END: "end of file", Kind.STRING: f'"{self.text}"'}.get(self.kind, f"`{self.text}`")


KEYWORDS = frozenset(
    word
    for line in (
        "abstract action actions apply bool bit break const continue control default else entries enum error exit",
        "extern false for header header_union if in inout int key list match_kind out parser package priority return",
        "select state string struct switch table this transition true tuple type typedef varbit value_set void _",
    )
    for word in line.split()
)

_SYMBOLS = (
    "|+|= |-|= &&& ... <<= >>= |+| |-| {#} .. << && || == != >= <= ++ += -= *= /= %= &= |= ^= +: "
    "+ - * / % | & ^ ~ ( ) [ ] { } < > ! : , ? . = ; @"
)
_SYMBOL = "|".join(re.escape(symbol) for symbol in _SYMBOLS.split(" "))
_SIZED = r"(?:[0-9]+[ws])?0"

_TOKEN = re.compile(
    rf"""
    (?P<space>[ \t\r\f]+) | (?P<newline>\n)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<number>{_SIZED}[xX][0-9a-fA-F_]+ | {_SIZED}[bB][01_]+ | {_SIZED}[oO][0-7_]+ | {_SIZED}[dD][0-9_]+
      | [0-9]+[ws][0-9_]+ | [0-9][0-9_]*)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<endless>/\*)
  | (?P<symbol>{_SYMBOL})
  | (?P<other>[^"])
    """,
    re.VERBOSE | re.DOTALL,
)
_MARKER = re.compile(r"[ \t]*#(?:line)?[ \t]+(\d{1,12})\b[ \t]*(?:\"((?:\\.|[^\"\\])*)\")?[^\n]*")
_NUMBER = re.compile(r"(?:(\d+)([ws]))?(?:0([xXbBoOdD]))?([0-9a-fA-F_]+)")
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
_WRITTEN = re.compile(r"([0-9]+[ws](?=[0-9_]))?(?:0([xXbBoOdD]))?([0-9A-Za-z_]*)")
_LONGEST_DECIMAL = 4300
"""Python reads no longer ones."""
_DIGITS = {
    "x": ("a hexadecimal", "0123456789abcdef"),
    "b": ("a binary", "01"),
    "o": ("an octal", "01234567"),
    "d": ("a decimal", "0123456789"),
}


def tokenize(text: str, file: str) -> list[Token]:
    """The tokens of `text`, the last of kind END. `file` names the text until the first marker says otherwise.

    A character that starts no token becomes one of kind OTHER: it may stand in an annotation. Raises `CompileError`
    for a
    number with wrong digits, or a comment or string without end.
    """
    tokens: list[Token] = []
    line, line_start, position = 1, 0, 0
    pragma_line = False
    previous_end = -1
    while position < len(text):
        if position == line_start and (marker := _MARKER.match(text, position)):
            line = int(marker[1]) - 1
            file = re.sub(r"\\(.)", r"\1", marker[2]) if marker[2] is not None else file
            position = marker.end()
            continue
        loc = Location(file, line, position - line_start + 1)
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup == "endless":
            raise CompileError([Diagnostic(loc, _no_token(text, position))])
        kind, piece = match.lastgroup, match[0]
        position = match.end()
        newlines = piece.count("\n")
        if newlines and pragma_line and kind in ("newline", "comment"):
            tokens.append(Token(Kind.PRAGMA_END, "", loc))
            pragma_line = False
        if newlines:
            line += newlines
            line_start = match.start() + piece.rindex("\n") + 1
        if kind in ("space", "newline", "comment"):
            continue
        if kind == "number":
            _refuse_wrong_digits(text, match.start(), loc)
        token = _make(str(kind), piece, loc, match.start() == previous_end)
        previous_end = position
        if token.text == "pragma" and tokens and tokens[-1].text == "@" and token.glued:
            pragma_line = True
        tokens.append(token)
    tokens.append(Token(Kind.END, "", Location(file, line, position - line_start + 1)))
    return tokens


def _make(kind: str, piece: str, loc: Location, glued: bool) -> Token:
    if kind == "name":
        return Token(Kind.KEYWORD if piece in KEYWORDS else Kind.NAME, piece, loc, glued=glued)
    if kind == "number":
        return Token(Kind.NUMBER, piece, loc, _number(piece, loc), glued)
    if kind == "string":
        return Token(Kind.STRING, piece[1:-1], loc, glued=glued)
    return Token(Kind.SYMBOL if kind == "symbol" else Kind.OTHER, piece, loc, glued=glued)


def _refuse_wrong_digits(text: str, start: int, loc: Location) -> None:
    """Refuses a number with a size or a base that goes on with what is no digit of it: `8w0b12` is no `8w0b1`."""
    written = _WRITTEN.match(text, start)
    if written is None or (written[1] is None and written[2] is None):
        return
    name, digits = _DIGITS[(written[2] or "d").lower()]
    wrong = next((c for c in written[3] if c.lower() not in digits and c != "_"), None)
    if wrong is not None:
        raise CompileError([Diagnostic(loc, f"number `{written[0]}`: `{wrong}` is not {name} digit")])
    if not written[3].strip("_"):
        raise CompileError([Diagnostic(loc, f"number `{written[0]}` has no digits")])


def _number(piece: str, loc: Location) -> NumberValue:
    match = _NUMBER.fullmatch(piece)
    assert match is not None, "the token pattern and the number pattern disagree"
    digits = match[4].replace("_", "")
    base = _BASES[(match[3] or "d").lower()]
    if base == 10 and len(digits) > _LONGEST_DECIMAL:
        message = f"a decimal number of {len(digits)} digits"
        raise CompileError([Diagnostic(loc, message, f"{_LONGEST_DECIMAL} are taken; write it in hexadecimal")])
    value = int(digits, base)
    if match[1] is None:
        return NumberValue(value, base=base)
    width = int(match[1][:_LONGEST_DECIMAL])
    if width > MAX_WIDTH:
        message = f"{shown(width)}: widths beyond {MAX_WIDTH} bits are not supported"
        raise CompileError([Diagnostic(loc, message)])
    return NumberValue(value, width, match[2] == "s", base)


def _no_token(text: str, position: int) -> str:
    return "comment without end" if text.startswith("/*", position) else "string without end"
