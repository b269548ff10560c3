"""P4 types as P4Info describes them, and the table of named types."""

from __future__ import annotations

from typing import Any

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.p4info.annotate import add_annotations
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    Field,
    FieldsType,
    HeaderType,
    IntType,
    NewTypeName,
    SerEnumType,
    StackType,
    StructType,
    TupleType,
    Type,
    UnionType,
    VarbitType,
    bit_width,
)
from catchment.wire.generated import p4types_pb2


def cp_name(name: str, annotations: tuple[ir.Annotation, ...]) -> str:
    """A declaration's control-plane name."""
    for annotation in annotations:
        if annotation.name == "name" and annotation.values:
            return str(annotation.values[0])
    return name


def newtype_of(type_: Type) -> NewTypeName | None:
    """The `type` declaration that `type_` was made by."""
    return type_.newtype if isinstance(type_, BitType | IntType | BoolType) else None


def runtime_width(type_: Type) -> int:
    """The width the control plane sees: the controller's for a translated type (0 for a string), else the type's
    own."""
    newtype = newtype_of(type_)
    if newtype is not None:
        for annotation in newtype.annotations:
            if annotation.name == "p4runtime_translation":
                return _translation(annotation)[1] or 0
    return max(bit_width(type_), 0)


def value_bytes(value: int, width: int) -> bytes:
    """A value as p4c writes it: big endian, padded to its width."""
    return (value & ((1 << width) - 1)).to_bytes(max(1, (width + 7) // 8), "big")


class TypeTable:
    """Converts types, and notes named ones in `info` (a P4TypeInfo)."""

    def __init__(self, info: Any, errors: tuple[str, ...]) -> None:
        self._info = info
        self._errors = errors

    def spec(self, type_: Type) -> Any:  # noqa: PLR0912 - one branch per kind of type
        """The P4DataTypeSpec of `type_`."""
        spec = p4types_pb2.P4DataTypeSpec()
        newtype = newtype_of(type_)
        if newtype is not None:
            self._note_newtype(newtype, type_)
            spec.new_type.name = newtype.name
        elif isinstance(type_, BitType):
            spec.bitstring.bit.bitwidth = type_.width
        elif isinstance(type_, IntType):
            spec.bitstring.int.bitwidth = type_.width
        elif isinstance(type_, VarbitType):
            spec.bitstring.varbit.max_bitwidth = type_.max_width
        elif isinstance(type_, BoolType):
            spec.bool.SetInParent()
        elif isinstance(type_, ErrorType):
            spec.error.SetInParent()
            self._note_errors()
        elif isinstance(type_, TupleType):
            spec.tuple.SetInParent()
            for element in type_.elements:
                spec.tuple.members.add().CopyFrom(self.spec(element))
        elif isinstance(type_, EnumType):
            spec.enum.name = self._note_enum(type_)
        elif isinstance(type_, SerEnumType):
            spec.serializable_enum.name = self._note_serializable(type_)
        elif isinstance(type_, HeaderType):
            spec.header.name = self._note_header(type_)
        elif isinstance(type_, UnionType):
            spec.header_union.name = self._note_union(type_)
        elif isinstance(type_, StructType):
            spec.struct.name = self._note_struct(type_)
        elif isinstance(type_, StackType):
            self._stack(spec, type_)
        return spec

    def _stack(self, spec: Any, type_: StackType) -> None:
        if isinstance(type_.element, HeaderType):
            spec.header_stack.header.name = self._note_header(type_.element)
            spec.header_stack.size = type_.size
        elif isinstance(type_.element, UnionType):
            spec.header_union_stack.header_union.name = self._note_union(type_.element)
            spec.header_union_stack.size = type_.size

    def _note_newtype(self, newtype: NewTypeName, type_: Type) -> None:
        if newtype.name in self._info.new_types:
            return
        entry = self._info.new_types[newtype.name]
        add_annotations(entry, newtype.annotations, frozenset(("p4runtime_translation",)))
        translation = next((a for a in newtype.annotations if a.name == "p4runtime_translation"), None)
        if translation is None:
            entry.original_type.CopyFrom(self.spec(_plain(type_)))
            return
        uri, controller = _translation(translation)
        entry.translated_type.uri = uri
        if controller is None:
            entry.translated_type.sdn_string.SetInParent()
        else:
            entry.translated_type.sdn_bitwidth = controller

    def _note_errors(self) -> None:
        if not self._info.HasField("error"):
            self._info.error.members.extend(self._errors)

    def _note_enum(self, type_: EnumType) -> str:
        name = cp_name(type_.name, type_.annotations)
        if name not in self._info.enums:
            entry = self._info.enums[name]
            for member in type_.members:
                entry.members.add().name = member
        return name

    def _note_serializable(self, type_: SerEnumType) -> str:
        name = cp_name(type_.name, type_.annotations)
        if name not in self._info.serializable_enums:
            entry = self._info.serializable_enums[name]
            width = type_.underlying.width
            entry.underlying_type.bitwidth = width
            for member, value in type_.members:
                entry.members.add(name=member, value=value_bytes(value, width))
        return name

    def _note_header(self, type_: HeaderType) -> str:
        name = cp_name(type_.name, type_.annotations)
        if name not in self._info.headers:
            members = [(n, self.spec(f.type).bitstring) for n, f in flat_fields(type_)]
            entry = self._info.headers[name]
            for member, bits in members:
                entry.members.add(name=member, type_spec=bits)
        return name

    def _note_union(self, type_: UnionType) -> str:
        name = cp_name(type_.name, type_.annotations)
        if name not in self._info.header_unions:
            members = [(cp_name(f.name, f.annotations), self.spec(f.type).header) for f in type_.fields]
            entry = self._info.header_unions[name]
            for member, header in members:
                entry.members.add(name=member, header=header)
        return name

    def _note_struct(self, type_: StructType) -> str:
        name = cp_name(type_.name, type_.annotations)
        if name not in self._info.structs:
            members = [(cp_name(f.name, f.annotations), self.spec(f.type)) for f in type_.fields]
            entry = self._info.structs[name]
            for member, spec in members:
                entry.members.add(name=member, type_spec=spec)
        return name


def flat_fields(type_: FieldsType, prefix: str = "") -> list[tuple[str, Field]]:
    """The scalar fields of a header with their dotted control-plane names."""
    result: list[tuple[str, Field]] = []
    for field in type_.fields:
        if isinstance(field.type, FieldsType):
            result += flat_fields(field.type, f"{prefix}{field.name}.")
        else:
            result.append((prefix + cp_name(field.name, field.annotations), field))
    return result


def _plain(type_: Type) -> Type:
    """What a chain of `type` declarations ends in."""
    if isinstance(type_, BitType):
        return BitType(type_.width)
    return IntType(type_.width) if isinstance(type_, IntType) else BoolType()


def _translation(annotation: ir.Annotation) -> tuple[str, int | None]:
    """The URI and the controller's width, None for a string, of `@p4runtime_translation(uri, type)`."""
    words = annotation.text.split()
    uri = words[0].strip('"') if words else ""
    numbers = [int(w) for w in words[1:] if w.isdigit()]
    return uri, numbers[0] if numbers else None
