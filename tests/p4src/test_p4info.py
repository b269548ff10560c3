"""The P4Info in the repository is what p4c writes: control plane and targets agree on names and ids."""

from __future__ import annotations

from pathlib import Path

import pytest
from bmv2_target import compile_program, missing_compiler
from google.protobuf import text_format
from scenarios import ROOT, Build

from catchment.softswitch.compiler.driver import compile_program as compile_embedded
from catchment.wire.generated import p4info_pb2
from catchment.wire.generated.constants import MAX_WORKERS

GOLDEN = ROOT / "p4src/p4info"
CONTRACT = {
    "jobs": ["gen", "port"],
    "receivers": ["gen", "port"],
    "own_addresses": ["target"],
    "l2": ["dst"],
    "bindings": ["port"],
    "switch_addresses": ["address"],
    "ingress_faults": ["port", "type"],
    "egress_faults": ["port", "type"],
}


BOTH = {"next_exp", "slot_flags", f"worker{MAX_WORKERS - 1}.heartbeat"}
PROGRAMS = {
    "luwu": {"tag", "bitmap", "last", "acked"} | BOTH,
    "p4sgd": {"slot_tag.tag", "slot_workers.bitmap", "ack_tag.tag", "ack_workers.bitmap"} | BOTH,
}
every_build = pytest.mark.parametrize(("program", "lanes"), [(p, n) for p in PROGRAMS for n in (8, 64, 256)])


def golden(program: str, lanes: int) -> p4info_pb2.P4Info:
    return text_format.Parse((GOLDEN / f"{program}_{lanes}.p4info.txtpb").read_text(), p4info_pb2.P4Info())


@every_build
def test_names_that_the_control_plane_uses(program: str, lanes: int) -> None:
    info = golden(program, lanes)
    tables = {t.preamble.alias: [f.name for f in t.match_fields] for t in info.tables}
    assert CONTRACT.items() <= tables.items()
    assert {c.preamble.name for c in info.counters} == {"drops", "refused"}
    assert {c.preamble.alias for c in info.direct_counters} == {"job_packets"}
    registers = {r.preamble.alias for r in info.registers}
    assert registers >= PROGRAMS[program]
    assert sum(alias.startswith("lane") for alias in registers) == lanes


def ordered(info: p4info_pb2.P4Info) -> p4info_pb2.P4Info:
    """The same with every list sorted by id: the order of objects means nothing."""
    result = p4info_pb2.P4Info()
    result.CopyFrom(info)
    for objects in (result.tables, result.actions, result.counters, result.direct_counters, result.registers):
        objects.sort(key=lambda item: item.preamble.id)
    return result


@every_build
def test_golden_is_what_the_embedded_compiler_writes(program: str, lanes: int) -> None:
    compiled = compile_embedded(ROOT / f"p4src/{program}.p4", defines={"LANES": str(lanes)})
    assert ordered(compiled.p4info) == ordered(golden(program, lanes))


@pytest.mark.skipif(missing_compiler() is not None, reason=str(missing_compiler()))
@every_build
def test_golden_is_what_p4c_writes(tmp_path: Path, program: str, lanes: int) -> None:
    build = Build(lanes, {"luwu": 1024, "p4sgd": 65536}[program], MAX_WORKERS, 64, program)
    _, info_path = compile_program(build, tmp_path)
    assert text_format.Parse(info_path.read_text(), p4info_pb2.P4Info()) == golden(program, lanes)
