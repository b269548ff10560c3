"""Wireshark: a Lua dissector that shows every field and the vector."""

from __future__ import annotations

from catchment.wire.emit.layout import BANNER, byte_groups
from catchment.wire.frame import Enumeration, Field, Frame


def _names(enum: Enumeration) -> str:
    return "{ " + ", ".join(f'[{v.value}] = "{v.name}"' for v in enum.values) + " }"


def _proto_field(frame: Frame, field: Field, group: list[Field]) -> str:
    path = f"{frame.name}.{field.name}"
    bits = sum(f.bits for f in group)
    kind = f"{'int' if field.signed else 'uint'}{bits}"
    names, mask, base = "nil", "nil", "base.DEC"
    if field.enum is not None:
        enum = frame.enum(field.enum)
        if enum.flags:
            base = "base.HEX"
        else:
            names = _names(enum)
    if len(group) > 1:
        shift = bits - (field.offset - group[0].offset) - field.bits
        mask = f"{((1 << field.bits) - 1) << shift:#x}"
    return f'f.{field.name} = ProtoField.{kind}("{path}", "{field.name}", {base}, {names}, {mask}, "{field.doc}")'


def _flag_field(frame: Frame, enum: Enumeration) -> list[str]:
    return [
        f'f.flag_{v.name.lower()} = ProtoField.bool("{frame.name}.flags.{v.name.lower()}", "{v.name}", '
        f'{enum.bits}, nil, {v.value:#x}, "{v.doc}")'
        for v in enum.values
    ]


def emit(frame: Frame) -> str:
    """The text of catchment.lua."""
    groups = byte_groups(frame)
    flags = frame.enum("Flag")
    adds: list[str] = []
    for first, group in groups:
        size = sum(f.bits for f in group) // 8
        for field in group:
            target = "local flags = tree" if field.enum == "Flag" else "tree"
            adds.append(f"  {target}:add(f.{field.name}, buffer({first}, {size}))")
            if field.enum == "Flag":
                adds += [f"  flags:add(f.flag_{v.name.lower()}, buffer({first}, {size}))" for v in flags.values]
    offset = {f.name: f.offset // 8 for f in frame.fields}
    types = {v.name: v.value for v in frame.enum("PacketType").values}
    lane = frame.lane_bits // 8
    return "\n".join(
        [
            f"-- {BANNER}",
            "-- Copy into Wireshark's personal Lua plugins folder, or: tshark -X lua_script:catchment.lua",
            f'local proto = Proto("{frame.name}", "Catchment in-network aggregation")',
            f"local types = {_names(frame.enum('PacketType'))}",
            "local f = proto.fields",
            *[_proto_field(frame, field, group) for _, group in groups for field in group],
            *_flag_field(frame, flags),
            f'f.value = ProtoField.int32("{frame.name}.value", "value", base.DEC)',
            f'f.data = ProtoField.bytes("{frame.name}.data", "data")',
            f'local bad_length = ProtoExpert.new("{frame.name}.bad_length", "payload length disagrees with lanes", '
            "expert.group.MALFORMED, expert.severity.ERROR)",
            "proto.experts = { bad_length }",
            "",
            "function proto.dissector(buffer, pinfo, root)",
            f"  if buffer:len() < {frame.header_bytes} then return 0 end",
            "  pinfo.cols.protocol = proto.name",
            "  local tree = root:add(proto, buffer())",
            *adds,
            f"  local kind = buffer({offset['version']}, 1):uint() % 16",
            f"  local lanes = buffer({offset['lanes']}, 2):uint()",
            f"  local payload = buffer:len() - {frame.header_bytes}",
            '  local text = string.format("%s gen %d seq %d", types[kind] or "unknown type", '
            f"buffer({offset['gen']}, 2):uint(), buffer({offset['seq']}, 4):uint())",
            "  pinfo.cols.info = text",
            '  tree:append_text(", " .. text)',
            f"  local vector = kind == {types['PA']} or kind == {types['FA']}",
            f"  local expected = vector and {lane} * lanes or (kind == {types['PARAM']} and lanes or 0)",
            "  if payload ~= expected then tree:add_proto_expert_info(bad_length) end",
            "  if vector then",
            f"    local last = math.min(lanes, math.floor(payload / {lane})) - 1",
            f"    for i = 0, last do tree:add(f.value, buffer({frame.header_bytes} + {lane} * i, {lane})) end",
            "  elseif payload > 0 then",
            f"    tree:add(f.data, buffer({frame.header_bytes}, payload))",
            "  end",
            "  return buffer:len()",
            "end",
            "",
            f'DissectorTable.get("udp.port"):add("{frame.udp_port}-{frame.udp_port + frame.udp_ports - 1}", proto)',
            "",
        ]
    )
