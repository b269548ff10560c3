"""Names, ids and aliases of what the control plane sees.

An id is the kind's 8-bit prefix and 24 bits of the full name's hash, counted up while taken; names are served in sorted
order, so the outcome does not depend on the program's order. `@id` wins.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostic
from catchment.softswitch.compiler.p4info.jenkins import one_at_a_time
from catchment.softswitch.compiler.source import Location

_HASH_MASK = 0xFFFFFF


class IdKind(IntEnum):
    """The prefixes of P4Runtime ids."""

    ACTION = 0x01
    TABLE = 0x02
    VALUE_SET = 0x03
    CONTROLLER_HEADER = 0x04
    ACTION_PROFILE = 0x11
    COUNTER = 0x12
    DIRECT_COUNTER = 0x13
    METER = 0x14
    DIRECT_METER = 0x15
    REGISTER = 0x16
    DIGEST = 0x17


def id_annotation(annotations: tuple[ir.Annotation, ...]) -> int | None:
    """What `@id(n)` says."""
    for annotation in annotations:
        if annotation.name == "id" and annotation.values and isinstance(annotation.values[0], int):
            return int(annotation.values[0])
    return None


class SymbolTable:
    """Gives ids and aliases: all symbols first (`add`), then their ids and aliases (`freeze`, `id`, `alias`)."""

    def __init__(self) -> None:
        self._ids: dict[tuple[IdKind, str], int | None] = {}
        self._taken: set[int] = set()
        self._suffixes: Counter[str] = Counter()

    def add(
        self, kind: IdKind, name: str, annotations: tuple[ir.Annotation, ...] = (), loc: Location | None = None
    ) -> None:
        """Adds a symbol; one that is there already is left alone."""
        if (kind, name) in self._ids:
            return
        wanted = id_annotation(annotations)
        if wanted is not None:
            if wanted >> 24 not in (0, kind):
                raise _refuse(loc, f"@id({wanted:#x}) of {name}: the upper byte must be {kind:#04x}")
            wanted |= kind << 24
            if wanted in self._taken:
                raise _refuse(loc, f"@id({wanted:#x}) of {name}: it is used for another declaration")
            self._taken.add(wanted)
        known = any(name == other for _, other in self._ids)
        self._ids[kind, name] = wanted
        if not known:
            parts = name.split(".")
            self._suffixes.update(".".join(parts[start:]) for start in range(len(parts)))

    def freeze(self) -> None:
        """Gives an id to every symbol without one."""
        for kind, name in sorted(self._ids, key=lambda key: (key[0], key[1].encode())):
            if self._ids[kind, name] is None:
                self._ids[kind, name] = self._probe(kind, name)

    def _probe(self, kind: IdKind, name: str) -> int:
        hashed = one_at_a_time(name.encode())
        while True:
            candidate = kind << 24 | hashed & _HASH_MASK
            if candidate not in self._taken:
                self._taken.add(candidate)
                return candidate
            hashed += 1

    def id(self, kind: IdKind, name: str) -> int:
        """The id of a symbol."""
        value = self._ids[kind, name]
        assert value is not None, "ids are known after freeze"
        return value

    def alias(self, name: str) -> str:
        """The shortest suffix of dotted parts that no other symbol has."""
        parts = name.split(".")
        suffixes = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
        return next((s for s in suffixes if self._suffixes[s] < 2), name)


def field_ids(annotations: list[tuple[ir.Annotation, ...]], what: str, loc: Location) -> list[int]:
    """Ids of key fields, parameters or metadata: `@id`, or their place, counted up while taken."""
    wanted = [id_annotation(a) for a in annotations]
    given = [w for w in wanted if w is not None]
    if len(set(given)) != len(given) or 0 in given:
        raise _refuse(loc, f"{what}: @id values must be positive and different")
    taken = set(given)
    ids: list[int] = []
    index = 1
    for value in wanted:
        if value is not None:
            ids.append(value)
            index += 1
            continue
        while index in taken:
            index += 1
        ids.append(index)
        taken.add(index)
    return ids


def _refuse(loc: Location | None, message: str) -> CompileError:
    return CompileError([Diagnostic(loc or Location("", 1, 1), message)])
