"""A memory cell alone, of our models or the vendor's: what it puts out for pins at random."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from catchment.rtl.harness.library import load

WORDS = 8
"""32-bit words of a clock's pins, and of its outputs."""
_IDLE = 32
_BENCH = Path(__file__).with_name("cell_bench.cpp")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell, its pins in the order in which a clock's bits name them, and those that have the clock."""

    name: str
    clocks: tuple[str, ...]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    constants: Mapping[str, int]

    def module(self, parameters: Mapping[str, int | str]) -> str:
        """A module with the cell in it, and the vendor's global signals."""
        texts = {name: f'"{value}"' if isinstance(value, str) else value for name, value in parameters.items()}
        given = ", ".join(f".{name}({text})" for name, text in texts.items())
        pins = [f".{pin}(clk)" for pin in self.clocks] + [f".{pin}({value})" for pin, value in self.constants.items()]
        for signal, group in (("pins", self.inputs), ("outputs", self.outputs)):
            at = 0
            for pin, width in group.items():
                pins.append(f".{pin}({signal}[{at}+:{width}])")
                at += width
        return (
            f"module cell_alone (input clk, input [{32 * WORDS - 1}:0] pins, output [{32 * WORDS - 1}:0] outputs);\n"
            f"  {self.name} #({given}) there ({', '.join(pins)});\n  glbl glbl ();\nendmodule\n"
        )


