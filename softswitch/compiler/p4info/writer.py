"""The P4Info of a program: equal to p4c's in names, ids, structure and annotations."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostic
from catchment.softswitch.compiler.p4info.annotate import add_annotations, add_documentation, is_hidden, set_preamble
from catchment.softswitch.compiler.p4info.externs import (
    add_extern,
    add_profile_tables,
    extern_kind,
    sort_profile_tables,
)
from catchment.softswitch.compiler.p4info.symbols import IdKind, SymbolTable, field_ids
from catchment.softswitch.compiler.p4info.typespec import (
    TypeTable,
    cp_name,
    flat_fields,
    newtype_of,
    runtime_width,
    value_bytes,
)
from catchment.softswitch.compiler.p4info.visible import action_name, digest_name, visible
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    HeaderType,
    IntType,
    SerEnumType,
    StructType,
    TupleType,
    bit_width,
)
from catchment.wire.generated import p4info_pb2

DEFAULT_TABLE_SIZE = 1024
_MATCH_TYPES = {"exact": "EXACT", "lpm": "LPM", "ternary": "TERNARY", "range": "RANGE", "optional": "OPTIONAL"}
_PACKAGE_KEYS = ("name", "version", "organization", "contact", "url", "arch")


class P4InfoWriter:
    """Writes one program's P4Info."""

    def __init__(self, program: ir.Program, *, unique_names: bool) -> None:
        self._program = program
        self._unique_names = unique_names
        self._info = p4info_pb2.P4Info()
        self._types = TypeTable(self._info.type_info, program.errors)
        self._symbols = SymbolTable()
        self._visible = [visible(block, unique_names=unique_names) for block in program.pipeline.values()]
        self._digests: dict[str, Any] = {}
        self._owners: dict[tuple[str, str], object] = {}

    def write(self) -> Any:
        """The P4Info message."""
        self._collect()
        self._package()
        done: set[str] = set()
        for extern in self._program.global_externs.values():
            add_extern(self._info, self._symbols, self._types, extern)
        for seen in self._visible:
            for name, (action, with_data) in seen.actions.items():
                self._action(action, name, with_data, done)
            for name, value_set in seen.value_sets:
                self._value_set(name, value_set)
            for extern in seen.externs:
                add_extern(self._info, self._symbols, self._types, extern)
            for instance, table in seen.tables:
                self._table(instance, table)
            for type_ in seen.digests:
                self._digest(type_)
        sort_profile_tables(self._info)
        self._controller_headers()
        self._keep_type_info()
        return self._info

    def _keep_type_info(self) -> None:
        """p4c writes `type_info`, if only an empty one, once it has met anything that could have a named type."""
        touched = any(s.tables or s.externs or s.calls_externs for s in self._visible) or self._program.global_externs
        if touched or any(a.params for a in self._info.actions) or self._info.controller_packet_metadata:
            self._info.type_info.SetInParent()

    # names

    def _collect(self) -> None:
        for extern in self._program.global_externs.values():
            self._add_extern(extern)
        for seen in self._visible:
            for name, (action, _) in seen.actions.items():
                self._symbols.add(IdKind.ACTION, name, action.annotations, action.loc)
                self._refuse_clash("action", name, action)
            for extern in seen.externs:
                self._add_extern(extern)
            for instance, table in seen.tables:
                name = ir.full_name(instance.path, table.cp_name)
                self._symbols.add(IdKind.TABLE, name, table.annotations, table.loc)
                self._refuse_clash("table", name, (instance, table))
            for name, value_set in seen.value_sets:
                self._symbols.add(IdKind.VALUE_SET, name, value_set.annotations, value_set.loc)
            for type_ in seen.digests:
                self._symbols.add(IdKind.DIGEST, digest_name(type_))
        for header in self._controller_types():
            name = cp_name(header.name, header.annotations)
            self._symbols.add(IdKind.CONTROLLER_HEADER, name, header.annotations)
        self._symbols.freeze()

    def _refuse_clash(self, what: str, name: str, owner: object) -> None:
        """Two declarations cannot go by one name."""
        other = self._owners.setdefault((what, name), owner)
        if other != owner and self._unique_names:
            decl = owner[1] if isinstance(owner, tuple) else owner
            assert isinstance(decl, ir.Action | ir.Table), "only actions and tables are checked"
            if isinstance(decl, ir.Table) or not isinstance(other, ir.Action) or decl.loc != other.loc:
                raise self._clash(what, name, decl.loc)

    @staticmethod
    def _clash(what: str, name: str, loc: Location) -> CompileError:
        return CompileError([Diagnostic(loc, f"{name}: conflicting control plane name of this {what}")])

    def _add_extern(self, extern: ir.ExternInstance) -> None:
        kind = extern_kind(extern)
        if kind is None:
            return
        self._symbols.add(kind, extern.full_name, extern.decl.annotations, extern.decl.loc)
        what = kind.name.lower().replace("_", " ")
        if self._owners.setdefault((what, extern.full_name), extern) is not extern and self._unique_names:
            raise self._clash(what, extern.full_name, extern.decl.loc)

    def _controller_types(self) -> list[HeaderType]:
        return [h for h in self._program.headers if any(a.name == "controller_header" for a in h.annotations)]

    # messages

    def _package(self) -> None:
        package = self._info.pkg_info
        package.arch = self._program.architecture
        skip = frozenset(("pkginfo", "platform_property"))
        for annotation in self._program.annotations:
            for key, value in annotation.pairs:
                if annotation.name == "pkginfo" and key in _PACKAGE_KEYS:
                    setattr(package, key, str(value))
                elif annotation.name == "platform_property":
                    setattr(package.platform_properties, key, int(value))
        rest = tuple(a for a in self._program.annotations if a.name not in skip)
        add_annotations(package, rest)
        add_documentation(package, rest)

    def _action(self, action: ir.Action, name: str, with_data: bool, done: set[str]) -> None:
        if is_hidden(action.annotations) or name in done:
            return
        done.add(name)
        message = self._info.actions.add()
        id_ = self._symbols.id(IdKind.ACTION, name)
        set_preamble(
            message.preamble, id_=id_, name=name, alias=self._symbols.alias(name), annotations=action.annotations
        )
        params = action.data if with_data else ()
        ids = field_ids([p.annotations for p in params], name, action.loc)
        for param, param_id in zip(params, ids, strict=True):
            entry = message.params.add(id=param_id, name=cp_name(param.name, param.annotations))
            add_annotations(entry, param.annotations)
            add_documentation(entry, param.annotations)
            if not isinstance(param.type, EnumType):
                entry.bitwidth = runtime_width(param.type)
            self._type_name(entry, param.type)

    def _type_name(self, message: Any, type_: Any) -> None:
        """Notes a field's named type in the type table, and names it in the message."""
        self._types.spec(type_)
        newtype = newtype_of(type_)
        if newtype is not None:
            message.type_name.name = newtype.name
        elif isinstance(type_, EnumType):
            message.type_name.name = cp_name(type_.name, type_.annotations)

    def _table(self, instance: ir.Instance, table: ir.Table) -> None:
        if is_hidden(table.annotations):
            return
        name = ir.full_name(instance.path, table.cp_name)
        message = self._info.tables.add()
        id_ = self._symbols.id(IdKind.TABLE, name)
        set_preamble(
            message.preamble, id_=id_, name=name, alias=self._symbols.alias(name), annotations=table.annotations
        )
        message.size = table.size or DEFAULT_TABLE_SIZE
        self._default(instance, table, message)
        for choice in table.actions:
            ref = message.action_refs.add(id=self._symbols.id(IdKind.ACTION, action_name(instance, choice.action)))
            add_annotations(ref, choice.annotations)
            if choice.table_only:
                ref.scope = ref.TABLE_ONLY
            elif choice.default_only:
                ref.scope = ref.DEFAULT_ONLY
        self._keys(table, message)
        message.is_const_table = table.const_entries
        message.has_initial_entries = bool(table.entries)
        for resource, kind in ((table.counters, IdKind.DIRECT_COUNTER), (table.meters, IdKind.DIRECT_METER)):
            if resource is not None:
                full = self._extern(instance, resource).full_name
                message.direct_resource_ids.append(self._symbols.id(kind, full))
                add_extern(self._info, self._symbols, self._types, self._extern(instance, resource), id_)
        if table.implementation is not None:
            profile = self._symbols.id(IdKind.ACTION_PROFILE, self._extern(instance, table.implementation).full_name)
            message.implementation_id = profile
            add_profile_tables(self._info, profile, id_)
        if table.support_timeout:
            message.idle_timeout_behavior = message.NOTIFY_CONTROL

    def _extern(self, instance: ir.Instance, decl: ir.InstanceDecl) -> ir.ExternInstance:
        if decl.is_global:
            return self._program.global_externs[decl.name]
        child = instance.children[decl.name]
        assert isinstance(child, ir.ExternInstance), "a table's objects are externs"
        return child

    def _default(self, instance: ir.Instance, table: ir.Table, message: Any) -> None:
        default = table.default_action
        action = default.choice.action
        id_ = self._symbols.id(IdKind.ACTION, action_name(instance, action))
        if table.const_default:
            message.const_default_action_id = id_
        message.initial_default_action.action_id = id_
        ids = field_ids([p.annotations for p in action.data], table.name, table.loc)
        for param, param_id, value in zip(action.data, ids, default.data, strict=True):
            if isinstance(value, ir.Literal) and not isinstance(value.value, str):
                encoded = value_bytes(int(value.value), bit_width(param.type))
                message.initial_default_action.arguments.add(param_id=param_id, value=encoded)

    def _keys(self, table: ir.Table, message: Any) -> None:
        ids = field_ids([k.annotations for k in table.keys], table.name, table.loc)
        for key, id_ in zip(table.keys, ids, strict=True):
            if key.kind == "selector":
                continue
            entry = message.match_fields.add(id=id_, name=key.name)
            add_annotations(entry, key.annotations)
            add_documentation(entry, key.annotations)
            entry.bitwidth = runtime_width(key.expr.type)
            entry.match_type = entry.MatchType.Value(_MATCH_TYPES[key.kind])
            self._types.spec(key.expr.type)
            newtype = newtype_of(key.expr.type)
            if newtype is not None:
                entry.type_name.name = newtype.name

    def _value_set(self, name: str, value_set: ir.ValueSet) -> None:
        message = self._info.value_sets.add(size=value_set.size)
        set_preamble(
            message.preamble,
            id_=self._symbols.id(IdKind.VALUE_SET, name),
            name=name,
            alias=self._symbols.alias(name),
            annotations=value_set.annotations,
        )
        element = value_set.element
        if isinstance(element, StructType):
            ids = field_ids([f.annotations for f in element.fields], name, value_set.loc)
            for field, field_id in zip(element.fields, ids, strict=True):
                match = message.match.add(id=field_id, name=cp_name(field.name, field.annotations))
                match.bitwidth = runtime_width(field.type)
                kind = next((a.text for a in field.annotations if a.name == "match"), "exact")
                match.match_type = match.MatchType.Value(_MATCH_TYPES.get(kind, "EXACT"))
                add_annotations(match, field.annotations, frozenset(("match",)))
                add_documentation(match, field.annotations)
        elif isinstance(element, TupleType):
            for index, part in enumerate(element.elements):
                match = message.match.add(id=index + 1, name=f"f{index}", bitwidth=runtime_width(part))
                match.match_type = match.EXACT
        elif isinstance(element, BitType | IntType | BoolType | SerEnumType):
            match = message.match.add(id=1, bitwidth=bit_width(element))
            match.match_type = match.EXACT

    def _digest(self, type_: Any) -> None:
        name = digest_name(type_)
        if name in self._digests:
            return
        message = self._digests[name] = self._info.digests.add()
        set_preamble(
            message.preamble,
            id_=self._symbols.id(IdKind.DIGEST, name),
            name=name,
            alias=self._symbols.alias(name),
            annotations=(),
        )
        message.type_spec.CopyFrom(self._types.spec(type_))

    def _controller_headers(self) -> None:
        for header in self._controller_types():
            if is_hidden(header.annotations):
                continue
            shown = next(str(a.values[0]) for a in header.annotations if a.name == "controller_header" and a.values)
            id_ = self._symbols.id(IdKind.CONTROLLER_HEADER, cp_name(header.name, header.annotations))
            message = self._info.controller_packet_metadata.add()
            set_preamble(message.preamble, id_=id_, name=shown, alias=shown, annotations=header.annotations)
            fields = flat_fields(header)
            ids = field_ids([f.annotations for _, f in fields], shown, self._program.units[0].loc)
            for (name, field), field_id in zip(fields, ids, strict=True):
                if is_hidden(field.annotations):
                    continue
                metadata = message.metadata.add(id=field_id, name=name, bitwidth=runtime_width(field.type))
                add_annotations(metadata, field.annotations)
                self._types.spec(field.type)
                newtype = newtype_of(field.type)
                if newtype is not None:
                    metadata.type_name.name = newtype.name


def to_text(info: Any) -> str:
    """P4Info in protobuf's text format, headed as p4c heads it."""
    head = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n"
    body: str = text_format.MessageToString(info)
    return head + body
