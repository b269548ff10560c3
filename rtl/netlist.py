"""What a synthesized netlist costs on an UltraScale+: LUTs, flip-flops, RAMs, and the longest path in LUT levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# LUTs that a cell takes; RAMs made of LUTs by the slices that they fill.
_LUTS = {
    **{f"LUT{i}": 1 for i in range(1, 7)},
    "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8, "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8,
    "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM512X1S": 8,
    "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1,
}  # fmt: skip
_FLIP_FLOPS = frozenset({"FDRE", "FDSE", "FDCE", "FDPE", "FDRE_1", "FDSE_1"})
# Halves of a 36 Kbit block.
_BLOCKS = {"RAMB18E2": 1, "RAMB36E2": 2}
# A path ends and begins here.
_REGISTERED = _FLIP_FLOPS | _BLOCKS.keys() | {"URAM288", "DSP48E2", "SRL16E", "SRLC16E", "SRLC32E"}
_LEVELS = {name: 1 for name in _LUTS if name not in _REGISTERED}


@dataclass(frozen=True, slots=True)
class Area:
    """Resources of a module, everything inside it included."""

    lut: int
    ff: int
    bram36: float
    uram: int
    carry: int
    levels: int  # LUTs on the longest path between registers, or from and to ports
    carries_on_path: int

    def row(self) -> dict[str, float]:
        """Name -> value."""
        return asdict(self)


def measure(netlist: Mapping[str, Any], top: str) -> Area:
    """Of the flattened module `top` in what Yosys' write_json says."""
    cells = netlist["modules"][top]["cells"]
    kinds = Counter(cell["type"] for cell in cells.values())
    levels, carries = _longest_path(cells)
    return Area(
        lut=sum(count * _LUTS.get(kind, 0) for kind, count in kinds.items()),
        ff=sum(kinds[kind] for kind in _FLIP_FLOPS),
        bram36=sum(kinds[kind] * halves for kind, halves in _BLOCKS.items()) / 2,
        uram=kinds["URAM288"],
        carry=kinds["CARRY4"] + kinds["CARRY8"],
        levels=levels,
        carries_on_path=carries,
    )


def _longest_path(cells: Mapping[str, Any]) -> tuple[int, int]:
    """(LUTs, carry cells) of the path with the most LUTs; a carry chain counts as none."""
    driver: dict[int, str] = {}
    inputs: dict[str, list[int]] = {}
    for name, cell in cells.items():
        directions = cell["port_directions"]
        for port, bits in cell["connections"].items():
            for bit in bits:
                if isinstance(bit, int):
                    if directions[port] == "output":
                        driver[bit] = name
                    else:
                        inputs.setdefault(name, []).append(bit)
    depth: dict[str, tuple[int, int]] = {}

    def arrival(name: str) -> tuple[int, int]:
        """At the inputs of a cell; without recursion, paths are long."""
        stack = [name]
        while stack:
            current = stack[-1]
            if current in depth:
                stack.pop()
                continue
            before = {
                driver[bit]
                for bit in inputs.get(current, ())
                if bit in driver and cells[driver[bit]]["type"] not in _REGISTERED
            } - {current}
            missing = [other for other in before if other not in depth]
            if missing:
                stack.extend(missing)
                continue
            depth[current] = max((_plus(cells[other]["type"], depth[other]) for other in before), default=(0, 0))
            stack.pop()
        return depth[name]

    ends = (
        arrival(name) if cell["type"] in _REGISTERED else _plus(cell["type"], arrival(name))
        for name, cell in cells.items()
    )
    return max(ends, default=(0, 0))


def _plus(kind: str, depth: tuple[int, int]) -> tuple[int, int]:
    return depth[0] + _LEVELS.get(kind, 0), depth[1] + (kind in ("CARRY4", "CARRY8"))
