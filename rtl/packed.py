"""Packed structs of the RTL packages, read from the packages: values in, bits out, and back."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from catchment.rtl.sources import PACKAGES

Values: TypeAlias = Mapping[str, "int | Values"]
"""Member -> value; of a member that is a struct itself, its own values."""

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
}  # fmt: skip


class PackedError(ValueError):
    """A package has no such struct, or values do not fit it; the message names the member."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a packed struct; `inner` when it is a struct itself."""

    name: str
    bits: int
    signed: bool = False
    inner: Layout | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """A packed struct; its first member is in the high bits."""

    name: str
    members: tuple[Member, ...]

    @property
    def bits(self) -> int:
        """Width of the struct."""
        return sum(member.bits for member in self.members)

    def pack(self, values: Values) -> int:
        """The struct as a number.

        Raises:
            PackedError: a member is missing, unknown, or out of range.
        """
        if unknown := values.keys() - {member.name for member in self.members}:
            raise PackedError(f"{self.name} has no member {sorted(unknown)[0]}")
        packed = 0
        for member in self.members:
            if member.name not in values:
                raise PackedError(f"{self.name}: no value for {member.name}")
            packed = packed << member.bits | self._field(member, values[member.name])
        return packed

    def _field(self, member: Member, value: int | Values) -> int:
        if isinstance(value, Mapping) != (member.inner is not None):
            raise PackedError(f"{self.name}.{member.name}: give {'members' if member.inner else 'a number'}")
        if member.inner is not None:
            assert isinstance(value, Mapping)
            return member.inner.pack(value)
        assert not isinstance(value, Mapping)
        number = int(value)
        least = -(1 << member.bits - 1) if member.signed else 0
        if not least <= number < least + (1 << member.bits):
            raise PackedError(f"{self.name}.{member.name}: {number} does not fit into {member.bits} bits")
        return number & (1 << member.bits) - 1

    def unpack(self, packed: int) -> dict[str, int]:
        """Member -> value; members of a struct within this one stand beside its own, in their order."""
        found: dict[str, int] = {}
        left = self.bits
        for member in self.members:
            left -= member.bits
            value = packed >> left & (1 << member.bits) - 1
            if member.inner is not None:
                found |= member.inner.unpack(value)
            else:
                found[member.name] = value - (1 << member.bits) if member.signed and value >> member.bits - 1 else value
        return found

    def words(self, values: Values) -> list[int]:
        """The struct in words of 32 bits, the low one first, as Verilator has a wide port."""
        packed = self.pack(values)
        return [packed >> at & 0xFFFF_FFFF for at in range(0, self.bits, 32)]

    def of_words(self, words: list[int]) -> dict[str, int]:
        """`unpack` of words of 32 bits, the low one first."""
        return self.unpack(sum(word << 32 * i for i, word in enumerate(words)))


@cache
def _text(package: str) -> str:
    for path in PACKAGES:
        if path.stem == package:
            return re.sub(r"//.*", "", path.read_text())
    raise PackedError(f"there is no package {package}")


@cache
def _imports(package: str) -> list[tuple[str, str]]:
    return re.findall(r"^\s*import (\w+)::(\*|\w+);", _text(package), re.MULTILINE)


def _definition(package: str, name: str, pattern: str) -> tuple[str, re.Match[str]]:
    """The package, this one or one it imports, that defines `name`, and the match of `pattern` with NAME filled in."""
    if found := re.search(pattern.replace("NAME", re.escape(name)), _text(package), re.DOTALL):
        return package, found
    for other, what in _imports(package):
        if what in ("*", name):
            try:
                return _definition(other, name, pattern)
            except PackedError:
                continue
    raise PackedError(f"{package} knows no {name}")


def _value(package: str, text: str) -> int:
    """A constant expression: integers, parameters of the package or of those it imports, + - * / and $clog2."""
    text = re.sub(r"\d+'d(\d+)", r"\1", text).replace("$clog2", "clog2")

    def of(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            where, found = _definition(package, node.id, r"localparam [^;=]*\bNAME\s*=\s*([^;]+);")
            return _value(where, found[1])
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "clog2":
            return (of(node.args[0]) - 1).bit_length()
        raise PackedError(f"{package}: {text.strip()} is no constant that is understood here")

    return of(ast.parse(text.strip(), mode="eval").body)


def _width(package: str, dimension: str) -> int:
    if not dimension:
        return 1
    high, low = dimension.strip("[] ").split(":")
    return _value(package, high) - _value(package, low) + 1


def _member(package: str, text: str) -> Member:
    found = re.fullmatch(r"(?:(logic)|(\w+))\s*(signed\b)?\s*(\[[^]]*\])?\s*(\w+)", text.strip())
    if found is None:
        raise PackedError(f"{package}: the member `{text.strip()}` is not understood here")
    logic, kind, signed, dimension, name = found.groups()
    if logic:
        return Member(name, _width(package, dimension or ""), bool(signed))
    where, defined = _definition(
        package,
        kind,
        r"typedef (struct packed|(?:enum )?logic)\s*(signed\b)?\s*(\[[^]]*\])?\s*(?:\{[^}]*\})?\s*\bNAME\s*;",
    )
    if defined[1] == "struct packed":
        inner = layout(where, kind)
        return Member(name, inner.bits, inner=inner)
    return Member(name, _width(where, defined[3] or ""), bool(defined[2]))


@cache
def layout(package: str, struct: str) -> Layout:
    """The packed struct `struct` of a package, or of one that it imports.

    Raises:
        PackedError: it is not there, or has a member whose width is not understood.
    """
    where, found = _definition(package, struct, r"typedef struct packed\s*\{([^}]*)\}\s*NAME\s*;")
    return Layout(struct, tuple(_member(where, text) for text in found[1].split(";") if text.strip()))
