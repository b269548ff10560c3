"""Small v1model programs around the piece under test."""

from __future__ import annotations

from pathlib import Path

from catchment.softswitch.build import build
from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.frontend import check_text
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.compiler.preprocess import preprocess
from catchment.softswitch.inprocess import Switch

TEMPLATE = """\
#include <core.p4>
#include <v1model.p4>
%(declarations)s
struct headers_t { %(headers)s }
struct meta_t { %(meta)s }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    %(parser)s
}
control V(inout headers_t hdr, inout meta_t meta) { apply { %(verify)s } }
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    %(ingress_locals)s
    apply { %(ingress)s }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    %(egress_locals)s
    apply { %(egress)s }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { %(compute)s } }
control D(packet_out packet, in headers_t hdr) { apply { %(deparser)s } }
V1Switch(P(), V(), MyIngress(), MyEgress(), C(), D()) main;
"""

PARTS = (
    "declarations",
    "headers",
    "meta",
    "parser",
    "verify",
    "ingress_locals",
    "ingress",
    "egress_locals",
    "egress",
    "compute",
    "deparser",
)


def program(**parts: str) -> str:
    """The template with the given parts; those left out are empty."""
    unknown = set(parts) - set(PARTS)
    assert not unknown, unknown
    return TEMPLATE % (dict.fromkeys(PARTS, "") | parts)


def generated(folder: Path, **parts: str) -> str:
    """The C++ code that the compiler makes of it."""
    source = folder / "code.p4"
    source.write_text(program(**parts))
    checked = check_text(preprocess(source, (), None), str(source))
    return generate(checked.program, make_p4info(checked.program), "code")


def switch(folder: Path, name: str, *, seed: int = 1, **parts: str) -> Switch:
    """Builds and starts it."""
    source = folder / f"{name}.p4"
    source.write_text(program(**parts))
    return Switch(build(source, strict=True), seed=seed)
