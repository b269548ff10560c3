"""Random programs: the compiled switch does what the interpreter does, packet for packet and register for register."""

from __future__ import annotations

from pathlib import Path

import pytest
from comparison import compare_compiled
from programs import SLOW_FROM, case_of
from shrink import shrink


def _compare(number: int, seed: int, folder: Path) -> None:
    case = case_of(seed, number)
    source = folder / f"random{number}.p4"
    source.write_text(case.text)
    difference = compare_compiled(source, case.packets, folder / "cache", delivery=case.options.delivery)
    assert difference is None, f"shrink.py --seed {seed} --number {number}\n{difference}\n{case.text}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", range(3))
def test_random_programs(seed: int, number: int, tmp_path: Path) -> None:
    _compare(number, seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SLOW_FROM, 2 * SLOW_FROM))
def test_many_random_programs(seed: int, number: int, tmp_path: Path) -> None:
    _compare(number, seed, tmp_path)


def test_programs_with_deliveries_use_them_all(seed: int) -> None:
    texts = [case_of(seed, number).text for number in range(SLOW_FROM, SLOW_FROM + 40)]
    for used in ("clone(CloneType.I2E", "clone(CloneType.E2E", "digest<note_t>", "sm.mcast_grp =", "execute_meter"):
        assert any(used in text for text in texts), used


def test_a_shrunk_program_has_nothing_but_the_difference(seed: int) -> None:
    case = case_of(seed, 1)
    wrong = "    hdr.first.kind = hdr.first.kind / 3;"
    lines = case.text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip() == "apply {") + 1
    text = "\n".join([*lines[:at], wrong, *lines[at:]])
    chosen = case.packets[60]

    def differs(program: str, packets: list[tuple[int, bytes]]) -> bool:
        # What stands around the line must stay for it to be compiled at all.
        return f"apply {{\n{wrong}\n" in program and program.count("{") == program.count("}") and chosen in packets

    program, packets = shrink(text, case.packets, differs)
    assert packets == [chosen] and differs(program, packets)
    kept = program.splitlines()
    for at, line in enumerate(kept):
        without = "\n".join([*kept[:at], *kept[at + 1 :]]) + "\n"
        assert "{" in line or "}" in line or not differs(without, packets), f"{line} could go"


def test_what_does_not_differ_is_not_shrunk() -> None:
    with pytest.raises(ValueError, match="the switches agree"):
        shrink("a\n", [(1, b"x")], lambda text, packets: False)
