"""Our own STF tests: a program per feature of v1model, here and on BMv2."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import stf_fuzz
from bmv2_stf import Bmv2Stf
from bmv2_switch import Bmv2Switch, compile_program, missing
from typer.testing import CliRunner

from catchment.cli import app
from catchment.controlplane.errors import ControlPlaneError
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.interpreter import InterpretedSwitch
from catchment.softswitch.stf import find_tests, parse, run_test
from catchment.softswitch.stf.language import Expect
from catchment.softswitch.stf.runner import judge

PROGRAMS = Path(__file__).parent / "programs"
TESTS = find_tests(PROGRAMS)
NOT_ON_BMV2 = {"loops"}
"""Its header says why."""

needs_bmv2 = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def sample(rng: random.Random, count: int) -> list[tuple[Path, Path]]:
    return rng.sample(TESTS, count)


def names(tests: list[tuple[Path, Path]]) -> list[str]:
    return [program.stem for program, _ in tests]


def passes(program: Path, test: Path) -> None:
    outcome = run_test(program, test)
    assert outcome.result == "passed", "\n".join(outcome.reasons)


def test_every_program_has_a_test() -> None:
    assert len(TESTS) >= 13
    assert names(TESTS) == sorted(p.stem for p in PROGRAMS.glob("*.p4"))


@pytest.mark.sampled(4)
def test_some_programs(rng: random.Random) -> None:
    for program, test in sample(rng, 4):
        passes(program, test)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "test"), TESTS, ids=names(TESTS))
def test_program(program: Path, test: Path) -> None:
    passes(program, test)


def test_a_wrong_or_missing_expectation_fails(rng: random.Random, tmp_path: Path) -> None:
    program, test = PROGRAMS / "types.p4", tmp_path / "types.stf"
    lines = (PROGRAMS / "types.stf").read_text().splitlines()
    expects = [i for i, line in enumerate(lines) if line.startswith("expect")]
    for at in rng.sample(expects, 2):
        data = lines[at].rstrip("$")
        other = data[:-1] + ("0" if data[-1] != "0" else "1")
        for changed in (other, data[:-2] + "$", data.replace("expect 1", "expect 2"), ""):
            test.write_text("\n".join([*lines[:at], changed, *lines[at + 1 :]]))
            assert run_test(program, test).result == "failed", changed


def test_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    (folder / "include").mkdir(parents=True)
    (folder / "include" / "pipeline.p4").write_text((PROGRAMS / "include" / "pipeline.p4").read_text())
    (folder / "types.p4").write_text((PROGRAMS / "types.p4").read_text())
    (folder / "types.stf").write_text((PROGRAMS / "types.stf").read_text())
    runner = CliRunner()
    one = [str(folder / "types.p4"), str(folder / "types.stf")]
    assert runner.invoke(app, ["p4", "stf", *one]).exit_code == 0
    (folder / "types-broken.stf").write_text("packet 0 01\nexpct 1 02\n")
    shown = runner.invoke(app, ["p4", "stf", str(folder)])
    assert shown.exit_code == 1
    assert "passed" in shown.output and "types-broken.stf:2: unknown statement expct" in shown.output
    as_json = runner.invoke(app, ["p4", "stf", str(folder), "--json"])
    results = {Path(o["test"]).name: o["result"] for o in json.loads(as_json.output)}
    assert results == {"types.stf": "passed", "types-broken.stf": "error"}
    nothing = runner.invoke(app, ["p4", "stf", str(tmp_path)])
    assert isinstance(nothing.exception, ControlPlaneError) and "no test (.stf)" in str(nothing.exception)


def bmv2_agrees(program: Path, test: Path, folder: Path) -> None:
    json_path = compile_program(program, folder)
    statements = parse(test.read_text(), str(test))
    switch = Bmv2Switch(json_path, folder)
    try:
        received = Bmv2Stf(switch, json_path).run(statements, one_by_one=True)
    finally:
        switch.close()
    expected = [(s.line, s.body) for s in statements if isinstance(s.body, Expect)]
    assert not judge(str(test), expected, received)


@needs_bmv2
def test_bmv2_agrees_on_some(rng: random.Random, tmp_path: Path) -> None:
    for program, test in rng.sample([t for t in TESTS if t[0].stem not in NOT_ON_BMV2], 2):
        bmv2_agrees(program, test, tmp_path)


@needs_bmv2
@pytest.mark.slow
@pytest.mark.parametrize(("program", "test"), TESTS, ids=names(TESTS))
def test_bmv2_agrees(program: Path, test: Path, tmp_path: Path) -> None:
    if program.stem in NOT_ON_BMV2:
        pytest.skip("not taken by p4c's back end for BMv2")
    bmv2_agrees(program, test, tmp_path)


def test_random_tests_add_no_entry_where_bmv2_takes_none(seed: int) -> None:
    """A table with mutable entries of its own takes more by P4_16's rules; BMv2's does not."""
    program = PROGRAMS / "tables.p4"
    p4info = make_p4info(check_file(program).program)
    texts = [stf_fuzz.make(random.Random(seed + i), program, p4info) for i in range(20)]
    assert any("add Work.lpm_t" in text for text in texts)
    assert not any("add Work.priority_t" in text for text in texts)
    switch = InterpretedSwitch(check_file(program).program)
    switch.insert("priority_t", {"hdr.k.addr": (1, 1)}, "drop", priority=1)
    assert len(switch.entries("priority_t")) == 3


def test_no_result_depends_on_an_invalid_header() -> None:
    """The one packet on which the embedded switch and BMv2 differed, each within its rights."""
    packet = bytes.fromhex("0500530000000002030201002eff970300029d01010003d7481373e36880")
    switch = InterpretedSwitch(check_file(PROGRAMS / "initialisers.p4").program)
    lines: list[str] = []
    [(_, frame)] = switch.inject(6, packet, lines.append)
    assert any("parser rejects: PacketTooShort" in line for line in lines)
    assert frame[:2] == b"\x05\x05"
    assert any("there = false" in line for line in lines), "it asks whether both headers are there"


@needs_bmv2
@pytest.mark.slow
@pytest.mark.parametrize("name", ["arithmetic", "hashing", "initialisers", "parsing", "switches", "tables"])
def test_random_packets_on_both(name: str, seed: int) -> None:
    program = PROGRAMS / f"{name}.p4"
    found = stf_fuzz.differences(program, program.with_suffix(".stf"), seed, rounds=2)
    assert not [text for text in found if "no packet alone does" not in text]
