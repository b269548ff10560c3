"""Reads the C headers of the package: their declarations, with the comments that stand in front of them.

Only what these headers use is understood: constants, opaque types, structs, enums and functions. A comment belongs to
the declaration below it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_ITEM = re.compile(
    r"""(?P<comment>/\*.*?\*/)
    | ^\#define\ (?P<constant>\w+)\ (?P<value>\d+)$
    | (?P<skip>^\#[^\n]*$ | ^extern\ "C"\ \{$ | ^\}$)
    | typedef\ struct\ (?P<opaque>\w+)\ \w+;
    | (?:typedef\ )?(?P<kind>struct|enum)(?:\ (?P<body>\w+))?\ \{(?P<members>.*?)\}[^;{}]*;
    | \w+_PUBLIC\s+(?P<prototype>[^;]*?(?P<function>\w+)\([^;]*\);)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_MEMBER = re.compile(r"/\*.*?\*/|[^,;/]+[,;]?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a struct with its type, or a value of an enum."""

    text: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declaration; `kind` is constant, opaque, struct, enum or function."""

    kind: str
    name: str
    text: str
    meaning: str
    members: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Header:
    """What a header declares, and what it says of itself."""

    meaning: str
    declarations: tuple[Declaration, ...]


class HeaderError(Exception):
    """A header has something that the reader does not understand."""


def read(header: Path) -> Header:
    """The declarations of a header.

    Raises:
        HeaderError: something in it is neither of the kinds above nor a comment.
    """
    text = header.read_text("utf-8")
    said: list[str] = []
    found: list[Declaration] = []
    comment, end = "", 0
    for match in _ITEM.finditer(text):
        _nothing_is_left_out(header, text[end : match.start()])
        end = match.end()
        if match["comment"]:
            comment = _prose(match["comment"][2:-2])
            said.append(comment)
        else:
            if not match["skip"]:
                found.append(_declaration(match, comment))
            comment = ""
    _nothing_is_left_out(header, text[end:])
    return Header(said[0], tuple(found))


def _nothing_is_left_out(header: Path, text: str) -> None:
    if text.strip():
        raise HeaderError(f"{header.name}: cannot read {text.strip().splitlines()[0]!r}")


def _declaration(match: re.Match[str], meaning: str) -> Declaration:
    if match["constant"]:
        return Declaration("constant", match["constant"], f"#define {match['constant']} {match['value']}", meaning)
    if match["opaque"]:
        return Declaration("opaque", match["opaque"], match[0], meaning)
    if match["function"]:
        return Declaration(
            "function", match["function"], " ".join(match["prototype"].split()).replace("( ", "("), meaning
        )
    kind, name = match["kind"], match["body"] or ""
    return Declaration(kind, name, f"{kind} {name}".rstrip(), meaning, tuple(_members(match["members"])))


def _members(body: str) -> list[Member]:
    """The members of a struct or an enum; a comment behind one, or in front of it, says what it means."""
    members: list[Member] = []
    ahead, end = "", 0
    for match in _MEMBER.finditer(body):
        text = match[0].strip().rstrip(",;")
        if not text:
            continue
        if not text.startswith("/*"):
            members.append(Member(" ".join(text.split()), ahead))
            ahead, end = "", match.start() + len(match[0].rstrip())
        elif members and "\n" not in body[end : match.start()]:
            members[-1] = Member(members[-1].text, _prose(text[2:-2]))
        else:
            ahead = _prose(text[2:-2])
    return members


def _prose(comment: str) -> str:
    return " ".join(re.sub(r"^\s*\*", "", comment, flags=re.MULTILINE).split())
