"""Values of structured types, as digests carry them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catchment.controlplane.client.errors import SwitchError
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.values import Value, decode, from_data, readable

Data = Value | tuple["Data", ...] | Mapping[str, "Data"]
"""A number or an address, a tuple, or the fields of a struct by name."""


def structured(data: Any, spec: Any, p4info: P4Info, name: str) -> Data:
    """The readable value of a `p4.v1.P4Data`.

    Args:
        data: the message.
        spec: its `P4DataTypeSpec`.
        p4info: of the program, which has the types that a spec names.
        name: of the field, which says whether 32 bits are an IPv4 address.

    Raises:
        SwitchError: a type that P4Info does not describe, or of which digests have none (stacks, unions).
    """
    types = p4info.message.type_info
    match spec.WhichOneof("type_spec"):
        case "bitstring":
            return readable(from_data(data, spec), spec.bitstring.bit.bitwidth, name)
        case "bool" | "serializable_enum":
            return from_data(data, spec)
        case "struct":
            members = types.structs[spec.struct.name].members
            return {
                member.name: structured(found, member.type_spec, p4info, member.name)
                for member, found in zip(members, data.struct.members, strict=True)
            }
        case "tuple":
            return tuple(
                structured(found, one, p4info, name)
                for one, found in zip(spec.tuple.members, data.tuple.members, strict=True)
            )
        case "header":
            members = types.headers[spec.header.name].members
            return {
                member.name: readable(decode(found), member.type_spec.bit.bitwidth, member.name)
                for member, found in zip(members, data.header.bitstrings, strict=True)
            }
        case "new_type":
            new_type = types.new_types[spec.new_type.name]
            if new_type.HasField("original_type"):
                return structured(data, new_type.original_type, p4info, name)
            return decode(data.bitstring)
        case kind:
            raise SwitchError(f"{name}: data of type {kind or 'unknown'} are not supported")
