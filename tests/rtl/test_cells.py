"""Our models of cells: against plain ones in Python, and against the vendor's where they are."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from cells_alone import (
    CARRY4,
    DSP48E2,
    DSP_REGISTERS,
    RAMB18E2,
    RAMB36E2,
    URAM288,
    BlockRam,
    Cell,
    dsp_clocks,
    run,
    uram_clocks,
)
from netlists import VENDORS
from numpy.typing import NDArray
from obvious_cells import block_ram_outputs, carry_outputs, dsp_outputs, uram_outputs

from catchment.rtl.harness.library import RtlFailedError
from catchment.rtl.mapped import GLOBALS, MODELS, two_valued
from catchment.rtl.verilate import RtlError

OURS = sorted(MODELS.glob("*.sv"))
MODES = ("NO_CHANGE", "READ_FIRST", "WRITE_FIRST")
PARITY = ("PARITY_INTERLEAVED", "PARITY_INDEPENDENT")
CELLS = {cell.name: cell for cell in (RAMB18E2, RAMB36E2)}

needs_vendors = pytest.mark.skipif(VENDORS is None, reason="CATCHMENT_CELL_MODELS names no folder")


def some_rams(rng: random.Random, cell: Cell) -> list[BlockRam]:
    """Each mode on each port with widths at random, words with parity, and rows written and read whole."""
    port = cell.inputs["DINADIN"] * 9 // 8
    widths = [width for width in (1, 2, 4, 9, 18, 36) if width <= port]
    rams = [
        BlockRam(cell, 2 * port, 0, 0, 2 * port, "READ_FIRST", "READ_FIRST"),
        BlockRam(cell, 18, 9, 9, 18, "READ_FIRST", "NO_CHANGE"),
    ]
    for i, mode_a in enumerate(MODES):
        mode_b = MODES[i - 1]
        read_a, read_b, write_a, write_b = rng.choices(widths, k=4)
        if mode_a == "WRITE_FIRST":
            write_a = read_a
        if mode_b == "WRITE_FIRST":
            write_b = read_b
        rams.append(BlockRam(cell, read_a, read_b, write_a, write_b, mode_a, mode_b))
    return rams


def by_ours(
    cell: Cell, parameters: Mapping[str, int | str], clocks: list[dict[str, int]], folder: Path
) -> NDArray[np.uint32]:
    (folder / "glbl.v").write_text(GLOBALS)
    return run(cell, parameters, clocks, [*OURS, folder / "glbl.v"], folder)


def by_vendors(
    cell: Cell, parameters: Mapping[str, int | str], clocks: list[dict[str, int]], folder: Path
) -> NDArray[np.uint32]:
    """Verilator loses what a loop assigns with a delay, so outputs of the vendor's model change without one."""
    model = two_valued(Path(VENDORS or "") / f"{cell.name}.v")
    prompt = folder / "prompt.v"
    prompt.write_text(re.sub(r"<= #100 ", "<= ", model.read_text("utf-8")), "utf-8")
    (folder / "glbl.v").write_text(GLOBALS)
    checks = {"SIM_COLLISION_CHECK": "NONE"} if cell.name in CELLS else {}
    return run(cell, {**parameters, **checks}, clocks, [prompt, folder / "glbl.v"], folder, timing=True)


def sums_of(outputs: NDArray[np.uint32]) -> list[int]:
    """P of a DSP slice; PCOUT is the same."""
    wide = [int.from_bytes(row.tobytes(), "little") for row in outputs]
    assert all(word >> 48 & (1 << 48) - 1 == word & (1 << 48) - 1 for word in wide)
    return [word & (1 << 48) - 1 for word in wide]


def words_of(outputs: NDArray[np.uint32]) -> list[tuple[int, int]]:
    """DOUT_A and DOUT_B of an UltraRAM."""
    wide = [int.from_bytes(row.tobytes(), "little") for row in outputs]
    return [(word & (1 << 72) - 1, word >> 72 & (1 << 72) - 1) for word in wide]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CELLS)
def test_a_block_ram_of_any_widths_and_modes(name: str, rng: random.Random, tmp_path: Path) -> None:
    for ram in some_rams(rng, CELLS[name]):
        clocks = ram.clocks(rng, 3000)
        found = ram.seen(by_ours(ram.cell, ram.parameters, clocks, tmp_path))
        first = len(clocks) - 2900  # both ports have read by then
        wrong = np.argwhere(found[first:] != block_ram_outputs(ram, clocks)[first:])
        assert not len(wrong), f"{ram}: {len(wrong)} bits, first (clock, bit) {wrong[0]}"


@pytest.mark.sampled(4)
def test_an_ultra_ram_with_parity_of_both_kinds(rng: random.Random, tmp_path: Path) -> None:
    for mode in PARITY:
        clocks = uram_clocks(rng, 4000)
        found = words_of(by_ours(URAM288, {"BWE_MODE_A": mode, "BWE_MODE_B": mode}, clocks, tmp_path))
        assert found == uram_outputs(mode == PARITY[0], clocks)


@pytest.mark.sampled(4)
def test_a_dsp_slice_multiplies_and_adds(rng: random.Random, tmp_path: Path) -> None:
    clocks = dsp_clocks(rng, 4000)
    clocks[0] |= {"RSTA": 1, "RSTB": 1, "RSTM": 1, "RSTP": 1}
    assert sums_of(by_ours(DSP48E2, DSP_REGISTERS, clocks, tmp_path)) == dsp_outputs(clocks)


@pytest.mark.sampled(4)
def test_four_steps_of_a_carry_chain_for_all_that_pins_can_be(tmp_path: Path) -> None:
    values = itertools.product(*(range(1 << width) for width in CARRY4.inputs.values()))
    clocks = [dict(zip(CARRY4.inputs, pins, strict=True)) for pins in values]
    found = by_ours(CARRY4, {}, clocks, tmp_path)[:, 0] & 0xFF
    assert found.tolist() == [carry_outputs(pins) for pins in clocks]


