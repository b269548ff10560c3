"""What synthesis makes of the hardware does what the hardware does: tests of the RTL, over the mapped netlist."""

from __future__ import annotations

import ctypes
import random
import re
from pathlib import Path

import numpy as np
import pytest
from beats import Gaps, beats_of, messages_of
from formats_in_rtl import LANES_VALUES, counts, how, near, some_lanes, to_float, to_int
from netlists import netlist

from catchment.rtl.harness.library import load
from catchment.rtl.mapped import MissingModelError, mapped
from catchment.rtl.synth import Target
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

GAPS = Gaps(idle=60, stall=60)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16, DataType.BF16])
def test_converters_of_cells_convert(dtype: DataType, rng: random.Random) -> None:
    numbers = np.random.default_rng(rng.getrandbits(64))
    there, back = (netlist(Target("", top, {"STAGES": 3, "HALVES": 1})) for top in ("float_to_int", "int_to_float"))
    for exponent in (-128, 127, 0, *(rng.randrange(-128, 128) for _ in range(8))):
        workers = rng.randrange(1, 129)
        if dtype == DataType.FP32:
            words = near(numbers, exponent, 2000).view(LANES_VALUES[dtype])
        else:
            words = numbers.integers(0, 1 << 16, 4000, np.uint16).view(LANES_VALUES[dtype])
        beats, _ = to_int(beats_of(words.tobytes(), how(dtype, exponent, workers)), GAPS, 1, instead=there)
        expected = formats.quantize(words, dtype, exponent, workers)
        (lanes,) = messages_of(beats)
        assert np.array_equal(np.frombuffer(lanes, np.int32), expected.lanes)
        assert counts(beats) == (expected.saturated, expected.nonfinite)
        given = some_lanes(numbers, 999)
        beats, _ = to_float(beats_of(given.tobytes(), how(dtype, exponent, workers)), GAPS, 1, instead=back)
        with np.errstate(over="ignore"):
            assert messages_of(beats) == [formats.dequantize(given, dtype, exponent, workers).tobytes()]


@pytest.mark.slow
def test_a_column_of_dsp_slices_sums_as_the_rtl(rng: random.Random) -> None:
    """P4SGD's multipliers: numbers at random, and the ends of their ranges."""
    files = netlist(Target("", "product_column"))
    bench = Path(__file__).with_name("column_bench.cpp")
    clocks = 200_000
    numbers = np.random.default_rng(rng.getrandbits(64))
    given = numbers.integers(0, 256, (clocks, 64), np.uint8)
    ends = numbers.random(clocks) < 0.1
    given[ends] = numbers.choice(np.array([0, 0x7F, 0x80, 0xFF], np.uint8), (int(ends.sum()), 64))
    sums = []
    for library in (load("product_column", bench), load("product_column", bench, instead=files)):
        found = np.zeros(clocks, np.uint64)
        library.run_column(
            given.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(clocks), found.ctypes.data_as(ctypes.c_void_p)
        )
        sums.append(found[16:])  # until then registers hold what they began with
    assert np.array_equal(*sums)
    assert len(np.unique(sums[0])) > clocks // 2


def test_a_cell_without_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Yosys and of rtl/cells have one; a cell may have no parameters."""
    made = tmp_path / "made.v"
    cells = "".join(f"  {cell} #(\n  ) \\the.{cell}  (\n  );\n" for cell in ("LUT2", "FDRE", "RAMB18E2", "FIFO36E2"))
    made.write_text(f"module made(a);\n{cells}  CARRY4 _1_ (\n  );\n  DSP_ALU _2_ (\n  );\nendmodule\n")
    monkeypatch.setattr("catchment.rtl.mapped._netlist", lambda target: made)
    for models in (None, tmp_path):
        with pytest.raises(MissingModelError, match="made: no model of DSP_ALU, FIFO36E2 in"):
            mapped(Target("", "made"), models)
    for cell in ("FIFO36E2", "DSP_ALU"):
        (tmp_path / f"{cell}.v").write_text("assign a_in = (a === 1'bz) || a;  // and so on\n")
    netlist, vendors, other, *ours, yosys = mapped(Target("", "made"), tmp_path)
    assert [path.name.split("-")[0] for path in (vendors, other, yosys)] == ["DSP_ALU", "FIFO36E2", "cells"]
    assert "1'bz" not in vendors.read_text()
    assert netlist == made and {path.stem for path in ours} == {"RAMB18E2", "block_ram", "CARRY4"}
    assert re.findall(r"^module (\w+)", yosys.read_text(), re.MULTILINE) == ["LUT2", "FDRE"]
