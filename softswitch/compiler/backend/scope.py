"""What the emitters of one C++ function share."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.effects import ExitAnalysis
from catchment.softswitch.compiler.backend.layout import Types
from catchment.softswitch.compiler.backend.text import Writer, identifier


@dataclass(frozen=True, slots=True)
class DigestRequest:
    """One digest() of the program: its name, and its members as `(C++ bytes, or None)` when ingress has ended."""

    name: str
    members: tuple[str | None, ...]


@dataclass(slots=True)
class ProgramScope:
    """Shared by the whole program."""

    types: Types
    exits: ExitAnalysis
    errors: tuple[str, ...]
    roles: dict[int, str] = field(default_factory=dict)
    """Id of a type -> what the pipeline calls it: headers, metadata or standard metadata."""
    digests: list[DigestRequest] = field(default_factory=list)
    has_user_externs: bool = False
    """Whether a file with the user's externs was given."""
    counts_steps: bool = False
    """Whether a loop was written whose rounds are counted."""

    def error(self, name: str) -> int:
        """The ordinal of a core.p4 error."""
        return self.errors.index(name)


@dataclass(slots=True)
class Scope:
    """One C++ function being written.

    `in_parser`: errors end the parser (`goto reject`). `returns_exit`: the function returns whether `exit` ran;
    `returns_value`: it is a P4 function. `resume`: the statement that ends the function normally.
    """

    program: ProgramScope
    out: Writer
    unit: ir.ControlUnit | ir.ParserUnit | None
    in_parser: bool = False
    returns_exit: bool = False
    returns_value: bool = False
    temporaries: list[int] = field(default_factory=lambda: [0])
    rejects: list[bool] = field(default_factory=lambda: [False])

    def temporary(self) -> str:
        self.temporaries[0] += 1
        return f"t{self.temporaries[0]}"

    def reject(self, error: str) -> str:
        """Statements that end the parser with this error."""
        self.rejects[0] = True
        return f"error = {self.program.error(error)}; goto reject;"

    def nested(self, out: Writer) -> Scope:
        """The same function, writing elsewhere."""
        return Scope(
            self.program,
            out,
            self.unit,
            self.in_parser,
            self.returns_exit,
            self.returns_value,
            self.temporaries,
            self.rejects,
        )


def variable_name(variable: ir.Variable) -> str:
    return f"v_{identifier(variable.unique)}"


def action_name(action: ir.Action) -> str:
    return f"{'ga' if action.is_global else 'a'}_{identifier(action.name)}"


def table_name(table: ir.Table) -> str:
    return f"t_{identifier(table.name)}"


def instance_name(decl: ir.InstanceDecl) -> str:
    return f"{'s.g->' if decl.is_global else 's.'}{instance_member(decl)}"


def instance_member(decl: ir.InstanceDecl) -> str:
    return f"i_{identifier(decl.name)}"


def unit_name(unit: ir.ControlUnit | ir.ParserUnit) -> str:
    return f"{'C' if isinstance(unit, ir.ControlUnit) else 'P'}_{identifier(unit.unique)}"


def state_name(unit: ir.ControlUnit | ir.ParserUnit) -> str:
    """The struct of a unit's instance data."""
    return f"{unit_name(unit)}_instance"
