"""The messages of Chakra's schema that are read and written here, from their field numbers."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "double": _FIELD.TYPE_DOUBLE, "float": _FIELD.TYPE_FLOAT, "int32": _FIELD.TYPE_INT32, "int64": _FIELD.TYPE_INT64,
    "uint32": _FIELD.TYPE_UINT32, "uint64": _FIELD.TYPE_UINT64, "sint32": _FIELD.TYPE_SINT32,
    "sint64": _FIELD.TYPE_SINT64, "bool": _FIELD.TYPE_BOOL, "string": _FIELD.TYPE_STRING, "bytes": _FIELD.TYPE_BYTES,
}  # fmt: skip
VALUES = {
    "double_val": ("double", 3), "float_val": ("float", 5), "int32_val": ("int32", 7), "int64_val": ("int64", 9),
    "uint32_val": ("uint32", 11), "uint64_val": ("uint64", 13), "sint32_val": ("sint32", 15),
    "sint64_val": ("sint64", 17), "bool_val": ("bool", 27), "string_val": ("string", 29), "bytes_val": ("bytes", 31),
}  # fmt: skip
"""An attribute's value: field -> type and number. Lists are not needed here."""
_MESSAGES: dict[str, dict[str, tuple[str, int]]] = {
    "AttributeProto": {"name": ("string", 1), **VALUES},
    "GlobalMetadata": {"version": ("string", 1), "attr": ("*AttributeProto", 2)},
    "Node": {
        "id": ("uint64", 1), "name": ("string", 2), "type": ("int32", 3), "ctrl_deps": ("*uint64", 4),
        "data_deps": ("*uint64", 5), "start_time_micros": ("uint64", 6), "duration_micros": ("uint64", 7),
        "attr": ("*AttributeProto", 10),
    },
}  # fmt: skip
"""Message -> field -> type (with a star: repeated) and number."""
_PACKAGE = "ChakraProtoMsg"


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="chakra.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "AttributeProto":
            message.oneof_decl.add(name="value")
        for field, (kind, number) in fields.items():
            made = message.field.add(name=field, number=number, label=_FIELD.LABEL_OPTIONAL)
            if kind.startswith("*"):
                made.label = _FIELD.LABEL_REPEATED
            single = kind.removeprefix("*")
            if single in _SCALARS:
                made.type = _SCALARS[single]
            else:
                made.type, made.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{single}"
            if field in VALUES:
                made.oneof_index = 0
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


GlobalMetadata, Node = _message("GlobalMetadata"), _message("Node")
