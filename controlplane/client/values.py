"""Readable values (numbers, MAC and IPv4 addresses) to and from P4Runtime byte strings."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable
from typing import Any

from catchment.controlplane.client.errors import SwitchError
from catchment.wire.generated import p4data_pb2

Value = int | str
"""What people write: 7, "0x7f", "10.0.0.1", "02:00:00:00:00:01"."""

_MAC = re.compile(r"(?:[0-9a-fA-F]{1,2}:){5}[0-9a-fA-F]{1,2}")
_IPV4_NAME = re.compile(r"(^|[._])(ip|ipv4|spa|tpa|target|addr|address|ip_?addr|(src|dst|target)_?(ip|addr))($|[._])")


def to_int(value: Value, bitwidth: int, what: str) -> int:
    """The number that a readable value stands for.

    Args:
        value: an integer, or text: decimal, 0x/0b/0o, a MAC address or an IPv4 address.
        bitwidth: width of the field, in bits.
        what: the field, for the message.

    Raises:
        SwitchError: not a number, or it does not fit.
    """
    number = value if isinstance(value, int) else _parse(value, what)
    if number < 0 or number >> bitwidth:
        raise SwitchError(f"{what}: {value} does not fit in {bitwidth} bits (0 to {(1 << bitwidth) - 1})")
    return number


def _parse(text: str, what: str) -> int:
    text = text.strip()
    if _MAC.fullmatch(text):
        return int.from_bytes(bytes(int(part, 16) for part in text.split(":")), "big")
    if text.count(".") == 3:
        try:
            return int(ipaddress.IPv4Address(text))
        except ipaddress.AddressValueError as error:
            raise SwitchError(f"{what}: {text!r} is not an IPv4 address: {error}") from None
    try:
        return int(text, 0)
    except ValueError:
        raise SwitchError(
            f"{what}: {text!r} is neither a number (10, 0x0a), a MAC address nor an IPv4 address"
        ) from None


Encoder = Callable[[Value], bytes]
"""Makes the canonical byte string of a readable value; raises `SwitchError` when it does not fit."""


def encode(value: Value, bitwidth: int, what: str) -> bytes:
    """The canonical byte string (shortest, at least one byte) of a value."""
    return _canonical(to_int(value, bitwidth, what))


def _canonical(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


def encoder(bitwidth: int, what: str) -> Encoder:
    """`encode` for one field, made once for the many values that it gets."""
    limit = 1 << bitwidth

    def run(value: Value) -> bytes:
        if value.__class__ is int and 0 <= value < limit:
            return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")
        return _canonical(to_int(value, bitwidth, what))

    def run_text(value: Value) -> bytes:
        if value.__class__ is str and (packed := _PACKED[bitwidth](value)) is not None:
            return packed.lstrip(b"\0") or b"\0"
        return run(value)

    return run_text if bitwidth in _PACKED else run


def _packed_mac(text: str) -> bytes | None:
    """The six bytes of a MAC address as people mostly write it; None for everything else."""
    try:
        return bytes.fromhex(text.replace(":", "")) if text[2::3] == ":::::" and len(text) == 17 else None
    except ValueError:
        return None


def _packed_ipv4(text: str) -> bytes | None:
    try:
        return socket.inet_pton(socket.AF_INET, text)
    except OSError:
        return None


_PACKED: dict[int, Callable[[str], bytes | None]] = {32: _packed_ipv4, 48: _packed_mac}
"""Width in bits -> a short cut for the text that such fields mostly get."""


def decode(data: bytes) -> int:
    """The number in a byte string, padded or canonical."""
    return int.from_bytes(data, "big")


def readable(number: int, bitwidth: int, name: str) -> Value:
    """The value as people write it: MAC for 48 bits, IPv4 for 32-bit fields named like one."""
    if bitwidth == 48:
        return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))
    if bitwidth == 32 and _IPV4_NAME.search(name.lower()):
        return str(ipaddress.IPv4Address(number))
    return number


def from_data(data: Any, spec: Any) -> int:
    """The number in a `p4.v1.P4Data` of a scalar type (bit, int, bool, serializable enum): `P4Info.plain_type`."""
    kind = data.WhichOneof("data")
    if kind == "bool":
        return 1 if data.bool else 0
    if kind == "enum_value":
        return decode(data.enum_value)
    width: int = spec.bitstring.int.bitwidth
    if not width:
        return decode(data.bitstring)
    # Targets differ in how far they extend the sign.
    number = int.from_bytes(data.bitstring, "big", signed=True) & ((1 << width) - 1)
    return number - (1 << width) if number >> (width - 1) else number


def to_data(number: int, spec: Any, what: str) -> Any:
    """The `p4.v1.P4Data` of a number in a scalar type.

    Raises:
        SwitchError: it does not fit.
    """
    data = p4data_pb2.P4Data()
    if spec.HasField("bool"):
        if number not in (0, 1):
            raise SwitchError(f"{what}: {number} is not 0 or 1")
        data.bool = bool(number)
        return data
    width = spec.bitstring.int.bitwidth
    if width:
        if not -(1 << (width - 1)) <= number < 1 << (width - 1):
            raise SwitchError(f"{what}: {number} does not fit in a signed number of {width} bits")
        data.bitstring = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
        return data
    if spec.HasField("serializable_enum"):
        data.enum_value = encode(number, 8 * max(1, (number.bit_length() + 7) // 8), what)
        return data
    width = spec.bitstring.bit.bitwidth or max(1, number.bit_length())
    data.bitstring = encode(number, width, what)
    return data
