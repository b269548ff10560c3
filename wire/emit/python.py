"""Python: enumerations, constants and a header value with its codec."""

from __future__ import annotations

from catchment.wire.emit.layout import BANNER, byte_groups
from catchment.wire.frame import Enumeration, Field, Frame


def _enum(enum: Enumeration) -> str:
    base = "IntFlag" if enum.flags else "IntEnum"
    rows = [f"    {v.name} = {v.value:#x}  # {v.doc}" for v in enum.values]
    return "\n".join([f"class {enum.name}({base}):", f'    """{enum.doc[0].upper()}{enum.doc[1:]}."""', "", *rows])


def _code(fields: list[Field]) -> str:
    bits = sum(f.bits for f in fields)
    code = {8: "B", 16: "H", 32: "I"}[bits]
    return code.lower() if len(fields) == 1 and fields[0].signed else code


def _argument(fields: list[Field]) -> str:
    if len(fields) == 1:
        return f"self.{fields[0].name}"
    shift, terms = sum(f.bits for f in fields), []
    for field in fields:
        shift -= field.bits
        terms.append(f"self.{field.name} << {shift}" if shift else f"self.{field.name}")
    return " | ".join(terms)


def _results(index: int, fields: list[Field]) -> list[str]:
    if len(fields) == 1:
        return [f"v[{index}]"]
    shift, terms = sum(f.bits for f in fields), []
    for field in fields:
        shift -= field.bits
        terms.append(f"v[{index}] >> {shift} & {(1 << field.bits) - 1:#x}")
    return terms


def emit(frame: Frame) -> str:
    """The text of constants.py."""
    groups = [fields for _, fields in byte_groups(frame)]
    layout = "!" + "".join(_code(fields) for fields in groups)
    results = [term for i, fields in enumerate(groups) for term in _results(i, fields)]
    numbers = {
        "VERSION": frame.version,
        "TAGGED_VERSION": frame.tagged_version,
        "TAG_BYTES": frame.tag_bytes,
        "KEY_FRAMES": frame.key_frames,
        "TERM_BITS": frame.term_bits,
        "UDP_PORT": frame.udp_port,
        "UDP_PORTS": frame.udp_ports,
        "HEADER_BYTES": frame.header_bytes,
        "ETHERNET_BYTES": frame.encapsulation.ethernet,
        "IPV4_BYTES": frame.encapsulation.ipv4,
        "UDP_BYTES": frame.encapsulation.udp,
        "HEADER_OFFSET": frame.encapsulation.total,
        "ETHERTYPE_IPV4": frame.envelope.ether_type_ipv4,
        "IPV4_FIRST_BYTE": frame.envelope.ipv4_first_byte,
        "IPV4_DONT_FRAGMENT": frame.envelope.ipv4_dont_fragment,
        "IPV4_HOPS": frame.envelope.ipv4_hops,
        "IPV4_PROTOCOL_UDP": frame.envelope.ipv4_protocol_udp,
        "LANE_BYTES": frame.lane_bits // 8,
        "DEFAULT_LANES": frame.default_lanes,
        "MAX_WORKERS": frame.max_workers,
        "FEW_WORKERS": frame.few_workers,
        "MAX_PARAM_BYTES": frame.max_param_bytes,
    }
    return "\n".join(
        [
            f'"""{BANNER}"""',
            "",
            "from __future__ import annotations",
            "",
            "import struct",
            "from enum import IntEnum, IntFlag",
            "from typing import Final, NamedTuple",
            "",
            *[f"{name}: Final = {value}" for name, value in numbers.items()],
            f"SUPPORTED_LANES: Final = {frame.supported_lanes!r}",
            f'_LAYOUT: Final = struct.Struct("{layout}")',
            "",
            *["\n" + _enum(e) + "\n" for e in frame.enums],
            "",
            "class Header(NamedTuple):",
            '    """The header of a frame; every field is a plain int."""',
            "",
            *[f"    {f.name}: int = {frame.version if f.name == 'version' else 0}  # {f.doc}" for f in frame.fields],
            "",
            "    def pack(self) -> bytes:",
            '        """HEADER_BYTES in network byte order.  Raises struct.error on a value out of range."""',
            f"        return _LAYOUT.pack({', '.join(_argument(fields) for fields in groups)})",
            "",
            "    @classmethod",
            "    def unpack(cls, data: bytes, offset: int = 0) -> Header:",
            '        """Read HEADER_BYTES from `data` at `offset`.  Raises struct.error when it is too short."""',
            "        v = _LAYOUT.unpack_from(data, offset)",
            f"        return cls({', '.join(results)})",
            "",
        ]
    )
