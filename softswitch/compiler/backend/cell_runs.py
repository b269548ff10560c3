"""Long runs of headers that loops leave in registers: what the program writes to cells last is not written twice.

    value = held + value; sum.write(index, value);

is a lane's last value, and stands in its cell until the frame has left: a deparser that emits the header takes it from
there. So it is where nothing writes these cells afterwards but a loop over the same run, of the same frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import externs
from catchment.softswitch.compiler.backend.effects import nodes
from catchment.softswitch.compiler.backend.layout import Run, Types
from catchment.softswitch.compiler.backend.long_headers import code_of
from catchment.softswitch.compiler.backend.loop_cells import written


@dataclass(frozen=True, slots=True)
class RunLoop:
    """A loop over a whole run."""

    owner: ir.ControlUnit
    unit: ir.ControlUnit
    parameter: int
    """That of the unit which walks along the run."""
    count: int


def stay_in_cells(types: Types, loops: Sequence[RunLoop], run: Run) -> bool:
    """Whether all these loops, which are all that is done with a run, write it to cells that lie as it does."""
    return all(_writes(types, loop, run) and _alone(loop, loops) for loop in loops)


def _writes(types: Types, loop: RunLoop, run: Run) -> bool:
    cell = written(types, loop.unit)
    if cell is None or cell.parameter != loop.parameter or cell.array.type is None:
        return False
    return externs.element_type(cell.array.type, cell.array.loc).width == run.width


def _alone(loop: RunLoop, loops: Sequence[RunLoop]) -> bool:
    """Whether the loop's owner applies such units in loops over this run only."""
    applied = [
        node
        for node in nodes(tuple(code_of(loop.owner)))
        if isinstance(node, ir.UnitApply) and node.instance.unit is loop.unit
    ]
    return len(applied) == sum(other.count for other in loops if other.owner is loop.owner and other.unit is loop.unit)
