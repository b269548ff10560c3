"""SystemVerilog: a package of parameters, enumerations and the packed header."""

from __future__ import annotations

from catchment.wire.emit.layout import BANNER
from catchment.wire.frame import Enumeration, Field, Frame

# Field names that SystemVerilog reserves.
_RENAMED = {"type": "ptype"}


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def _enum(enum: Enumeration) -> str:
    name = _snake(enum.name)
    if enum.flags:
        kind, prefix = f"localparam logic [{enum.bits - 1}:0]", name.upper()
        masks = [f"  {kind} {prefix}_{v.name} = {enum.bits}'h{v.value:02x};  // {v.doc}" for v in enum.values]
        return "\n".join([f"  // {enum.doc}", *masks, f"  {kind} {prefix}_ALL = {enum.bits}'h{enum.mask:02x};"])
    rows = [
        f"    {name.upper()}_{v.name} = {enum.bits}'d{v.value}{',' if v is not enum.values[-1] else ''}  // {v.doc}"
        for v in enum.values
    ]
    return "\n".join([f"  // {enum.doc}", f"  typedef enum logic [{enum.bits - 1}:0] {{", *rows, f"  }} {name}_t;"])


def _field(field: Field) -> str:
    sign = "signed " if field.signed else ""
    return f"    logic {sign}[{field.bits - 1}:0] {_RENAMED.get(field.name, field.name)};  // {field.doc}"


def emit(frame: Frame) -> str:
    """The text of catchment_wire_pkg.sv."""
    numbers = {
        "Version": frame.version,
        "TaggedVersion": frame.tagged_version,
        "UdpPort": frame.udp_port,
        "HeaderBytes": frame.header_bytes,
        "EncapsulationBytes": frame.encapsulation.total,
        "BeatBits": frame.beat_bits,
        "LaneBits": frame.lane_bits,
        "DefaultLanes": frame.default_lanes,
        "MaxWorkers": frame.max_workers,
        "MaxParamBytes": frame.max_param_bytes,
    }
    envelope = frame.envelope
    fields = {
        "EthernetBytes": (16, frame.encapsulation.ethernet),
        "Ipv4Bytes": (16, frame.encapsulation.ipv4),
        "UdpBytes": (16, frame.encapsulation.udp),
        "EtherTypeIpv4": (16, envelope.ether_type_ipv4),
        "Ipv4FirstByte": (8, envelope.ipv4_first_byte),
        "Ipv4DontFragment": (16, envelope.ipv4_dont_fragment),
        "Ipv4Fragment": (16, envelope.ipv4_fragment),
        "Ipv4Hops": (8, envelope.ipv4_hops),
        "Ipv4ProtocolUdp": (8, envelope.ipv4_protocol_udp),
    }
    return "\n".join(
        [
            f"// {BANNER}",
            f"package {frame.name}_wire_pkg;",
            "",
            *[f"  localparam int unsigned {name} = {value};" for name, value in numbers.items()],
            "",
            "  // the headers before ours",
            *[
                f"  localparam logic [{bits - 1}:0] {name} = {bits}'h{value:0{bits // 4}x};"
                for name, (bits, value) in fields.items()
            ],
            "",
            *[_enum(e) + "\n" for e in frame.enums],
            "  // Most significant bit first, as on the wire.",
            "  typedef struct packed {",
            *[_field(f) for f in frame.fields],
            "  } header_t;",
            "",
            f"endpackage : {frame.name}_wire_pkg",
            "",
        ]
    )
