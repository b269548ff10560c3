"""Writes equal sub-control applications in a row (reroll.py) as loops, and before the one that always holds others that
are shorter where they do the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.calls import is_big
from catchment.softswitch.compiler.backend.expressions import Expressions
from catchment.softswitch.compiler.backend.loop_cells import Given, reads, written
from catchment.softswitch.compiler.backend.loop_masks import ZERO, mask_of_held, masks, ones
from catchment.softswitch.compiler.backend.reroll import Walk
from catchment.softswitch.compiler.backend.scope import instance_member, state_name, unit_name


@dataclass(frozen=True, slots=True)
class _Loop:
    """A way to write the loop, for where `conditions` hold."""

    conditions: tuple[str, ...]
    texts: Sequence[str]
    before: str = ""
    after: str = ""


def write(ex: Expressions, first: ir.UnitApply, count: int, arguments: Sequence[Walk | ir.Expr]) -> None:
    """Writes `count` applications, of which `first` is one, with their `arguments`."""
    unit = first.instance.unit
    assert isinstance(unit, ir.ControlUnit)
    out = ex.scope.out
    with out.block():
        base = ex.scope.temporary()
        out.line(f"const {state_name(unit)} {base} = s.{instance_member(first.instance)};")
        texts = []
        for param, argument in zip(unit.params, arguments, strict=True):
            if isinstance(argument, Walk):
                start = f"{argument.first} + k" if argument.first else "k"
                texts.append(f"{ex.place(argument.header)}.{argument.array}[{start}]")
            else:
                # A copy of its own: nothing that the loop writes can alias it.
                text = ex.value(argument)
                literal = isinstance(argument, ir.Literal) and not is_big(param.type)
                texts.append(text if literal else ex.keep(param.type, text, argument))
        for loop in _from_frame(ex, unit, base, arguments, _with_known_masks(ex, unit, texts)):
            # GCC leaves a loop as it is that it takes for unlikely, as it does where two numbers have to be equal.
            condition = f"if ({' && '.join(loop.conditions)}) [[likely]] " if loop.conditions else ""
            with out.block(f"{condition}for (std::size_t k = 0; k < {count}; ++k)"):
                one = ex.scope.temporary()
                out.line(f"const {state_name(unit)} {one} = {base}.at(k);")
                for line in (
                    loop.before,
                    f"{unit_name(unit)}{{{', '.join(['pkt', one, *loop.texts])}}}.run();",
                    loop.after,
                ):
                    if line:
                        out.line(line)
            if loop.conditions:
                out.line("else")
        _fetch_next(ex, unit, base, texts)


def _fetch_next(ex: Expressions, unit: ir.ControlUnit, base: str, texts: Sequence[str]) -> None:
    """Asks for the cells behind this frame's: the frames of a window walk through them one after the other."""
    for array, index in reads(ex.scope.program.types, unit):
        cells = f"{base}.{instance_member(array)}"
        ex.scope.out.line(f"if (pkt.engine.shared) {cells}.fetch(to_u64({index.text(texts)}) + 1);")


def _with_known_masks(ex: Expressions, unit: ir.ControlUnit, texts: Sequence[str]) -> list[_Loop]:
    """The loop, and before it loops for what masks mostly are, which the C++ compiler leaves out then.

    What it sees to be forgotten at once it does not read. The first worker's vector is assigned so: its slot lies in
    the cache of whoever wrote there last.
    """
    types = ex.scope.program.types
    held = mask_of_held(types, unit)
    others = {mask: value for mask, value in masks(types, unit).items() if mask != held}
    whole = _Loop((), texts)
    loops = [_assume(ex, unit, whole, others), whole] if others else [whole]
    if held is None:
        return loops
    assigns = [_assume(ex, unit, loop, {held: ZERO}) for loop in loops]
    if not others:
        return [*assigns, whole]
    return [assigns[0], _assume(ex, unit, loops[0], {held: ones(held)}), assigns[1], whole]


def _assume(ex: Expressions, unit: ir.ControlUnit, loop: _Loop, values: Mapping[Given, str]) -> _Loop:
    """The loop for where the caller gives these values: it has copies of their parameters, in which they stand."""
    texts, conditions = list(loop.texts), list(loop.conditions)
    out = ex.scope.out
    for at in {value.parameter: None for value in values}:
        copy, param = ex.scope.temporary(), unit.params[at]
        out.line(f"[[maybe_unused]] {ex.cpp(param.type, param)} {copy} = {texts[at]};")
        texts[at] = copy
    for value, text in values.items():
        conditions.append(f"{value.text(loop.texts)} == {text}")
        out.line(f"{value.text(texts)} = {text};")
    return _Loop((*conditions,), texts)


def _from_frame(
    ex: Expressions, unit: ir.ControlUnit, base: str, arguments: Sequence[Walk | ir.Expr], loops: list[_Loop]
) -> list[_Loop]:
    """The loops, and before them those that take a run out of the frame first (frame_runs.py)."""
    types, out = ex.scope.program.types, ex.scope.out
    for at, argument in enumerate(arguments):
        if not isinstance(argument, Walk):
            continue
        pointer = types.in_frame(argument.header.type, argument.array)
        if not pointer:
            continue
        place = ex.place(argument.header)
        array = f"{place}.{argument.array}"
        frame, lane = ex.scope.temporary(), ex.scope.temporary()
        out.line(f"const std::uint8_t* const {frame} = std::exchange({place}.{pointer}, nullptr);")
        source, after = frame, f"{array}[k] = {lane};"
        if left := types.in_cells(argument.header.type, argument.array):
            source, after = _row(ex, unit, base, loops[-1].texts, frame), ""
            _leave_in_cells(ex, f"{place}.{left}", array, frame, source)
        kind = ex.cpp(unit.params[at].type, argument.header)
        from_frame = [
            dataclasses.replace(
                loop,
                conditions=(f"{source} != nullptr", *loop.conditions),
                texts=[*loop.texts[:at], lane, *loop.texts[at + 1 :]],
                before=f"{kind} {lane} = load_be<{kind}>({frame} + sizeof({kind}) * k);",
                after=after,
            )
            for loop in loops
        ]
        return [*from_frame, loops[-1]]
    return loops


def _row(ex: Expressions, unit: ir.ControlUnit, base: str, texts: Sequence[str], frame: str) -> str:
    """A variable that says where the cells lie in which a loop leaves a run of the frame; null if there are none."""
    cell = written(ex.scope.program.types, unit)
    assert cell is not None, "a unit that leaves a run in cells writes them"
    row = ex.scope.temporary()
    where = f"{base}.{instance_member(cell.array)}.find(to_u64({cell.index.text(texts)}))"
    ex.scope.out.line(f"const std::uint8_t* const {row} = {frame} != nullptr ? {where} : nullptr;")
    return row


def _leave_in_cells(ex: Expressions, left: str, array: str, frame: str, row: str) -> None:
    """Says that a run lies in the cells of `row` after the loop (cell_runs.py); elsewhere the array has it from now on.

    `left` says where a loop before has left the run.
    """
    before, out = ex.scope.temporary(), ex.scope.out
    out.line(f"if (const std::uint8_t* const {before} = {left}) std::memcpy({array}, {before}, sizeof {array});")
    out.line(f"if ({frame} != nullptr && {row} == nullptr) load_run({array}, {frame});")
    out.line(f"{left} = {row};")
