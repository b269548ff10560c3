"""Reads `frame.toml`, the single source of the wire format, into checked values."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("frame.toml")
WORKER_BITS = 64
"""The widest set of workers: of a slot in the switch, and of the ranks that a failure is about in the C interface."""


class FrameError(ValueError):
    """The wire description is inconsistent; the message says which entry and why."""


@dataclass(frozen=True, slots=True)
class Value:
    """One named value of an enumeration."""

    name: str
    value: int
    doc: str


@dataclass(frozen=True, slots=True)
class Enumeration:
    """A set of named values; `flags` means that the values are bit masks."""

    name: str
    bits: int
    kind: str
    flags: bool
    doc: str
    values: tuple[Value, ...]

    @property
    def mask(self) -> int:
        """All assigned bits of a flag enumeration."""
        return sum(v.value for v in self.values)


@dataclass(frozen=True, slots=True)
class Field:
    """One header field; `offset` counts bits from the first bit of the header."""

    name: str
    bits: int
    offset: int
    signed: bool
    enum: str | None
    doc: str


@dataclass(frozen=True, slots=True)
class Encapsulation:
    """Bytes of the headers before ours."""

    ethernet: int
    ipv4: int
    udp: int

    @property
    def total(self) -> int:
        return self.ethernet + self.ipv4 + self.udp


@dataclass(frozen=True, slots=True)
class Envelope:
    """Values of fields in the headers before ours."""

    ether_type_ipv4: int
    ipv4_first_byte: int
    ipv4_dont_fragment: int
    ipv4_fragment: int
    ipv4_hops: int
    ipv4_protocol_udp: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The whole wire description."""

    name: str
    version: int
    tagged_version: int
    tag_bytes: int
    key_frames: int
    term_bits: int
    udp_port: int
    udp_ports: int
    beat_bits: int
    max_workers: int
    few_workers: int
    default_lanes: int
    supported_lanes: tuple[int, ...]
    lane_bits: int
    max_param_bytes: int
    encapsulation: Encapsulation
    envelope: Envelope
    fields: tuple[Field, ...]
    enums: tuple[Enumeration, ...]

    @property
    def header_bits(self) -> int:
        return sum(f.bits for f in self.fields)

    @property
    def header_bytes(self) -> int:
        return self.header_bits // 8

    def enum(self, name: str) -> Enumeration:
        """The enumeration called `name`; FrameError if there is none."""
        for candidate in self.enums:
            if candidate.name == name:
                return candidate
        raise FrameError(f"no enumeration is called {name}")


def _fields(rows: list[dict[str, Any]]) -> tuple[Field, ...]:
    fields: list[Field] = []
    offset = 0
    for row in rows:
        fields.append(
            Field(
                name=row["name"],
                bits=row["bits"],
                offset=offset,
                signed=row.get("signed", False),
                enum=row.get("enum"),
                doc=row["doc"],
            )
        )
        offset += row["bits"]
    return tuple(fields)


def _enums(rows: list[dict[str, Any]]) -> tuple[Enumeration, ...]:
    return tuple(
        Enumeration(
            name=row["name"],
            bits=row["bits"],
            kind=row["kind"],
            flags=row.get("flags", False),
            doc=row["doc"],
            values=tuple(Value(**value) for value in row["values"]),
        )
        for row in rows
    )


def load(source: Path = SOURCE) -> Frame:
    """Read and check a wire description.  Raises FrameError when it contradicts itself."""
    data = tomllib.loads(source.read_text())
    protocol = data["protocol"]
    frame = Frame(
        **{**protocol, "supported_lanes": tuple(protocol["supported_lanes"])},
        encapsulation=Encapsulation(**data["encapsulation"]),
        envelope=Envelope(**data["envelope"]),
        fields=_fields(data["field"]),
        enums=_enums(data["enum"]),
    )
    _check(frame)
    return frame


def _check(frame: Frame) -> None:
    if frame.header_bits % 8:
        raise FrameError(f"the header has {frame.header_bits} bits, not whole bytes")
    total = frame.encapsulation.total + frame.header_bytes
    if total * 8 != frame.beat_bits:
        raise FrameError(f"headers take {total} bytes; a payload must start on a beat ({frame.beat_bits} bits)")
    if not 1 <= frame.max_workers <= WORKER_BITS:
        raise FrameError(f"max_workers {frame.max_workers}: sets of workers are words of {WORKER_BITS} bits")
    if not 1 <= frame.few_workers < frame.max_workers:
        raise FrameError(f"few_workers {frame.few_workers} is not less than max_workers {frame.max_workers}")
    if frame.default_lanes not in frame.supported_lanes:
        raise FrameError(f"default_lanes {frame.default_lanes} is not in supported_lanes")
    _check_unique("field", [f.name for f in frame.fields])
    _check_unique("enumeration", [e.name for e in frame.enums])
    for field in frame.fields:
        if field.enum is not None and frame.enum(field.enum).bits != field.bits:
            raise FrameError(f"field {field.name} and its enumeration {field.enum} differ in width")
    for enum in frame.enums:
        _check_enum(enum)


def _check_enum(enum: Enumeration) -> None:
    _check_unique(f"{enum.name} name", [v.name for v in enum.values])
    _check_unique(f"{enum.name} value", [v.value for v in enum.values])
    if enum.kind not in ("wire", "control"):
        raise FrameError(f"{enum.name}: kind {enum.kind!r} is neither 'wire' nor 'control'")
    for value in enum.values:
        if not 0 <= value.value < 1 << enum.bits:
            raise FrameError(f"{enum.name}.{value.name} = {value.value} does not fit {enum.bits} bits")
        if enum.flags and value.value.bit_count() != 1:
            raise FrameError(f"{enum.name}.{value.name} = {value.value:#x} is not a single bit")


def _check_unique(what: str, items: list[Any]) -> None:
    seen: set[Any] = set()
    for item in items:
        if item in seen:
            raise FrameError(f"{what} {item!r} appears twice")
        seen.add(item)
