"""What a synthesized netlist costs on an UltraScale+: LUTs, flip-flops, RAMs, and its slowest paths by an estimate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
# Cells whose outputs come from a clock edge alone: paths begin and end there.
_CLOCKED = _FLIP_FLOPS | _BLOCKS.keys() | {"URAM288", "DSP48E2"}
# Of a RAM made of LUTs, the inputs that its outputs follow without a clock: where it reads.
_READ_PORTS = {
    "RAM32X1D": "DPRA", "RAM64X1D": "DPRA", "RAM128X1D": "DPRA", "RAM256X1D": "DPRA",
    "RAM32X1S": "A", "RAM64X1S": "A", "RAM128X1S": "A", "RAM256X1S": "A", "RAM512X1S": "A",
    "SRL16E": "A", "SRLC16E": "A", "SRLC32E": "A",
}  # fmt: skip
# Of these every output DOx follows ADDRx.
_LETTERED = frozenset({"RAM32M", "RAM64M", "RAM32M16", "RAM64M8"})
# The estimate of a path, in ns: a LUT with its net, and a carry cell.  Flip-flops, RAMs and ports count nothing.
LUT_NS, CARRY_NS = 0.35, 0.03
# Paths that an area names.
PATHS = 5
# Bits of a carry cell; a port that nothing is connected to is not in the netlist.
_CARRIES = {"CARRY4": 4, "CARRY8": 8}


class NetlistError(Exception):
    """The netlist has a combinational loop; the message names a cell on it."""


@dataclass(frozen=True, slots=True)
class Path:
    """The slowest way between two registers, memories or ports that the sources name, without a clock on it."""

    levels: int  # LUTs
    carries: int
    begin: str
    end: str

    @property
    def ns(self) -> float:
        """The estimate of what it takes."""
        return estimate((self.levels, self.carries))


@dataclass(frozen=True, slots=True)
class Area:
    """Resources of a module, everything inside it included."""

    lut: int
    ff: int
    bram36: float
    uram: int
    dsp: int
    carry: int
    paths: tuple[Path, ...]  # the slowest PATHS, the slowest first

    @property
    def slowest(self) -> Path:
        """The slowest path; one of nothing if there is none."""
        return self.paths[0] if self.paths else Path(0, 0, "", "")

    @property
    def memory_mb(self) -> float:
        """What its blocks and UltraRAMs hold, filled or not, in thousands of the vendor's Kb."""
        return (self.bram36 * 36 + self.uram * 288) / 1000

    def row(self) -> dict[str, Any]:
        """Name -> value."""
        return asdict(self)

    @staticmethod
    def of(row: Mapping[str, Any]) -> Area:
        """What `row` said."""
        return Area(**{**row, "paths": tuple(Path(**path) for path in row["paths"])})


def estimate(path: tuple[int, int]) -> float:
    """What a path of (LUTs, carry cells) takes, in ns."""
    return round(LUT_NS * path[0] + CARRY_NS * path[1], 2)


def measure(netlist: Mapping[str, Any], top: str) -> Area:
    """The netlist of the flattened module `top` in what Yosys' write_json says."""
    module = netlist["modules"][top]
    cells = module["cells"]
    kinds = Counter(cell["type"] for cell in cells.values())
    return Area(
        lut=sum(count * _LUTS.get(kind, 0) for kind, count in kinds.items()),
        ff=sum(kinds[kind] for kind in _FLIP_FLOPS),
        bram36=sum(kinds[kind] * halves for kind, halves in _BLOCKS.items()) / 2,
        uram=kinds["URAM288"],
        dsp=kinds["DSP48E2"],
        carry=kinds["CARRY4"] + kinds["CARRY8"],
        paths=_slowest(cells, _names(module)),
    )


def slowest_of(*areas: Area) -> tuple[Path, ...]:
    """The slowest paths of several modules."""
    return _first({path for area in areas for path in area.paths})


