"""C++ text: indentation, identifiers, literals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Lines with their indentation."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self._depth = depth

    def line(self, text: str = "") -> None:
        self.lines.append("  " * self._depth + text if text else "")

    @contextmanager
    def block(self, head: str = "", tail: str = "}") -> Iterator[None]:
        """`head {`, the body indented, `tail`."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line(tail)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def extend(self, other: Writer) -> None:
        self.lines.extend("  " * self._depth + line if line else "" for line in other.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


def identifier(name: str) -> str:
    """`name` with everything that C++ does not take in an identifier made an underscore. Callers add a prefix."""
    return re.sub(r"\W", "_", name)


def string_literal(text: str) -> str:
    """A C++ string literal."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        out.append(char if char.isprintable() and byte < 128 and char not in '"\\?' else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def bits_literal(value: int, width: int) -> str:
    """`value` modulo 2^width as bits<width>."""
    value &= (1 << width) - 1
    if width <= 32:
        return f"bits<{width}>({value}U)"
    if width <= 64:
        return f"bits<{width}>({value:#x}ULL)"
    limbs = ", ".join(f"{(value >> (64 * i)) & (2**64 - 1):#x}ULL" for i in range((width + 63) // 64))
    return f"from_limbs<{width}>({{{limbs}}})"
