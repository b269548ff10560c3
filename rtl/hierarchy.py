"""The blocks that a module is made of, as Verilator elaborates them."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catchment.rtl.verilate import run_verilator, sources

_Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """An instance of a module.

    Attributes:
        name: of the instance.
        module: what it is an instance of.
        count: how many there are of it, side by side.
        feeds: the blocks beside it that take something from it besides permission to go on (`ready`), by name.
        outside: the interfaces of the top that end in it and not in a block inside, as `m_axi`.
        inside: its own blocks.
    """

    name: str
    module: str
    count: int
    feeds: tuple[str, ...]
    outside: tuple[str, ...]
    inside: tuple[Block, ...]


def blocks_of(top: str, *, without: str = "common") -> Block:
    """The tree of blocks of a module.

    Args:
        top: its name.
        without: a folder of rtl/ whose modules are left out: what every design has.

    Raises:
        RtlError: Verilator refuses it.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree, meta = Path(folder, "tree.json"), Path(folder, "meta.json")
        outputs = ("--json-only-output", tree, "--json-only-meta-output", meta, "--Mdir", folder)
        run_verilator(["--json-only", *outputs, *sources(top)])
        elaborated = _Elaborated(json.loads(tree.read_text("utf-8")), json.loads(meta.read_text("utf-8")), without)
    return elaborated.top(top)


class _Elaborated:
    """What Verilator wrote: modules by their addresses, and files."""

    def __init__(self, tree: _Node, meta: _Node, without: str) -> None:
        self._modules: dict[str, _Node] = {module["addr"]: module for module in tree["modulesp"]}
        self._files = {key: Path(file["filename"]) for key, file in meta["files"].items()}
        self._without = without

    def top(self, name: str) -> Block:
        module = next(m for m in self._modules.values() if m.get("origName") == name)
        interfaces = {port: port.rpartition("_")[0] for port in _ports(module) if port.endswith("valid")}
        return Block(name, name, 1, (), (), self._inside(module, interfaces))

    def _inside(self, module: _Node, interfaces: Mapping[str, str]) -> tuple[Block, ...]:
        """The blocks of a module; `interfaces`: a port of it -> the interface of the top that it belongs to."""
        every = [cell for cell in _nodes(module["stmtsp"], "CELL") if not self._left_out(cell)]
        counts = Counter(cell["name"] for cell in every)
        cells = {cell["name"]: cell for cell in every}
        takes = {name: set(self._nets(cell, "INPUT")) for name, cell in cells.items()}
        found = []
        for name, cell in cells.items():
            child = self._modules[cell["modp"]]
            given = set(self._nets(cell, "OUTPUT"))
            feeds = tuple(other for other, taken in takes.items() if other != name and given & taken)
            through = {
                pin["name"]: interfaces[net["name"]]
                for pin in cell["pinsp"]
                for net in _nodes(pin["exprp"], "VARREF")
                if net["name"] in interfaces
            }
            inside = self._inside(child, through)
            further = {interface for block in inside for interface in _reached(block)}
            here = tuple(sorted(set(through.values()) - further))
            found.append(Block(name, child["origName"], counts[name], feeds, here, inside))
        return tuple(found)

    def _left_out(self, cell: _Node) -> bool:
        location = self._modules[cell["modp"]]["loc"].partition(",")[0]
        return self._files[location].parent.name == self._without

    def _nets(self, cell: _Node, direction: str) -> Iterator[str]:
        """The nets at a cell's pins of one direction, without those that only say `ready`."""
        ports = _ports(self._modules[cell["modp"]])
        for pin in cell["pinsp"]:
            if ports[pin["name"]] == direction and not pin["name"].endswith("ready"):
                yield from (net["name"] for net in _nodes(pin["exprp"], "VARREF"))


def _ports(module: _Node) -> dict[str, str]:
    """Port -> INPUT or OUTPUT."""
    variables = (node for node in module["stmtsp"] if node["type"] == "VAR")
    return {node["name"]: node["direction"] for node in variables if node.get("direction") in {"INPUT", "OUTPUT"}}


def _reached(block: Block) -> Iterator[str]:
    """The interfaces of the top that end in a block or inside it."""
    yield from block.outside
    for inside in block.inside:
        yield from _reached(inside)


def _nodes(tree: Any, kind: str) -> Iterator[_Node]:
    """Every node of a kind, in the order of the source; those inside one are not looked for."""
    if isinstance(tree, list):
        for each in tree:
            yield from _nodes(each, kind)
    elif isinstance(tree, dict):
        if tree.get("type") == kind:
            yield tree
            return
        for value in tree.values():
            if isinstance(value, dict | list):
                yield from _nodes(value, kind)