def block_ram(name: str, data: int, address: int) -> Cell:
    """RAMB18E2 or RAMB36E2; `data` bits of a port."""
    ports = {
        "ADDRARDADDR": address, "ADDRBWRADDR": address, "ENARDEN": 1, "ENBWREN": 1, "RSTRAMARSTRAM": 1, "RSTRAMB": 1,
        "WEA": data // 8, "WEBWE": data // 4, "DINADIN": data, "DINBDIN": data,
        "DINPADINP": data // 8, "DINPBDINP": data // 8,
    }  # fmt: skip
    outputs = {"DOUTADOUT": data, "DOUTBDOUT": data, "DOUTPADOUTP": data // 8, "DOUTPBDOUTP": data // 8}
    low = ("SLEEP", "RSTREGARSTREG", "RSTREGB", "REGCEAREGCE", "REGCEB")
    constants = {"ADDRENA": 1, "ADDRENB": 1, **dict.fromkeys(low, 0)}
    return Cell(name, ("CLKARDCLK", "CLKBWRCLK"), ports, outputs, constants)


RAMB18E2, RAMB36E2 = block_ram("RAMB18E2", 16, 14), block_ram("RAMB36E2", 32, 15)
URAM288 = Cell(
    "URAM288",
    ("CLK",),
    {
        f"{pin}_{port}": width
        for pin, width in {"ADDR": 23, "EN": 1, "RDB_WR": 1, "RST": 1, "BWE": 9, "DIN": 72}.items()
        for port in "AB"
    },
    {"DOUT_A": 72, "DOUT_B": 72},
    {"SLEEP": 0, **{f"INJECT_{kind}BITERR_{port}": 0 for kind in "DS" for port in "AB"}},
)
# Its registers and modes are multiply_add's.
DSP48E2 = Cell(
    "DSP48E2",
    ("CLK",),
    {
        "A": 30, "B": 18, "C": 48, "PCIN": 48, "OPMODE": 9, "CEA2": 1, "CEB2": 1, "CEM": 1, "CEP": 1,
        "RSTA": 1, "RSTB": 1, "RSTM": 1, "RSTP": 1, "ALUMODE": 4, "INMODE": 5, "CARRYINSEL": 3, "CARRYIN": 1,
    },
    {"P": 48, "PCOUT": 48},
    dict.fromkeys(
        (
            "ACIN", "BCIN", "D", "CARRYCASCIN", "MULTSIGNIN", "CEA1", "CEB1", "CEC", "CED", "CEAD", "CEALUMODE",
            "CECARRYIN", "CECTRL", "CEINMODE", "RSTC", "RSTD", "RSTCTRL", "RSTALLCARRYIN", "RSTALUMODE", "RSTINMODE",
        ),
        0,
    ),
)  # fmt: skip
DSP_REGISTERS = dict.fromkeys(
    ("CREG", "DREG", "ADREG", "INMODEREG", "OPMODEREG", "ALUMODEREG", "CARRYINREG", "CARRYINSELREG"), 0
)
CARRY4 = Cell("CARRY4", (), {"CI": 1, "CYINIT": 1, "DI": 4, "S": 4}, {"CO": 4, "O": 4}, {})


@dataclass(frozen=True, slots=True)
class BlockRam:
    """A block RAM's widths and modes."""

    cell: Cell
    read_a: int
    read_b: int
    write_a: int
    write_b: int
    mode_a: str
    mode_b: str

    @property
    def parameters(self) -> dict[str, int | str]:
        """The cell's parameters, with values for outputs at first and when reset."""
        return {
            "DOA_REG": 0, "DOB_REG": 0, "READ_WIDTH_A": self.read_a, "READ_WIDTH_B": self.read_b,
            "WRITE_WIDTH_A": self.write_a, "WRITE_WIDTH_B": self.write_b,
            "WRITE_MODE_A": self.mode_a, "WRITE_MODE_B": self.mode_b,
            "INIT_A": 0x1_5A5A, "INIT_B": 0x2_C3C3, "SRVAL_A": 0x2_9669, "SRVAL_B": 0x1_3CC3,
        }  # fmt: skip

    @property
    def port(self) -> int:
        """The widest word of a port."""
        return self.cell.inputs["DINADIN"] * 9 // 8

    def clocks(self, rng: random.Random, count: int) -> list[dict[str, int]]:
        """Each address written once, then pins at random, but for what the hardware promises nothing of."""
        bits, row = self.cell.inputs, 2 * self.cell.inputs["DINADIN"]
        width = data_bits(max(self.write_a, self.write_b))
        by_a = ("ENARDEN", "WEA", "ADDRARDADDR")
        enable, strobes, address = by_a if self.write_a > self.write_b else ("ENBWREN", "WEBWE", "ADDRBWRADDR")
        found = []
        for at in range(0, 1 << bits[address], width):
            pins = {name: rng.getrandbits(size) for name, size in bits.items()}
            pins |= {"ENARDEN": 0, "ENBWREN": 0, "RSTRAMARSTRAM": 0, "RSTRAMB": 0}
            pins |= {enable: 1, strobes: (1 << bits[strobes]) - 1, address: at}
            found.append(pins)
        for _ in range(count):
            pins = {name: rng.getrandbits(size) for name, size in bits.items()}
            pins |= {reset: int(rng.random() < 0.1) for reset in ("RSTRAMARSTRAM", "RSTRAMB")}
            near = rng.randrange(1 << bits["ADDRARDADDR"])
            for address in ("ADDRARDADDR", "ADDRBWRADDR"):  # often one row, and the same ones again
                if rng.random() < 0.7:
                    pins[address] = near // row % 4 * row + pins[address] % row
            pins["WEA"] = self._strobes(rng, pins["WEA"], self.write_a, bits["WEA"])
            pins["WEBWE"] = self._strobes(rng, pins["WEBWE"], self.write_b, bits["WEBWE"])
            if pins["ADDRARDADDR"] // row == pins["ADDRBWRADDR"] // row and self._unclear(pins):
                pins[rng.choice(["ENARDEN", "ENBWREN"])] = 0
            found.append(pins)
        return found

    @staticmethod
    def _strobes(rng: random.Random, drawn: int, width: int, strobes: int) -> int:
        """Those of a word's bytes, the same again where a port has more."""
        if width == 0 or rng.random() < 0.4:
            return 0
        bytes_ = max(1, width // 9)
        return sum((drawn >> i % bytes_ & 1) << i for i in range(strobes))

    def _unclear(self, pins: Mapping[str, int]) -> bool:
        writes_a, writes_b = bool(pins["WEA"]), bool(pins["WEBWE"])
        return (writes_a and (writes_b or self.mode_a != "READ_FIRST")) or (writes_b and self.mode_b != "READ_FIRST")

    def seen(self, outputs: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """The bits that somebody has written and the widths use, a row a clock."""
        every = np.unpackbits(outputs.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)
        half = self.port // 9 * 8
        chosen: list[int] = []
        written = max(self.write_a, self.write_b) // 9
        for width, at in ((self.read_a, 0), (self.read_b, 1)):
            for bits, begin in ((data_bits(width), 0), (width // 9 if written else 0, 2 * half)):
                size = half if begin == 0 else half // 8
                chosen += [begin + at * size + i for i in range(bits)]
        return every[:, chosen]


def data_bits(width: int) -> int:
    """The bits of a word without its parity."""
    return width if width < 9 else width // 9 * 8


def uram_clocks(rng: random.Random, count: int) -> list[dict[str, int]]:
    """Pins at random; both ports often at one word."""
    found = []
    for _ in range(count):
        pins = {name: rng.getrandbits(size) for name, size in URAM288.inputs.items()}
        near = rng.randrange(1 << 12)
        for port in "AB":
            pins[f"ADDR_{port}"] = near % 8 if rng.random() < 0.7 else rng.randrange(1 << 12)
            pins[f"RST_{port}"] = int(rng.random() < 0.1)
        found.append(pins)
    return found


def dsp_clocks(rng: random.Random, count: int) -> list[dict[str, int]]:
    """Pins at random, numbers often at an end; each register is reset now and then, and often stands still."""
    found = []
    for _ in range(count):
        pins = dict.fromkeys(DSP48E2.inputs, 0)
        for name in ("A", "B", "C", "PCIN"):
            size = DSP48E2.inputs[name]
            ends = (1 << size - 1, (1 << size - 1) - 1, (1 << size) - 1, 0)
            pins[name] = rng.choice(ends) if rng.random() < 0.2 else rng.getrandbits(size)
        pins |= {name: int(rng.random() < 0.8) for name in pins if name.startswith("CE")}
        pins |= {name: int(rng.random() < 0.05) for name in pins if name.startswith("RST")}
        pins["OPMODE"] = rng.choice((0, 3)) << 7 | rng.choice((0, 1)) << 4 | rng.choice((0, 5, 5, 5))
        found.append(pins)
    return found


def run(
    cell: Cell, parameters: Mapping[str, int | str], clocks: Sequence[Mapping[str, int]], models: Sequence[Path],
    folder: Path, *, timing: bool = False,
) -> NDArray[np.uint32]:  # fmt: skip
    """The outputs after each clock, WORDS 32-bit words each; a model has some clocks without work before the first one.

    Args:
        models: files with the cell's model and the vendor's global signals.
        folder: takes the module around it.
        timing: the model has delays.
    """
    around = folder / "cell_alone.sv"
    around.write_text(cell.module(parameters), "utf-8")
    library = load("cell_alone", _BENCH, instead=(around, *models), timing=timing)
    given = np.zeros((_IDLE + len(clocks), WORDS), np.uint32)
    for row, pins in zip(given[_IDLE:], clocks, strict=True):
        word, at = 0, 0
        for name, width in cell.inputs.items():
            word |= pins[name] << at
            at += width
        row[:] = np.frombuffer(word.to_bytes(4 * WORDS, "little"), np.uint32)
    found = np.zeros_like(given)
    library.run_cell(
        given.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(given)), found.ctypes.data_as(ctypes.c_void_p)
    )
    return found[_IDLE:]
