"""Cells of UltraScale+ as bits, memories as lists of them: slow, and plain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from cells_alone import BlockRam, data_bits
from numpy.typing import NDArray

_ENABLE = {"a": "ENARDEN", "b": "ENBWREN"}
_ADDRESS = {"a": "ADDRARDADDR", "b": "ADDRBWRADDR"}
_STROBES = {"a": "WEA", "b": "WEBWE"}
_RESET = {"a": "RSTRAMARSTRAM", "b": "RSTRAMB"}


class _Port:
    """One port: its widths, its mode, and the bits that it puts out, parity last."""

    def __init__(self, name: str, ram: BlockRam) -> None:
        self.name = name
        self.read, self.write = (ram.read_a, ram.write_a) if name == "a" else (ram.read_b, ram.write_b)
        self.mode = ram.mode_a if name == "a" else ram.mode_b
        self.reset = _reset_value(name, ram)
        self.out = [False] * self.read

    def enabled(self, pins: Mapping[str, int]) -> bool:
        return bool(pins[_ENABLE[self.name]])

    def writes(self, pins: Mapping[str, int]) -> bool:
        return self.write > 0 and self.enabled(pins) and pins[_STROBES[self.name]] > 0

    def bits(self, pins: Mapping[str, int], width: int) -> tuple[int, int]:
        """The first data bit of the word at the address, and the first parity bit."""
        at = pins[_ADDRESS[self.name]] // data_bits(width) * data_bits(width)
        return at, at // 8


def _reset_value(name: str, ram: BlockRam) -> list[bool]:
    """SRVAL: the parity above the data of that width; of the upper half of a row that A reads, port B's."""
    low, high = (int(ram.parameters[f"SRVAL_{port}"]) for port in ("AB" if name == "a" else "BB"))
    width = ram.read_a if name == "a" else ram.read_b
    if width <= ram.port:
        bits, parity = data_bits(width), width // 9
        return _bits(low, bits) + _bits(low >> bits, parity)
    half, parity = ram.port // 9 * 8, ram.port // 9
    return _bits(low, half) + _bits(high, half) + _bits(low >> half, parity) + _bits(high >> half, parity)


def _bits(value: int, count: int) -> list[bool]:
    return [bool(value >> i & 1) for i in range(count)]


def block_ram_outputs(ram: BlockRam, clocks: Sequence[Mapping[str, int]]) -> NDArray[np.bool_]:
    """The bits that `BlockRam.seen` takes of a model's outputs, a row a clock."""
    data, parity = [False] * (512 * ram.port // 9 * 16), [False] * (512 * ram.port // 9 * 2)
    ports = [_Port("a", ram), _Port("b", ram)]
    with_parity = max(ram.write_a, ram.write_b) >= 9

    def word(port: _Port, pins: Mapping[str, int]) -> list[bool]:
        at, odd = port.bits(pins, port.read)
        return data[at : at + data_bits(port.read)] + parity[odd : odd + port.read // 9]

    def write(port: _Port, pins: Mapping[str, int]) -> None:
        at, odd = port.bits(pins, port.write)
        value, checks = _written(ram, port, pins)
        for i in range(data_bits(port.write)):
            if pins[_STROBES[port.name]] >> (i // 8) & 1:
                data[at + i] = value[i]
        for i in range(port.write // 9):
            if pins[_STROBES[port.name]] >> i & 1:
                parity[odd + i] = checks[i]

    rows = []
    for pins in clocks:
        before = [word(port, pins) if port.read else [] for port in ports]
        for port in ports:
            if port.writes(pins):
                write(port, pins)
        for port, old in zip(ports, before, strict=True):
            if not port.read or not port.enabled(pins):
                continue
            if pins[_RESET[port.name]]:
                port.out = port.reset
            elif not port.writes(pins) or port.mode == "READ_FIRST":
                port.out = old
            elif port.mode == "WRITE_FIRST":
                port.out = word(port, pins)
        seen: list[bool] = []
        for port in ports:
            seen += port.out if with_parity else port.out[: data_bits(port.read)]
        rows.append(seen)
    return np.array(rows, np.bool_)


def _written(ram: BlockRam, port: _Port, pins: Mapping[str, int]) -> tuple[list[bool], list[bool]]:
    """The data and the parity at a port's pins; a row wide, A's pins have the lower half."""
    half = ram.port // 9 * 8
    if port.write > ram.port:
        value = pins["DINADIN"] | pins["DINBDIN"] << half
        return _bits(value, 2 * half), _bits(pins["DINPADINP"] | pins["DINPBDINP"] << half // 8, half // 4)
    name = port.name.upper()
    value, checks = (pins["DINADIN"], pins["DINPADINP"]) if name == "A" else (pins["DINBDIN"], pins["DINPBDINP"])
    return _bits(value, half), _bits(checks, half // 8)


def uram_outputs(interleaved: bool, clocks: Sequence[Mapping[str, int]]) -> list[tuple[int, int]]:
    """DOUT_A and DOUT_B after each clock."""
    words, out, found = [0] * 4096, {"A": 0, "B": 0}, []
    for pins in clocks:
        for port in "AB":
            at = pins[f"ADDR_{port}"]
            if pins[f"EN_{port}"] and pins[f"RDB_WR_{port}"]:
                strobes = _bits(pins[f"BWE_{port}"], 9)
                for i in range(72):
                    if strobes[i - 64 if interleaved and i >= 64 else i // 8]:
                        words[at] = words[at] & ~(1 << i) | pins[f"DIN_{port}"] & 1 << i
            if pins[f"RST_{port}"]:
                out[port] = 0
            elif pins[f"EN_{port}"] and not pins[f"RDB_WR_{port}"]:
                out[port] = words[at]
        found.append((out["A"], out["B"]))
    return found


def carry_outputs(pins: Mapping[str, int]) -> int:
    """CO and above it O: a step hands on the carry that came where S is set, else DI."""
    carry = pins["CI"] | pins["CYINIT"]
    carries = sums = 0
    for step in range(4):
        set_here = pins["S"] >> step & 1
        sums |= (carry ^ set_here) << step
        carry = carry if set_here else pins["DI"] >> step & 1
        carries |= carry << step
    return carries | sums << 4


def _signed(value: int, size: int) -> int:
    return value - (value >> size - 1 << size)


def dsp_outputs(clocks: Sequence[Mapping[str, int]]) -> list[int]:
    """P after each clock."""
    a = b = product = total = 0
    found = []
    for pins in clocks:
        if pins["CEP"]:
            terms = {0: product, 4: pins["PCIN"], 8: pins["C"]}
            total = sum(term for bit, term in terms.items() if pins["OPMODE"] >> bit & 1)
        if pins["CEM"]:
            product = a * b
        a = _signed(pins["A"] & (1 << 27) - 1, 27) if pins["CEA2"] else a
        b = _signed(pins["B"], 18) if pins["CEB2"] else b
        a, b = 0 if pins["RSTA"] else a, 0 if pins["RSTB"] else b
        product, total = 0 if pins["RSTM"] else product, 0 if pins["RSTP"] else total
        found.append(total & (1 << 48) - 1)
    return found
