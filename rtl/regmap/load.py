"""Reads registers.toml, and the enumerations and records that it names from their RTL packages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catchment.checkout import ROOT
from catchment.rtl.regmap.model import (
    ANY,
    Block,
    Enumeration,
    EnumValue,
    Field,
    Record,
    RecordField,
    Register,
    RegisterMap,
    RegisterMapError,
    Table,
)
from catchment.wire.generated import constants

SOURCE = ROOT / "rtl" / "registers.toml"
GLM_SOURCE = ROOT / "rtl" / "glm_registers.toml"
SYNC_SOURCE = ROOT / "rtl" / "sync_registers.toml"
WORD = 32
# Reset values that the wire format gives.
_CONSTANTS = {"UdpPort": constants.UDP_PORT}


def _fields(entry: Mapping[str, Any]) -> tuple[Field, ...]:
    if "fields" not in entry:
        entry = {"fields": [{"name": "value", **{k: v for k, v in entry.items() if k in ("bits", "reset", "signed")}}]}
    fields, lsb = [], 0
    for field in entry["fields"]:
        lsb = field.get("lsb", lsb)
        reset = field.get("reset", 0)
        fields.append(
            Field(
                field["name"],
                lsb,
                field.get("bits", 1),
                _CONSTANTS[reset] if isinstance(reset, str) else reset,
                field.get("signed", False),
                field.get("doc", ""),
            )
        )
        lsb += field.get("bits", 1)
    return tuple(fields)


def _register(entry: Mapping[str, Any], address: int, lock: str, locks: Sequence[str]) -> Register:
    name = entry["name"]
    if entry["access"] not in ("rw", "ro", "wo", "w1c"):
        raise RegisterMapError(f"register {name}: access {entry['access']!r} is none of rw, ro, wo, w1c")
    fields = _fields(entry)
    end = 0
    for field in fields:
        if field.lsb < end:
            raise RegisterMapError(f"register {name}: field {field.name} overlaps the one before it")
        end = field.lsb + field.bits
        field.place(field.reset)
    if end > 2 * WORD or (end > WORD and len(fields) > 1):
        raise RegisterMapError(f"register {name}: {end} bits; two words hold one field of at most 64")
    held = entry.get("lock", lock)
    if held not in ("", ANY, *locks) or (held and entry["access"] not in ("rw", "wo")):
        raise RegisterMapError(
            f"register {name}: lock {held!r} is none of {', '.join(locks)}, {ANY}, or the register is only read"
        )
    return Register(name, address, 1 if end <= WORD else 2, entry["access"], fields, entry["doc"], held)


def _enumeration(entry: Mapping[str, Any]) -> Enumeration:
    text = (ROOT / entry["package"]).read_text()
    found = re.search(r"typedef enum [^{;]*\{([^}]*)\}\s*" + re.escape(entry["type"]) + r"\s*;", text)
    if found is None:
        raise RegisterMapError(f"enum {entry['name']}: {entry['package']} has no enumeration {entry['type']}")
    values = tuple(
        EnumValue(name.removeprefix(entry["prefix"]), int(value), doc.strip())
        for name, value, doc in re.findall(r"(\w+)\s*=\s*\d+'d(\d+),?[ \t]*(?://(.*))?", found[1])
    )
    return Enumeration(entry["name"], entry["doc"], values)


def _record(entry: Mapping[str, Any]) -> Record:
    """A packed struct: its last member is the first in memory."""
    where = f"record {entry['name']}: {entry['package']}"
    text = (ROOT / entry["package"]).read_text()
    found = re.search(r"typedef struct packed \{([^}]*)\}\s*" + re.escape(entry["type"]) + r"\s*;", text)
    if found is None:
        raise RegisterMapError(f"{where} has no packed struct {entry['type']}")
    fields: list[RecordField] = []
    offset = 0
    members = re.findall(
        r"^\s*(\w+)\s+(signed\s+)?(?:\[(\d+):0\]\s*)?(\w+);[ \t]*(?://[ \t]*(.*))?$", found[1], re.MULTILINE
    )
    for kind, signed, high_bit, name, doc in reversed(members):
        high = high_bit
        if kind != "logic":
            base = re.search(r"typedef enum logic \[(\d+):0\] \{[^}]*\}\s*" + re.escape(kind) + r"\s*;", text)
            if base is None:
                raise RegisterMapError(f"{where}: member {name} has a type that is no enumeration there, {kind}")
            high = base[1]
        bits = int(high or 0) + 1
        if bits % 8:
            raise RegisterMapError(f"{where}: member {name} has {bits} bits, which are no whole bytes")
        fields.append(RecordField(name, offset, bits // 8, bool(signed), doc.strip()))
        offset += bits // 8
    return Record(entry["name"], entry["doc"], tuple(fields))


def _check(registers: RegisterMap) -> None:
    taken: dict[int, str] = {}
    names: set[str] = set()
    items: list[Register | Table] = [*registers.registers, *registers.tables]
    for item in items:
        count = item.words * (item.count if isinstance(item, Table) else 1)
        for address in range(item.address, item.address + 4 * count, 4):
            if address in taken:
                raise RegisterMapError(f"{item.name} and {taken[address]} are both at {address:#05x}")
            if address >> registers.address_bits:
                raise RegisterMapError(f"{item.name}: {address:#x} has more than {registers.address_bits} bits")
            taken[address] = item.name
        if item.name in names:
            raise RegisterMapError(f"{item.name} is there twice")
        names.add(item.name)


def load(path: Path = SOURCE) -> RegisterMap:
    """The register map.

    Raises:
        RegisterMapError: with the register that is wrong.
    """
    data = tomllib.loads(path.read_text())
    blocks = []
    for block in data["block"]:
        address = block["at"]
        registers = []
        for entry in block["register"]:
            address = entry.get("at", address)
            registers.append(_register(entry, address, block.get("lock", ""), data["map"]["locks"]))
            address += 4 * registers[-1].words
        blocks.append(Block(block["name"], block["doc"], tuple(registers)))
    tables = tuple(
        Table(t["name"], t["at"], t["words"], t["count"], t["enum"], t["doc"]) for t in data.get("table", [])
    )
    enums = tuple(_enumeration(entry) for entry in data.get("enum", []))
    records = tuple(_record(entry) for entry in data.get("record", []))
    head = data["map"]
    result = RegisterMap(
        head["name"], head["address_bits"], tuple(blocks), tables, enums, records,
        title=head["title"], locked=head["locked"], locks=tuple(head["locks"]), source=f"rtl/{path.name}",
    )  # fmt: skip
    _check(result)
    return result
