"""Names of a P4 program (tables, actions, counters, registers) from its P4Info."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from catchment.controlplane.client.errors import SwitchError
from catchment.wire.generated import p4info_pb2, p4types_pb2

BINARY: Final = ".bin"
_MOST_TOLD: Final = 24
"""Names that an error lists; luwu.p4 has a register for each lane, hundreds of them."""


class P4Info:
    """Look-up by name (any suffix that is unique, as `jobs` for `ingress.jobs`) or by id."""

    def __init__(self, message: Any, source: str = "the switch") -> None:
        self.message = message
        self.source = source
        self.shapes: dict[tuple[Any, ...], Any] = {}  # of table entries; encoding.py keeps them here
        self._kinds: dict[str, dict[str, Any]] = {
            "table": _by_name(message.tables),
            "action": _by_name(message.actions),
            "counter": _by_name(message.counters),
            "direct counter": _by_name(message.direct_counters),
            "register": _by_name(message.registers),
            "meter": _by_name(message.meters),
            "direct meter": _by_name(message.direct_meters),
            "action profile": _by_name(message.action_profiles),
            "value set": _by_name(message.value_sets),
            "digest": _by_name(message.digests),
            "controller header": _by_name(message.controller_packet_metadata),
        }
        self._counted = {counter.direct_table_id for counter in message.direct_counters}
        self._metered = {meter.direct_table_id for meter in message.direct_meters}
        self._found: dict[tuple[str | int, str], Any] = {}
        self._by_id = {entry.preamble.id: entry for kind in self._kinds.values() for entry in kind.values()}

    @classmethod
    def load(cls, path: Path) -> P4Info:
        """Read a P4Info file: binary where its name ends in ``.bin``, otherwise text.

        Raises:
            SwitchError: the file is missing or is not P4Info.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise SwitchError(
                f"cannot read P4Info {path}: {error.strerror}; compile the program first with `catchment p4 compile`"
            ) from None
        message = p4info_pb2.P4Info()
        try:
            if path.suffix == BINARY:
                message.ParseFromString(content)
            else:
                text_format.Parse(content, message, allow_unknown_field=True)
        except (text_format.ParseError, DecodeError, UnicodeDecodeError) as error:
            kind = "binary P4Info" if path.suffix == BINARY else "P4Info text"
            raise SwitchError(f"{path}: not {kind}: {error}") from None
        return cls(message, str(path))

    def actions_of(self, table: Any) -> dict[str, Any]:
        """The actions that a table takes, by their shortest names in it."""
        return {self.action_name(table, full): self._kinds["action"][full] for full in self._actions_of(table)}

    def names(self, kind: str) -> list[str]:
        """Full names of everything of one kind, sorted."""
        return sorted(self._kinds[kind])

    def find(self, kind: str, name: str) -> Any:
        """The P4Info object of a kind by full name or unique suffix.

        Raises:
            SwitchError: there is none, or several match; names the candidates.
        """
        found = self._found.get((kind, name))
        if found is None:
            found = self._kinds[kind][_resolve(name, self._kinds[kind], kind, f"in {self.source}")]
            self._found[kind, name] = found
        return found

    def find_action(self, table: Any, name: str) -> Any:
        """An action of one table; two tables may each have an action of the same short name.

        Args:
            table: the table's P4Info.
            name: full name or a suffix that is unique in this table.

        Raises:
            SwitchError: the table does not take it; names those that it takes.
        """
        found = self._found.get((table.preamble.id, name))
        if found is None:
            where = f"in table {self.short_name('table', table.preamble.name)}"
            found = self._kinds["action"][_resolve(name, self._actions_of(table), "action", where)]
            self._found[table.preamble.id, name] = found
        return found

    def action_name(self, table: Any, full: str) -> str:
        """The shortest name of an action that is unique in its table."""
        return _shortest(full, self._actions_of(table))

    def _actions_of(self, table: Any) -> list[str]:
        return [self.by_id(reference.id).preamble.name for reference in table.action_refs]

    def is_counted(self, table: Any) -> bool:
        """Whether the entries of a table have direct counters."""
        return table.preamble.id in self._counted

    def is_metered(self, table: Any) -> bool:
        """Whether the entries of a table have direct meters."""
        return table.preamble.id in self._metered

    def controller_header(self, name: str) -> Sequence[Any]:
        """The fields of ``packet_in`` or ``packet_out``, as P4Info; none where the program has no such header."""
        found = self._kinds["controller header"].get(name)
        return found.metadata if found is not None else ()

    def plain_type(self, spec: Any) -> Any:
        """What a `P4DataTypeSpec` is made of, below `type` declarations; of a translated type the bits sent."""
        while spec.HasField("new_type"):
            declared = self.message.type_info.new_types[spec.new_type.name]
            if not declared.HasField("original_type"):
                translated = p4types_pb2.P4DataTypeSpec()
                translated.bitstring.bit.bitwidth = declared.translated_type.sdn_bitwidth
                return translated
            spec = declared.original_type
        return spec

    def has(self, kind: str, name: str) -> bool:
        """Whether the program has exactly one such object."""
        try:
            self.find(kind, name)
        except SwitchError:
            return False
        return True

    def by_id(self, identifier: int) -> Any:
        """The object with a P4Info id.

        Raises:
            SwitchError: unknown id: the switch runs another program than this P4Info describes.
        """
        try:
            return self._by_id[identifier]
        except KeyError:
            raise SwitchError(
                f"id {identifier:#010x} is not in {self.source}; the switch runs another program"
            ) from None

    def short_name(self, kind: str, full: str) -> str:
        """The shortest suffix of a name that is unique among its kind."""
        return _shortest(full, self._kinds[kind])


def _by_name(objects: Iterable[Any]) -> dict[str, Any]:
    return {entry.preamble.name: entry for entry in objects}


def _matches(full: str, suffix: str) -> bool:
    return full == suffix or full.endswith(f".{suffix}")


def _resolve(name: str, names: Iterable[str], kind: str, where: str) -> str:
    names = list(names)
    if name in names:
        return name
    matches = [full for full in names if _matches(full, name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise SwitchError(f"{kind} {name!r} is ambiguous {where}: {', '.join(sorted(matches))}")
    raise SwitchError(f"no {kind} {name!r} {where}; {_told(name, sorted(names))}")


def _told(name: str, names: list[str]) -> str:
    """What there is: all names, or of more than anybody reads those that resemble `name`."""
    if len(names) <= _MOST_TOLD:
        return f"there are: {', '.join(names) or 'none'}"
    wanted = name.rpartition(".")[2]
    near = get_close_matches(wanted, {full.rpartition(".")[2] for full in names})
    shown = [full for full in names if full.rpartition(".")[2] in near][:_MOST_TOLD]
    if not shown:
        return f"there are {len(names)}, from {names[0]} to {names[-1]}"
    return f"there are {len(names)}; the nearest: {', '.join(shown)}"


def _shortest(full: str, names: Iterable[str]) -> str:
    names = list(names)
    parts = full.split(".")
    for count in range(1, len(parts)):
        suffix = ".".join(parts[-count:])
        if sum(_matches(name, suffix) for name in names) == 1:
            return suffix
    return full
