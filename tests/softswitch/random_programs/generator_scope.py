"""What a piece of a random program can see: types, variables, and which headers are surely valid."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

WIDTHS = (1, 2, 3, 5, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64)
WIDE = (65, 96, 100, 127, 128, 129, 160, 192, 200, 255, 256, 257, 320)
HUGE = (512, 513, 640, 1000, 1024, 2000, 2048)


@dataclass(frozen=True, slots=True)
class Num:
    """`bit<width>` or `int<width>`."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


@dataclass(frozen=True, slots=True)
class Named:
    """bool, an enum, a header or struct: `name`; the members of an enum."""

    name: str
    members: tuple[str, ...] = ()
    underlying: Num | None = None
    """The type below a serializable enum."""
    fields: tuple[tuple[str, Type], ...] = ()
    """The fields of a header or struct."""

    def __str__(self) -> str:
        return self.name


Type = Num | Named
BOOL = Named("bool")


@dataclass(frozen=True, slots=True)
class Variable:
    """A name for a value. `header` must be valid for it to be read, when not empty."""

    text: str
    type: Type
    writable: bool = True
    header: str = ""
    observed: bool = False
    """Whether it leaves with the packet by itself."""


@dataclass(frozen=True, slots=True)
class Callable:
    """A function, action or control: directions and types of its parameters, type of its value."""

    name: str
    params: tuple[tuple[str, Type], ...]
    result: Type | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What programs may contain. `strict`: nothing whose outcome is left open, so that BMv2 must agree."""

    strict: bool = True
    size: int = 6
    """Statements per block, about."""
    depth: int = 3
    """The largest depth of expressions."""
    loops: bool = True
    """p4c takes loops for BMv2, but runs the body of each just once."""
    delivery: bool = False
    """Clones, digests, multicast groups and meters, as `comparison.Deliveries` sets them up."""
    huge: float = 0.03
    """How many of the widths go up to 2048 bits."""


@dataclass(slots=True)
class Scope:
    """Variables, innermost last; copies see what was there when they were made."""

    variables: list[Variable] = field(default_factory=list)
    valid: set[str] = field(default_factory=set)
    """Headers that are surely valid here."""
    functions: list[Callable] = field(default_factory=list)
    actions: list[Callable] = field(default_factory=list)
    controls: list[Callable] = field(default_factory=list)
    tables: list[tuple[str, list[str]]] = field(default_factory=list)
    """Tables not applied yet, with their actions."""
    registers: list[tuple[str, Num, int]] = field(default_factory=list)
    counters: list[tuple[str, int]] = field(default_factory=list)
    headers: list[tuple[str, Named]] = field(default_factory=list)
    stacks: list[tuple[str, Named, int]] = field(default_factory=list)
    unions: list[tuple[str, tuple[tuple[str, Named], ...]]] = field(default_factory=list)
    in_action: bool = False
    in_function: bool = False
    in_loop: bool = False
    in_parser: bool = False
    returns: Type | None = None

    def nested(self) -> Scope:
        """The scope of an inner block: what that declares and learns stays there; tables are shared."""
        return Scope(
            list(self.variables),
            set(self.valid),
            self.functions,
            self.actions,
            self.controls,
            self.tables,
            self.registers,
            self.counters,
            self.headers,
            self.stacks,
            self.unions,
            self.in_action,
            self.in_function,
            self.in_loop,
            self.in_parser,
            self.returns,
        )

    def of_type(self, wanted: Type, *, writable: bool = False) -> list[Variable]:
        seen = {v.text: v for v in self.variables}  # an inner one hides an outer one
        return [v for v in seen.values() if v.type == wanted and (v.writable or not writable)]

    def visible(self, *, writable: bool = False) -> list[Variable]:
        seen = {v.text: v for v in self.variables}
        return [v for v in seen.values() if v.writable or not writable]


def random_width(rng: random.Random, options: Options) -> int:
    """Mostly small, now and then beyond 64 and up to 2048 bits."""
    dice = rng.random()
    if dice < options.huge:
        return rng.choice(HUGE)
    if dice < 0.2:
        return rng.choice(WIDE)
    return rng.choice(WIDTHS)


def random_num(rng: random.Random, options: Options) -> Num:
    width = random_width(rng, options)
    return Num(width, width > 1 and rng.random() < 0.35)
