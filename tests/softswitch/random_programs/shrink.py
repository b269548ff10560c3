"""Shrinks a random program over which two switches differ: `python shrink.py --seed S --number N` of the test.

Packets go first, then lines: runs of lines whose braces match, from half of the program down to single lines. What no
longer compiles, or no longer differs, is put back. What is left is printed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from comparison import compare_compiled
from programs import case_of

from catchment.softswitch.compiler.diagnostics import CompileError

Packets = list[tuple[int, bytes]]
Differs = Callable[[str, Packets], bool]
Item = TypeVar("Item")


def shrink(text: str, packets: Packets, differs: Differs) -> tuple[str, Packets]:
    """The smallest program and packets found that still differ, which the given ones must do.

    Raises:
        ValueError: these do not differ.
    """
    if not differs(text, packets):
        raise ValueError("nothing to shrink: the switches agree")
    packets = _fewer(packets, lambda left: differs(text, left), lambda part: True)
    lines = _fewer(text.splitlines(), lambda left: differs("\n".join(left) + "\n", packets), _is_balanced)
    return "\n".join(lines) + "\n", packets


def _fewer(
    items: Sequence[Item], holds: Callable[[list[Item]], bool], may_go: Callable[[Sequence[Item]], bool]
) -> list[Item]:
    """What is left after taking out runs of items, longest first, as long as that holds for the rest."""
    left, again = list(items), True
    while again:
        again = False
        for start, end in _runs(len(left)):
            if end <= len(left) and may_go(left[start:end]) and holds(left[:start] + left[end:]):
                del left[start:end]
                again = True
    return left


def _runs(count: int) -> Iterator[tuple[int, int]]:
    length = count // 2
    while length:
        for start in range(count - length, -1, -1 if length < 8 else -length):
            yield start, start + length
        length //= 2


def _is_balanced(lines: Sequence[str]) -> bool:
    depth = 0
    for character in "".join(lines):
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return depth == 0


def main(seed: Annotated[int, typer.Option()], number: Annotated[int, typer.Option()]) -> None:
    """Print the smallest program found, and its packets."""
    case = case_of(seed, number)
    with tempfile.TemporaryDirectory() as folder:
        source, cache = Path(folder, "random.p4"), Path(folder, "cache")

        def differs(program: str, packets: Packets) -> bool:
            source.write_text(program)
            try:
                return compare_compiled(source, packets, cache, delivery=case.options.delivery) is not None
            except CompileError:
                return False

        program, packets = shrink(case.text, case.packets, differs)
        source.write_text(program)
        print(program)
        print(compare_compiled(source, packets, cache, delivery=case.options.delivery))


if __name__ == "__main__":
    try:
        typer.run(main)
    except ValueError as error:
        sys.exit(f"shrink: {error}")
