"""Small v1model programs for the tests: a frame around the piece under test."""

from __future__ import annotations

from pathlib import Path

from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostic
from catchment.softswitch.compiler.frontend import Checked, check_file

FRAME = """\
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; int<8> s; bit<32> w; }
struct headers { h_t h; h_t[4] stack; }
struct meta_t { bit<8> x; bit<16> y; bit<32> z; bool flag; }
%(top)s
parser P(packet_in packet, out headers hdr, inout meta_t meta, inout standard_metadata_t sm) {
%(parser)s
}
control V(inout headers hdr, inout meta_t meta) { apply {} }
control I(inout headers hdr, inout meta_t meta, inout standard_metadata_t sm) {
%(locals)s
    apply {
%(body)s
    }
}
control E(inout headers hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control C(inout headers hdr, inout meta_t meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
START = "    state start { packet.extract(hdr.h); transition accept; }"


def program(*, top: str = "", parser: str = START, locals_: str = "", body: str = "") -> str:
    """A whole program with pieces put in."""
    return FRAME % {"top": top, "parser": parser, "locals": locals_, "body": body}


def check(tmp_path: Path, source: str) -> Checked:
    """Checks a program text; raises CompileError."""
    path = tmp_path / "program.p4"
    path.write_text(source)
    return check_file(path)


def refused(tmp_path: Path, source: str) -> tuple[Diagnostic, ...]:
    """The errors of a program that must be refused."""
    try:
        check(tmp_path, source)
    except CompileError as error:
        return error.diagnostics
    raise AssertionError(f"accepted:\n{source}")


def place(source: str, mark: str = "<!>") -> tuple[str, int, int]:
    """A source with its mark taken out, and the line and column where it stood."""
    before = source[: source.index(mark)]
    line = before.count("\n") + 1
    return source.replace(mark, "", 1), line, len(before) - (before.rfind("\n") + 1) + 1
