"""The statements of an STF file.

    packet PORT HEX...                     a frame comes in by a port
    expect PORT [HEX...[$]]                a frame leaves: `*` is any digit, `$` ends it, else more may follow;
                                           no data: any frame
    no_packet                              nothing leaves
    add TABLE [PRIORITY] FIELD:VALUE... ACTION(ARG:VALUE, ...) [= ID]
    setdefault TABLE ACTION(ARG:VALUE, ...)
    remove all | wait
    check_counter NAME(INDEX) [packets|bytes ==|!=|<|<=|>|>= NUMBER]
    mirroring_add SESSION PORT | mirroring_add_mc SESSION GROUP | mirroring_delete SESSION | mirroring_get SESSION
    mc_mgrp_create GROUP | mc_node_create RID PORT... | mc_node_update NODE PORT... | mc_node_associate GROUP NODE
    counter_read NAME INDEX | counter_write NAME INDEX PACKETS BYTES
    register_read NAME INDEX | register_write NAME INDEX VALUE | register_reset NAME
    meter_get_rates NAME INDEX | meter_set_rates NAME INDEX RATE:BURST... | meter_array_set_rates NAME RATE:BURST...

`#` begins a comment. Table values may have `*` digits (ternary, lpm) or `/LENGTH` (lpm), `LOW..HIGH` (range). A larger
priority wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


class StfError(Exception):
    """A statement that cannot be read or carried out; the message begins with FILE:LINE."""


@dataclass(frozen=True, slots=True)
class Call:
    """An action with its arguments as written."""

    action: str
    arguments: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Packet:
    port: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Expect:
    """`data` in upper case digits and `*`; None: any frame. `exact`: nothing may follow."""

    port: int
    data: str | None
    exact: bool


@dataclass(frozen=True, slots=True)
class NoPacket:
    pass


@dataclass(frozen=True, slots=True)
class Add:
    table: str
    priority: int | None
    matches: tuple[tuple[str, str], ...]
    call: Call
    name: str | None


@dataclass(frozen=True, slots=True)
class SetDefault:
    table: str
    call: Call


@dataclass(frozen=True, slots=True)
class CheckCounter:
    """`unit` None: the cell must merely exist."""

    counter: str
    index: str
    unit: str | None
    operator: str
    value: int


@dataclass(frozen=True, slots=True)
class Command:
    """Any other statement: its name and words."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    line: int
    body: Packet | Expect | NoPacket | Add | SetDefault | CheckCounter | Command


# name: the least and most words that follow (None: any number)
COMMANDS: dict[str, tuple[int, int | None]] = {
    "remove": (1, 1),
    "wait": (0, 0),
    "mirroring_add": (2, 2),
    "mirroring_add_mc": (2, 2),
    "mirroring_delete": (1, 1),
    "mirroring_get": (1, 1),
    "mc_mgrp_create": (1, 1),
    "mc_node_create": (1, None),
    "mc_node_update": (1, None),
    "mc_node_associate": (2, 2),
    "counter_read": (2, 2),
    "counter_write": (4, 4),
    "register_read": (2, 2),
    "register_write": (3, 3),
    "register_reset": (1, 1),
    "meter_get_rates": (2, 2),
    "meter_set_rates": (3, None),
    "meter_array_set_rates": (2, None),
}

_NAME = r'(?:"[^"]+"|[A-Za-z_$][\w$]*(?:\[\d+\])?(?:\.[A-Za-z_$][\w$]*(?:\[\d+\])?)*)'
_CALL = re.compile(rf"\s*({_NAME})\s*\(([^()]*)\)\s*(?:=\s*(\w+)\s*)?$")
_MATCH = re.compile(
    rf"\s*({_NAME})\s*:\s*(0[xX][0-9a-fA-F*]+|0[bB][01*]+|\d+)((?:\s*/\s*|\.\.)(?:0[xX][0-9a-fA-F]+|\d+))?"
)
_COUNTER = re.compile(
    rf"\s*({_NAME})\s*\(\s*(\$?\w+)\s*\)\s*(?:(packets|bytes)\s*(==|!=|<=|<|>=|>)\s*(\w+))?\s*$", re.IGNORECASE
)


def number(text: str) -> int:
    """Decimal, 0x, 0b or 0o."""
    return int(text, 10) if text.isdigit() else int(text, 0)


def _unquote(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name


def _call(text: str) -> tuple[Call, str | None]:
    found = _CALL.match(text)
    if found is None:
        raise ValueError(f"an action was expected: {text.strip()}")
    arguments = []
    for argument in found[2].split(","):
        if argument.strip():
            name, colon, value = argument.partition(":")
            if not colon:
                raise ValueError(f"an argument is NAME:VALUE, not {argument.strip()}")
            arguments.append((name.strip(), value.strip()))
    return Call(_unquote(found[1]), tuple(arguments)), found[3]


def _add(rest: str) -> Add:
    table, rest = _first(rest)
    priority = None
    if found := re.match(r"\s*(\d+)\s+", rest):
        priority, rest = int(found[1]), rest[found.end() :]
    matches = []
    while found := _MATCH.match(rest):
        matches.append((_unquote(found[1]), found[2] + re.sub(r"\s", "", found[3] or "")))
        rest = rest[found.end() :]
    call, name = _call(rest)
    return Add(table, priority, tuple(matches), call, name)


def _first(rest: str) -> tuple[str, str]:
    found = re.match(rf"\s*({_NAME})", rest)
    if found is None:
        raise ValueError(f"a name was expected: {rest.strip()}")
    return _unquote(found[1]), rest[found.end() :]


def _expect(rest: str) -> Expect:
    words = rest.split()
    data = "".join(words[1:]).upper()
    exact = data.endswith("$")
    data = data.rstrip("$")
    if not re.fullmatch(r"[0-9A-F*]*", data):
        raise ValueError(f"digits and * were expected: {data}")
    return Expect(int(words[0]), data or None, exact)


def _statement(keyword: str, rest: str) -> Packet | Expect | NoPacket | Add | SetDefault | CheckCounter | Command:
    if keyword == "packet":
        words = rest.split()
        return Packet(int(words[0]), bytes.fromhex("".join(words[1:])))
    if keyword == "expect":
        return _expect(rest)
    if keyword == "no_packet":
        return NoPacket()
    if keyword == "add":
        return _add(rest)
    if keyword == "setdefault":
        table, rest = _first(rest)
        return SetDefault(table, _call(rest)[0])
    if keyword == "check_counter":
        found = _COUNTER.match(rest)
        if found is None:
            raise ValueError("check_counter NAME(INDEX) [packets|bytes OPERATOR NUMBER] was expected")
        unit = found[3].lower() if found[3] else None
        return CheckCounter(_unquote(found[1]), found[2], unit, found[4] or "", number(found[5] or "0"))
    if keyword in COMMANDS:
        words = rest.split()
        least, most = COMMANDS[keyword]
        if len(words) < least or (most is not None and len(words) > most):
            raise ValueError(f"{keyword} takes {least} words, not {len(words)}")
        return Command(keyword, tuple(words))
    raise ValueError(f"unknown statement {keyword}")


def parse(text: str, file: str = "<stf>") -> list[Statement]:
    """All statements. Raises StfError."""
    statements = []
    for line, raw in enumerate(text.splitlines(), start=1):
        words = raw.partition("#")[0].strip()
        if not words:
            continue
        keyword, _, rest = words.partition(" ")
        try:
            statements.append(Statement(line, _statement(keyword.lower(), rest)))
        except (ValueError, IndexError) as error:
            raise StfError(f"{file}:{line}: {error}") from error
    return statements
