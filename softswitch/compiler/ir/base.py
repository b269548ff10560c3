"""What every part of the IR is made of: nodes, annotations, variables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from catchment.softswitch.compiler.annotation import Annotation
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import Type


@dataclass(frozen=True, slots=True)
class Node:
    """Anything with a place in the source."""

    loc: Location


class Direction(Enum):
    """A parameter's direction. NONE: action data set by the control plane, or an extern passed by reference."""

    NONE = ""
    IN = "in"
    OUT = "out"
    INOUT = "inout"


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Node):
    """A local variable or parameter. `name` is as written; `unique` is an identifier unique within its unit."""

    name: str
    unique: str
    type: Type
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Param(Variable):
    """A parameter of a unit, action or function."""

    direction: Direction = Direction.NONE
