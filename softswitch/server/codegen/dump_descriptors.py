"""Writes the FileDescriptorSet of P4Runtime and of role configs, out of the generated Python modules.

wire/generated/ and `googleapis-common-protos` carry the serialized descriptors of every message we need, so no `.proto`
file is vendored: `protoc --descriptor_set_in=OUTPUT` generates the C++ from them. Debian's protoc (3.21) reads
exactly the same wire format.
"""

from __future__ import annotations

from pathlib import Path

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from catchment.program import run_program
from catchment.wire.generated import p4runtime_pb2, role_config_pb2


def with_dependencies(*roots: FileDescriptor) -> FileDescriptorSet:
    """Returns some files and everything that they import, dependencies first (the order protoc asks for)."""
    result = FileDescriptorSet()
    seen: set[str] = set()

    def visit(file: FileDescriptor) -> None:
        if file.name in seen:
            return
        seen.add(file.name)
        for dependency in file.dependencies:
            visit(dependency)
        file.CopyToProto(result.file.add())

    for root in roots:
        visit(root)
    return result


def main(output: Path) -> None:
    """Write the FileDescriptorSet to OUTPUT, which is left alone when it is already right."""
    files = with_dependencies(p4runtime_pb2.DESCRIPTOR, role_config_pb2.DESCRIPTOR)
    content = files.SerializeToString(deterministic=True)
    if not output.exists() or output.read_bytes() != content:
        output.write_bytes(content)


if __name__ == "__main__":
    run_program(main)
