"""Key fields of tables and value sets: readable values on our side, `p4.v1.FieldMatch` on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from catchment.controlplane.client.errors import SwitchError
from catchment.controlplane.client.values import Value, decode, encode, readable, to_int
from catchment.wire.generated import p4info_pb2

MatchType = p4info_pb2.MatchField
Adder = Callable[[Any, Value], None]
"""Adds a value to a list of `p4.v1.FieldMatch`; raises `SwitchError` where the value does not fit."""


def fill_match(match: Mapping[str, Value], fields: Iterable[Any], out: Any, where: str) -> None:
    """Add key fields to a list of `p4.v1.FieldMatch`.

    Args:
        match: name of the field (or a unique suffix) -> value.
        fields: P4Info of the fields.
        out: the list.
        where: what errors begin with.

    Raises:
        SwitchError: there is no such field, an exact field is left out, or a value does not fit.
    """
    known = {field.name: field for field in fields}
    given = {field_name(name, known, where): value for name, value in match.items()}
    for name, field in known.items():
        what = f"{where} {name}".rstrip()
        if name in given:
            adder(field, what)(out, given[name])
        elif field.match_type == MatchType.EXACT:
            raise SwitchError(f"{what}: an exact key field needs a value")


def field_name(name: str, known: Mapping[str, Any], where: str) -> str:
    """The full name of a key field, given by its name or a unique suffix; `where` is what errors begin with."""
    if name in known:
        return name
    matches = [full for full in known if full.endswith(f".{name}")]
    if len(matches) == 1:
        return matches[0]
    raise SwitchError(f"{where} has no key field {name!r}; its key is: {', '.join(known) or 'empty'}")


def _split(value: Value, separator: str, default: str) -> tuple[str, str]:
    left, found, right = str(value).partition(separator)
    return left, right if found else default


def adder(key: Any, what: str) -> Adder:
    """What adds a key field to a list of `p4.v1.FieldMatch`; nothing where the value is any."""
    width, number = key.bitwidth, key.id

    def exact(out: Any, value: Value) -> None:
        out.add(field_id=number).exact.value = encode(value, width, what)

    def optional(out: Any, value: Value) -> None:
        out.add(field_id=number).optional.value = encode(value, width, what)

    def lpm(out: Any, value: Value) -> None:
        address, length = _split(value, "/", str(width))
        bits = to_int(length, 16, f"{what} prefix length")
        if bits > width:
            raise SwitchError(f"{what}: prefix length {bits} is longer than the field ({width})")
        if bits:
            mask = ((1 << bits) - 1) << (width - bits)
            prefix = encode(to_int(address, width, what) & mask, width, what)
            out.add(field_id=number, lpm={"value": prefix, "prefix_len": bits})

    def ternary(out: Any, value: Value) -> None:
        text, mask_text = _split(value, "&&&", str((1 << width) - 1))
        bits = to_int(mask_text, width, f"{what} mask")
        if bits:
            masked = encode(to_int(text, width, what) & bits, width, what)
            out.add(field_id=number, ternary={"value": masked, "mask": encode(bits, width, what)})

    def between(out: Any, value: Value) -> None:
        low, high = _split(value, "..", str(value))
        if to_int(low, width, what) > to_int(high, width, what):
            raise SwitchError(f"{what}: empty range {value}")
        ends = {"low": encode(low, width, what), "high": encode(high, width, what)}
        out.add(field_id=number, range=ends)

    adders: dict[int, Adder] = {
        MatchType.EXACT: exact,
        MatchType.OPTIONAL: optional,
        MatchType.LPM: lpm,
        MatchType.TERNARY: ternary,
        MatchType.RANGE: between,
    }
    if key.match_type not in adders:
        raise SwitchError(f"{what}: match kind {key.match_type} is not supported")
    add = adders[key.match_type]

    def unless_any(out: Any, value: Value) -> None:
        if value != "*":
            add(out, value)

    return exact if add is exact else unless_any


def decode_match(message: Any, field: Any) -> Value:
    """The readable value of a `p4.v1.FieldMatch`; `field` is its P4Info."""
    kind = message.WhichOneof("field_match_type")

    def show(data: bytes) -> Value:
        return readable(decode(data), field.bitwidth, field.name)

    if kind == "exact":
        return show(message.exact.value)
    if kind == "optional":
        return show(message.optional.value)
    if kind == "lpm":
        return f"{show(message.lpm.value)}/{message.lpm.prefix_len}"
    if kind == "ternary":
        return f"{show(message.ternary.value)}&&&{decode(message.ternary.mask):#x}"
    return f"{show(message.range.low)}..{show(message.range.high)}"
