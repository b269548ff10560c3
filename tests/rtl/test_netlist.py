"""What `make synth` says of a netlist: LUTs, the longest path, and loops."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from catchment.rtl import synth
from catchment.rtl.netlist import PATHS, Area, NetlistError, measure
from catchment.rtl.netlist import Path as Way
from catchment.rtl.synth import PATH_LIMIT_NS, TARGETS, Target, synthesize


def cell(kind: str, outputs: dict[str, list[int | str]], inputs: dict[str, list[int | str]]) -> dict[str, Any]:
    directions = dict.fromkeys(outputs, "output") | dict.fromkeys(inputs, "input")
    return {"type": kind, "port_directions": directions, "connections": outputs | inputs}


def lut(output: int, *inputs: int) -> dict[str, Any]:
    return cell(f"LUT{len(inputs)}", {"O": [output]}, {f"I{i}": [net] for i, net in enumerate(inputs)})


def flip_flop(q: int, d: int) -> dict[str, Any]:
    return cell("FDRE", {"Q": [q]}, {"D": [d], "C": [1], "CE": ["1"], "R": ["0"]})


def netlist(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"modules": {"top": {"cells": {str(i): value for i, value in enumerate(cells)}}}}


def test_the_longest_path_lies_between_registers() -> None:
    area = measure(netlist(flip_flop(10, 13), lut(11, 10, 2), lut(12, 11, 10), lut(13, 12), lut(14, 10)), "top")
    assert (area.lut, area.ff, area.slowest.levels, area.slowest.carries) == (4, 1, 3, 0)


def test_the_slowest_path_is_named_by_its_registers() -> None:
    found = netlist(flip_flop(10, 13), flip_flop(20, 11), lut(11, 10), lut(12, 11, 10), lut(13, 12))
    names = {"count_reg": [9, 10], "late_reg": [20], "$auto$7": [10]}
    found["modules"]["top"]["netnames"] = {
        name: {"bits": bits, "hide_name": int(name.startswith("$"))} for name, bits in names.items()
    }
    area = measure(found, "top")
    assert (area.slowest.begin, area.slowest.end) == ("count_reg[1]", "count_reg[1]")


def test_the_slowest_path_between_each_two_registers_is_told_and_the_slowest_first() -> None:
    chains, names = [], {}
    for i in range(PATHS + 2):  # to a register of two bits, by i + 1 and by i + 2 LUTs
        base = 1000 * (i + 1)
        names |= {f"from_{i}": [base], f"to_{i}": [base + 900, base + 901]}
        for bit in range(2):
            nets = [base, *range(base + 100 * bit + 1, base + 100 * bit + i + bit + 2)]
            chains += [lut(after, before) for before, after in pairwise(nets)]
            chains.append(flip_flop(base + 900 + bit, nets[-1]))
    found = netlist(*chains)
    found["modules"]["top"]["netnames"] = {name: {"bits": bits, "hide_name": 0} for name, bits in names.items()}
    most = PATHS + 2
    assert measure(found, "top").paths == tuple(
        Way(levels, 0, f"from_{levels - 2}", f"to_{levels - 2}[1]") for levels in range(most + 1, most + 1 - PATHS, -1)
    )


@pytest.mark.parametrize(("levels", "status"), [(10, 0), (11, 1)])
def test_a_module_fails_whose_slowest_path_is_above_the_limit(
    levels: int, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    way = Way(levels, 3, "sum_reg[3]", "judged_reg")
    monkeypatch.setattr("catchment.rtl.synth.synthesize", lambda target: Area(1, 2, 3.5, 4, 5, 6, (way,)))
    assert synth.main(["plane_reader"]) == status
    said = capsys.readouterr()
    assert f"{way.ns} ns: {levels} LUT + 3 carry, from sum_reg[3] to judged_reg" in said.out.replace("  ", " ")
    assert said.err.startswith("synth: P4SGD memory port: the path from sum_reg[3] to judged_reg") == bool(status)


def test_memory_is_counted_by_its_blocks() -> None:
    blocks = [cell(kind, {"DOUT": [10 + i]}, {}) for i, kind in enumerate(("RAMB18E2", "RAMB36E2", "URAM288"))]
    area = measure(netlist(*blocks), "top")
    assert (area.bram36, area.uram, area.memory_mb) == (1.5, 1, pytest.approx(0.342))


def test_a_carry_chain_counts_as_no_lut_and_bits_follow_only_those_below() -> None:
    carry = cell(
        "CARRY4", {"O": [20, 21, 22, 23], "CO": [24, 25, 26, 27]}, {"CI": ["0"], "CYINIT": ["0"],
        "S": [10, 11, 12, 30], "DI": ["0", "0", "0", "0"]},
    )  # fmt: skip
    # Bit 3's S comes from bit 0's sum: no loop.
    area = measure(netlist(lut(10, 2), carry, lut(30, 20), flip_flop(40, 23)), "top")
    assert (area.slowest.levels, area.slowest.carries) == (2, 2)


def test_the_slowest_path_may_have_fewer_luts() -> None:
    chain = [
        cell("CARRY8", {"CO": ["x"] * 7 + [101 + i]}, {"CI": [100 + i], "S": ["0"] * 8, "DI": ["0"] * 8})
        for i in range(20)
    ]
    area = measure(netlist(lut(100, 2), *chain, flip_flop(200, 120), lut(50, 3), lut(51, 50), flip_flop(52, 51)), "top")
    assert (area.slowest.levels, area.slowest.carries) == (1, 20)
    assert area.slowest.ns == pytest.approx(0.35 + 20 * 0.03)


def test_a_comparison_leaves_the_sum_of_its_carry_chain_unconnected() -> None:
    carry = cell("CARRY4", {"CO": [24, 25, 26, 27]}, {"CI": ["0"], "S": [10, 11, 12, 13], "DI": ["0"] * 4})
    assert measure(netlist(lut(13, 2), carry, lut(30, 27)), "top").slowest.levels == 2


def test_a_ram_of_luts_is_written_by_a_clock_and_read_without() -> None:
    ram = cell("RAM32X1D", {"DPO": [10], "SPO": [11]}, {"D": [12], "DPRA0": [2], "A0": [3], "WE": [4], "WCLK": [1]})
    area = measure(netlist(ram, lut(12, 10, 5)), "top")  # what is read is changed and written: no loop
    assert (area.lut, area.slowest.levels) == (3, 2)


def test_an_output_of_a_wide_ram_follows_its_own_address_alone() -> None:
    ram = cell(
        "RAM64M8", {"DOA": [10], "DOB": [11]}, {"DIA": [12], "ADDRA": [2], "ADDRB": [21], "ADDRH": [20], "WE": [4]}
    )
    # Three LUTs before the address where it is written, one before that where DOB is read.
    before = [lut(22, 2), lut(23, 22), lut(20, 23), lut(21, 3)]
    assert measure(netlist(ram, *before), "top").slowest.levels == 3
    assert measure(netlist(ram, *before, lut(30, 10), flip_flop(31, 30)), "top").slowest.levels == 3
    assert measure(netlist(ram, *before, lut(30, 11), lut(32, 30), flip_flop(31, 32)), "top").slowest.levels == 4


def test_a_loop_is_told() -> None:
    with pytest.raises(NetlistError, match="loop"):
        measure(netlist(lut(10, 11, 2), lut(11, 10)), "top")


def test_a_path_of_forty_thousand_cells_that_all_meet_again_is_measured() -> None:
    """Twice as many paths with each step: only an algorithm that takes each net once ends."""
    steps = 20_000
    cells = [
        made for i in range(steps) for made in (lut(2 * i + 12, 2 * i + 10, 2 * i + 11), lut(2 * i + 13, 2 * i + 10))
    ]
    assert measure(netlist(*cells), "top").slowest.levels == steps


def test_a_part_counts_as_often_as_it_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is synthesized once for each set of parameters; what it is without any is known from an instance."""
    asked = []

    def netlists(target: Target, result: Path) -> tuple[dict[str, Any], dict[str, Any]]:
        asked.append((target.top, target.parameters))
        whole = netlist(lut(10, 2), *(part(width) for width in (8, 8, 4)))
        of_part = netlist(*(flip_flop(100 + i, 2) for i in range(target.parameters.get("WIDTH", 8))))
        for made in (whole, of_part):
            made["modules"]["top"]["attributes"] = {"top": "1"}
        return (whole if target.parts else of_part), {"row_ram": {"WIDTH": f"{8:032b}"}}

    def part(width: int) -> dict[str, Any]:
        return cell("row_ram", {}, {}) | {"parameters": {"WIDTH": f"{width:032b}"}}

    monkeypatch.setattr("catchment.rtl.synth._result_path", lambda target: tmp_path / f"{target}.json")
    monkeypatch.setattr("catchment.rtl.synth._netlists", netlists)
    area = synthesize(Target("", "model_window", parts=("row_ram",)))
    assert (area.lut, area.ff) == (1, 2 * 8 + 4)
    assert asked == [("model_window", {}), ("row_ram", {}), ("row_ram", {"WIDTH": 4})]


@pytest.mark.slow
def test_parts_of_three_kinds_add_up_to_the_whole() -> None:
    whole = synthesize(Target("", "product_column"))
    parts = synthesize(Target("", "product_column", parts=("multiply_add",)))
    assert (parts.dsp, parts.ff, parts.lut) == (whole.dsp, whole.ff, whole.lut) and whole.dsp == 8


@pytest.mark.slow
@pytest.mark.parametrize("target", [t for t in TARGETS if t.lut_aim is not None], ids=lambda target: target.name)
def test_the_aims_of_area_hold(target: Target) -> None:
    area = synthesize(target)
    assert area.lut <= (target.lut_aim or 0)
    assert target.ff_aim is None or area.ff <= target.ff_aim
    assert area.slowest.ns <= PATH_LIMIT_NS
