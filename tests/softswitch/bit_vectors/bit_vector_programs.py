"""P4 programs of many expressions, each beside what z3 says that it is: the expressions' values, frame by frame.

Nothing here reads P4 or knows the compiler's rules. An expression is written twice, as P4 text and as a z3 term; a
program sends the values of its texts, and z3 says the values of the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import z3

from catchment.softswitch.build import build
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch

Inject = Callable[[int, bytes], list[tuple[int, bytes]]]

QUICK = ("-O0", "-fno-lto")


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression of type bit<W> or int<W>, W the width of its term."""

    text: str
    term: z3.BitVecRef
    signed: bool = False

    @property
    def type(self) -> str:
        """Its type in P4."""
        return f"{'int' if self.signed else 'bit'}<{self.term.size()}>"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What every frame brings: names and widths in bits, in order."""

    widths: Mapping[str, int]

    def variable(self, name: str, *, signed: bool = False) -> Typed:
        """An input as an expression; a signed one has its own name in the program."""
        return Typed(f"{name}_int" if signed else name, z3.BitVec(name, self.widths[name]), signed)

    def frame(self, values: Mapping[str, int]) -> bytes:
        """The frame that brings these values."""
        return b"".join(values[name].to_bytes(_bytes(width), "big") for name, width in self.widths.items())


PROGRAM = """\
#include <core.p4>
#include <v1model.p4>
header in_h {{ {inputs} }}
header out_h {{ {outputs} }}
struct headers_t {{ in_h i; out_h o; }}
struct meta_t {{ bit<8> unused; }}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    state start {{ b.extract(hdr.i); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    apply {{
        {variables}
        hdr.o.setValid();
{statements}
        sm.egress_spec = 1;
    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control D(packet_out b, in headers_t hdr) {{ apply {{ b.emit(hdr.o); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def _bytes(width: int) -> int:
    return (width + 7) // 8


def _field(name: str, width: int) -> str:
    padding = -width % 8
    return (f"bit<{padding}> pad_{name}; " if padding else "") + f"bit<{width}> {name};"


def program(inputs: Inputs, rows: Sequence[Typed]) -> str:
    """A program that answers a frame of `inputs` with the value of each row."""
    variables = (
        f"bit<{width}> {name} = hdr.i.{name}; int<{width}> {name}_int = (int<{width}>)hdr.i.{name};"
        for name, width in inputs.widths.items()
    )
    statements = (
        f"        hdr.o.f{at} = {f'(bit<{row.term.size()}>)({row.text})' if row.signed else row.text};"
        for at, row in enumerate(rows)
    )
    return PROGRAM.format(
        inputs=" ".join(_field(name, width) for name, width in inputs.widths.items()),
        outputs=" ".join(_field(f"f{at}", row.term.size()) for at, row in enumerate(rows)),
        variables="\n        ".join(variables),
        statements="\n".join(statements),
    )


def compiled(source: Path) -> Inject:
    """The program compiled to C++."""
    return Switch(build(source, flags=QUICK), seed=1).inject


def interpreted(source: Path) -> Inject:
    """The program in the interpreter."""
    return InterpretedSwitch(check_file(source).program, seed=1).inject


def value_of(term: z3.BitVecRef, inputs: Inputs, values: Mapping[str, int]) -> int:
    """What z3 makes of a term with these inputs."""
    pairs = [(z3.BitVec(name, width), z3.BitVecVal(values[name], width)) for name, width in inputs.widths.items()]
    value = z3.simplify(z3.substitute(term, *pairs))
    assert isinstance(value, z3.BitVecNumRef), value
    return int(value.as_long())


def differences(inject: Inject, inputs: Inputs, rows: Sequence[Typed], values: Mapping[str, int]) -> list[str]:
    """The rows whose value in a switch is not what z3 says, for one frame."""
    ((port, answer),) = inject(3, inputs.frame(values))
    assert port == 1
    wrong, at = [], 0
    for row in rows:
        size = _bytes(row.term.size())
        got, wanted = int.from_bytes(answer[at : at + size], "big"), value_of(row.term, inputs, values)
        at += size
        if got != wanted:
            given = " ".join(f"{name}={value:#x}" for name, value in values.items())
            wrong.append(f"{row.type} {row.text} gives {got:#x}, z3 {wanted:#x}: {given}")
    assert at == len(answer)
    return wrong
