"""Scapy: the header as a layer bound to our UDP port, and the vector behind it."""

from __future__ import annotations

from catchment.wire.emit.layout import BANNER
from catchment.wire.frame import Enumeration, Field, Frame


def _choices(enum: Enumeration) -> str:
    return "{" + ", ".join(f'{v.value}: "{v.name}"' for v in enum.values) + "}"


def _flag_names(enum: Enumeration) -> str:
    names = []
    for bit in range(enum.bits):
        named = [v.name for v in enum.values if v.value == 1 << bit]
        names.append(named[0] if named else f"bit{bit}")
    return repr(names).replace("'", '"')


def _field(frame: Frame, field: Field) -> str:
    if field.name == "version":
        return f'BitField("version", {frame.version}, {field.bits})'
    if field.enum is not None:
        enum = frame.enum(field.enum)
        if enum.flags:
            return f'FlagsField("{field.name}", 0, {field.bits}, {_flag_names(enum)})'
        return f'BitEnumField("{field.name}", {enum.values[0].value}, {field.bits}, {_choices(enum)})'
    kind = {
        (8, False): "ByteField",
        (8, True): "SignedByteField",
        (16, False): "ShortField",
        (32, False): "IntField",
    }[(field.bits, field.signed)]
    return f'{kind}("{field.name}", 0)'


def emit(frame: Frame) -> str:
    """The text of scapy_layers.py."""
    vectors = [v.value for v in frame.enum("PacketType").values if v.name in ("PA", "FA")]
    return "\n".join(
        [
            f'"""{BANNER}"""',
            "",
            "from scapy.fields import (",
            "    BitEnumField,",
            "    BitField,",
            "    ByteField,",
            "    FieldListField,",
            "    FlagsField,",
            "    IntField,",
            "    ShortField,",
            "    SignedByteField,",
            "    SignedIntField,",
            ")",
            "from scapy.layers.inet import UDP",
            "from scapy.packet import Packet, bind_layers",
            "",
            "",
            "class Lanes(Packet):",
            '    """The vector of a PA or FA: `lanes` signed 32-bit values."""',
            "",
            '    name = "Lanes"',
            "    fields_desc = [",
            "        FieldListField(",
            '            "values",',
            "            [],",
            '            SignedIntField("value", 0),',
            "            count_from=lambda packet: packet.underlayer.lanes if packet.underlayer else 0,",
            "        )",
            "    ]",
            "",
            "    def extract_padding(self, data):",
            "        return b'', data",
            "",
            "",
            "class Catchment(Packet):",
            '    """The header of every frame of the protocol."""',
            "",
            f'    name = "{frame.name.capitalize()}"',
            "    fields_desc = [",
            *[f"        {_field(frame, f)}," for f in frame.fields],
            "    ]",
            "",
            "    def guess_payload_class(self, payload):",
            f"        if self.type in {tuple(vectors)!r} and len(payload) >= {frame.lane_bits // 8} * self.lanes > 0:",
            "            return Lanes",
            "        return Packet.guess_payload_class(self, payload)",
            "",
            "",
            f"bind_layers(UDP, Catchment, dport={frame.udp_port})",
            "",
        ]
    )