def _first(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(sorted(paths, key=lambda path: (-path.ns, path.begin, path.end))[:PATHS])


def _slowest(cells: Mapping[str, Any], names: Mapping[int, str]) -> tuple[Path, ...]:
    """The slowest path for each two names, without the bits' indices; of these the slowest PATHS."""
    found: dict[tuple[str, str], Path] = {}
    arrivals = _arrivals(cells)
    for net, end in _ends(cells, names):
        depth, first = arrivals.get(net, ((0, 0), net))
        path = Path(*depth, names.get(first, ""), end)
        key = _word(path.begin), _word(path.end)
        if depth != (0, 0) and (key not in found or path.ns > found[key].ns):
            found[key] = path
    return _first(found.values())


def _word(name: str) -> str:
    return re.sub(r"\[\d+\]", "", name)


def _names(module: Mapping[str, Any]) -> dict[int, str]:
    """Net -> its name in the sources, or the one that Yosys gave it."""
    found: dict[int, tuple[bool, int, str]] = {}
    for name, net in module.get("netnames", {}).items():
        for i, bit in enumerate(net["bits"]):
            if isinstance(bit, int):
                said = f"{name}[{i}]" if len(net["bits"]) > 1 else name
                found[bit] = min(found.get(bit, (True, len(said) + 1, "")), (bool(net["hide_name"]), len(said), said))
    return {bit: name for bit, (_, _, name) in found.items()}


def _ends(cells: Mapping[str, Any], names: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """Every net that a register or memory takes, with the name of what leaves that; and those that nothing takes."""
    taken: set[int] = set()
    given: set[int] = set()
    for cell in cells.values():
        ports, directions = cell["connections"], cell["port_directions"]
        outputs = _nets(bit for port, bits in ports.items() if directions[port] == "output" for bit in bits)
        inputs = _nets(bit for port, bits in ports.items() if directions[port] != "output" for bit in bits)
        given.update(outputs)
        taken.update(inputs)
        if cell["type"] in _CLOCKED or cell["type"] in _READ_PORTS or cell["type"] in _LETTERED:
            # one of the sources if there is any
            end = min(
                (names[net] for net in outputs if net in names), key=lambda name: name.startswith("$"), default=""
            )
            yield from ((net, end or names.get(net, "")) for net in inputs)
    yield from ((net, names.get(net, "")) for net in given - taken)


def _arcs(cell: Mapping[str, Any]) -> Iterator[tuple[list[int], list[int]]]:
    """(outputs, the inputs that they follow without a clock) of a cell, as nets; constants left out."""
    kind, ports, directions = cell["type"], cell["connections"], cell["port_directions"]
    if kind in _CLOCKED:
        return
    if kind in _CARRIES:
        # A bit follows those below it.
        for i in range(_CARRIES[kind]):
            below = [bit for port in ("CI", "CYINIT", "CI_TOP") for bit in ports.get(port, ())]
            below += [bit for port in ("S", "DI") for bit in ports.get(port, ())[: i + 1]]
            yield _nets(bit for port in ("O", "CO") for bit in ports.get(port, ())[i : i + 1]), _nets(below)
        return
    if kind in _LETTERED:
        # A letter's output follows its own address; the last letter's address is also where the RAM is written.
        for port, bits in ports.items():
            if directions[port] == "output":
                yield _nets(bits), _nets(ports.get(f"ADDR{port[2]}", ()))
        return
    read = _READ_PORTS.get(kind, "")
    outputs, inputs = [], []
    for port, bits in ports.items():
        if directions[port] == "output":
            outputs += _nets(bits)
        elif port.startswith(read):
            inputs += _nets(bits)
    yield outputs, inputs


def _nets(bits: Iterable[int | str]) -> list[int]:
    return [bit for bit in bits if isinstance(bit, int)]


# A path so far: LUTs and carry cells, and the net where it began.
_Arrival = tuple[tuple[int, int], int | None]


def _arrivals(cells: Mapping[str, Any]) -> dict[int, tuple[tuple[int, int], int]]:
    """Each net's slowest path by `estimate`, in time linear in the netlist; nets that follow constants alone have none.

    Nets are taken in topological order.

    Raises:
        NetlistError: there is a combinational loop.
    """
    followers: dict[int, list[int]] = {}  # net -> arcs that wait for it
    arcs: list[tuple[str, list[int]]] = []  # (cell, outputs)
    waiting: list[int] = []  # inputs of an arc that have not arrived
    driven: set[int] = set()
    for name, cell in cells.items():
        for outputs, inputs in _arcs(cell):
            for net in set(inputs):
                followers.setdefault(net, []).append(len(arcs))
            waiting.append(len(set(inputs)))
            arcs.append((name, outputs))
            driven.update(outputs)

    # From registers and ports.
    arrived: dict[int, _Arrival] = {net: ((0, 0), net) for net in followers.keys() - driven}
    latest: list[_Arrival] = [((0, 0), None)] * len(arcs)
    ready = list(arrived)
    begun = [i for i, count in enumerate(waiting) if count == 0]  # all inputs constant
    while ready or begun:
        if begun:
            name, outputs = arcs[current := begun.pop()]
            kind = cells[name]["type"]
            (luts, carries), first = latest[current]
            depth = luts + (kind in _LUTS), carries + (kind in _CARRIES)
            arrived |= dict.fromkeys(outputs, (depth, first))
            ready += outputs
            continue
        net = ready.pop()
        for arc in followers.get(net, ()):
            latest[arc] = max(latest[arc], arrived[net], key=_time)
            waiting[arc] -= 1
            if waiting[arc] == 0:
                begun.append(arc)
    stuck = [arcs[i][0] for i, count in enumerate(waiting) if count]
    if stuck:
        raise NetlistError(f"a combinational loop goes through or before the cell {stuck[0]} (and {len(stuck)} in all)")
    return {net: (depth, first) for net, (depth, first) in arrived.items() if first is not None}


def _time(arrival: _Arrival) -> tuple[float, bool]:
    """One that begins somewhere goes before what has not begun."""
    return estimate(arrival[0]), arrival[1] is not None
