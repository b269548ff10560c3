"""Long runs of headers that stay in the frame, as they came, until a loop takes them out (loop_writer.py).

    packet.extract(hdr.lanes);  ...  lane0.apply(hdr.lanes.d0, slot); lane1.apply(hdr.lanes.d1, slot); ...

reads the lanes once, in the loop, if nothing else of the program looks at one of them. A deparser that emits the header
before any loop has run copies what came.
"""

from __future__ import annotations

from collections.abc import Sequence

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import reroll
from catchment.softswitch.compiler.backend.cell_runs import RunLoop, stay_in_cells
from catchment.softswitch.compiler.backend.effects import ExitAnalysis, children
from catchment.softswitch.compiler.backend.layout import LONG_RUN, Run, Types, contains, varbit_width
from catchment.softswitch.compiler.backend.long_headers import (
    code_of,
    has_second,
    in_metadata,
    only_extracted,
    shared,
    units_of,
)
from catchment.softswitch.compiler.types import HeaderType, StructType, Type

_BLOCKS = ("vr", "ig", "eg", "ck", "dep")


def leave_in_frames(program: ir.Program, types: Types, exits: ExitAnalysis, headers: Type) -> None:
    """Marks such runs of `headers`, each of a header that the pipeline has once."""
    if not isinstance(headers, StructType):
        return
    for field in headers.fields:
        t = field.type
        if not isinstance(t, HeaderType) or sum(contains(other.type, t) for other in headers.fields) != 1:
            continue
        runs = {run for run, _ in types.runs(t).values() if run.length * run.width // 8 >= LONG_RUN}
        if not runs or varbit_width(t) or in_metadata(program, t) or not only_extracted(program, t):
            continue
        uses = _Uses(types, exits, t, runs)
        if uses.any(program):
            continue
        types.leave_in_frames(t, runs)
        if shared(program, t) and not has_second(program, t):
            types.leave_in_cells(t, [run for run, loops in uses.loops.items() if stay_in_cells(types, loops, run)])


def _is_given(expr: ir.Expr) -> bool:
    """Whether a header is, or lies in, what a unit must not write: an `in` parameter."""
    while isinstance(expr, ir.FieldRef):
        expr = expr.base
    variable = expr.variable if isinstance(expr, ir.VarRef) else None
    return isinstance(variable, ir.Param) and variable.direction is ir.Direction.IN


class _Uses:
    """Looks for code that reads or writes a part of a header other than by loops over whole runs of it."""

    def __init__(self, types: Types, exits: ExitAnalysis, header: HeaderType, runs: set[Run]) -> None:
        self._types = types
        self._exits = exits
        self._header = header
        self._runs = runs
        self.loops: dict[Run, list[RunLoop]] = {}
        """Those over whole runs, as far as any() has looked."""

    def any(self, program: ir.Program) -> bool:
        roots: list[object] = [function.body for function in program.functions]
        roots += [action.body for action in program.global_actions]
        if any(self._touched(root, None) for root in roots):
            return True
        units = {id(unit): unit for block in _BLOCKS for unit in units_of(program.pipeline[block].unit)}
        return any(self._touched(root, unit) for unit in units.values() for root in code_of(unit))

    def _has(self, t: Type) -> bool:
        return contains(t, self._header)

    def _touched(self, root: object, unit: object) -> bool:
        """`unit`: whose code it is; None: nobody's."""
        if isinstance(root, ir.Block):
            return self._statements(root.body, unit)
        if isinstance(root, ir.IsValid | ir.SetValidity):
            return self._passed(root.header, unit)
        if isinstance(root, ir.UnitApply | ir.ActionCall | ir.FunctionCall | ir.ExternCall):
            passes = not isinstance(root, ir.ExternCall) or (root.extern, root.method) == ("packet_out", "emit")
            return any((self._passed if passes else self._touched)(arg, unit) for arg in root.args)
        if isinstance(root, ir.Expr) and self._has(root.type):
            return True
        if isinstance(root, ir.FieldRef):
            return self._passed(root, unit)
        return any(self._touched(child, unit) for child in children(root))

    def _passed(self, expr: ir.Expr, unit: object) -> bool:
        """The same for what may be the header, or have it in it: passing that on as a whole touches nothing."""
        if isinstance(expr, ir.VarRef):
            return False
        if isinstance(expr, ir.FieldRef):
            return expr.base.type is self._header or self._passed(expr.base, unit)
        return self._touched(expr, unit)

    def _statements(self, body: tuple[ir.Stmt, ...], unit: object) -> bool:
        at = 0
        while at < len(body):
            count, arguments = reroll.find(self._types, self._exits, unit, body[at:])
            if self._looped(arguments, body[at], count, unit) if count else self._touched(body[at], unit):
                return True
            at += max(count, 1)
        return False

    def _looped(self, arguments: Sequence[reroll.Walk | ir.Expr], first: ir.Stmt, count: int, unit: object) -> bool:
        walks = {at: argument for at, argument in enumerate(arguments) if isinstance(argument, reroll.Walk)}
        over = {at: walk for at, walk in walks.items() if walk.header.type is self._header}
        for at, walk in over.items():
            run = self._whole(walk, count)
            if run is None or len(walks) > 1 or _is_given(walk.header):
                return True
            assert isinstance(unit, ir.ControlUnit)
            assert isinstance(first, ir.UnitApply)
            assert isinstance(first.instance.unit, ir.ControlUnit)
            self.loops.setdefault(run, []).append(RunLoop(unit, first.instance.unit, at, count))
        return any(self._touched(argument, unit) for argument in arguments if not isinstance(argument, reroll.Walk))

    def _whole(self, walk: reroll.Walk, count: int) -> Run | None:
        runs = (run for run in self._runs if walk.array == run.array and walk.first == 0 and count == run.length)
        return next(runs, None)