@pytest.mark.sampled(4)
def test_a_write_that_is_not_read_around_leaves_the_other_port_without_a_promise(
    rng: random.Random, tmp_path: Path
) -> None:
    """Port A reads the word that B writes in the same clock: the old one only if B reads first."""
    found = {}
    for mode in MODES:
        ram = BlockRam(RAMB36E2, 36, 36, 36, 36, mode, mode)
        clocks = ram.clocks(rng, 0)
        fill = len(clocks)
        for at in range(64):
            pins = dict.fromkeys(RAMB36E2.inputs, 0)
            clocks.append(pins | {"ENARDEN": 1, "ENBWREN": 1, "WEBWE": 0xFF, "DINBDIN": rng.getrandbits(32)})
            clocks[-1] |= {"ADDRARDADDR": 32 * at, "ADDRBWRADDR": 32 * at}
        seen = ram.seen(by_ours(ram.cell, ram.parameters, clocks, tmp_path))[fill:, :32]
        found[mode] = (seen == block_ram_outputs(ram, clocks)[fill:, :32]).mean()
    assert found["READ_FIRST"] == 1
    assert max(found["NO_CHANGE"], found["WRITE_FIRST"]) < 0.7  # the bits of two numbers at random


@pytest.mark.parametrize(
    ("cell", "changed", "said"),
    [
        (RAMB36E2, {"DOA_REG": 1}, "output registers are not modelled"),
        (RAMB36E2, {"READ_WIDTH_A": 12}, "no port has such a width"),
        (RAMB18E2, {"READ_WIDTH_A": 36, "READ_WIDTH_B": 18}, "port A only reads"),
        (RAMB18E2, {"WRITE_MODE_B": "WHATEVER"}, "no such WRITE_MODE"),
        (RAMB36E2, {"WRITE_MODE_B": "WRITE_FIRST", "WRITE_WIDTH_B": 9}, "read in the same width only"),
        (RAMB36E2, {"CASCADE_ORDER_A": "FIRST"}, "CASCADE_ORDER_A"),
        (URAM288, {"OREG_A": "TRUE"}, "registers, sleep and the other edge are not modelled"),
        (DSP48E2, {**DSP_REGISTERS, "AREG": 2}, "other registers than those"),
        (DSP48E2, {**DSP_REGISTERS, "USE_SIMD": "TWO24"}, "nothing but a product"),
    ],
    ids=lambda value: value.name if isinstance(value, Cell) else str(value),
)
def test_what_a_model_lacks_is_refused(cell: Cell, changed: Mapping[str, int | str], said: str, tmp_path: Path) -> None:
    plain = BlockRam(cell, 18, 18, 18, 18, "READ_FIRST", "READ_FIRST").parameters if cell.name in CELLS else {}
    with pytest.raises(RtlError, match=said):
        by_ours(cell, {**plain, **changed}, [], tmp_path)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("cell", "parameters", "pins", "said"),
    [
        (URAM288, {"RST_MODE_A": "ASYNC"}, {"RST_A": 1}, "asynchronous resets are not modelled"),
        (URAM288, {}, {"EN_A": 1, "ADDR_A": 1 << 12}, "sleep, errors and cascades are not modelled"),
        (DSP48E2, DSP_REGISTERS, {"OPMODE": 0b000100101}, "other sums than that"),
        (DSP48E2, DSP_REGISTERS, {"ALUMODE": 3}, "other sums than that"),
    ],
    ids=["reset", "cascade", "the sum before", "subtraction"],
)
def test_a_pin_that_a_model_lacks_is_refused_when_it_matters(
    cell: Cell, parameters: Mapping[str, int | str], pins: Mapping[str, int], said: str, tmp_path: Path
) -> None:
    idle = dict.fromkeys(cell.inputs, 0)
    by_ours(cell, parameters, [idle], tmp_path)
    with pytest.raises(RtlFailedError, match=said):
        by_ours(cell, parameters, [{**idle, **pins}], tmp_path)


@needs_vendors
@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_a_block_ram_does_what_the_vendors_does(name: str, rng: random.Random, tmp_path: Path) -> None:
    for ram in some_rams(rng, CELLS[name]):
        clocks = ram.clocks(rng, 20_000)
        ours, theirs = (
            ram.seen(by(ram.cell, ram.parameters, clocks, tmp_path))[-19_900:] for by in (by_ours, by_vendors)
        )
        wrong = np.argwhere(ours != theirs)
        assert not len(wrong), f"{ram}: {len(wrong)} bits, first (clock, bit) {wrong[0]}"
        assert 0.3 < ours.mean() < 0.7


@needs_vendors
@pytest.mark.slow
@pytest.mark.parametrize("mode", PARITY)
def test_an_ultra_ram_does_what_the_vendors_does(mode: str, rng: random.Random, tmp_path: Path) -> None:
    clocks = uram_clocks(rng, 20_000)
    modes = {"BWE_MODE_A": mode, "BWE_MODE_B": mode}
    ours, theirs = (words_of(by(URAM288, modes, clocks, tmp_path)) for by in (by_ours, by_vendors))
    assert ours == theirs


@needs_vendors
@pytest.mark.slow
def test_a_dsp_slice_does_what_the_vendors_does(rng: random.Random, tmp_path: Path) -> None:
    clocks = dsp_clocks(rng, 20_000)
    ours, theirs = (sums_of(by(DSP48E2, DSP_REGISTERS, clocks, tmp_path))[100:] for by in (by_ours, by_vendors))
    assert ours == theirs and len(set(ours)) > len(ours) // 2
