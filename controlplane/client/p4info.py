"""Names of a P4 program (tables, actions, counters, registers) from its P4Info."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from p4.config.v1 import p4info_pb2

from controlplane.client.errors import SwitchError


class P4Info:
    """Look-up by name (any suffix that is unique, as `jobs` for `ingress.jobs`) or by id."""

    def __init__(self, message: Any, source: str = "the switch") -> None:
        self.message = message
        self.source = source
        self._kinds: dict[str, dict[str, Any]] = {
            "table": _by_name(message.tables),
            "action": _by_name(message.actions),
            "counter": _by_name(message.counters),
            "direct counter": _by_name(message.direct_counters),
            "register": _by_name(message.registers),
        }
        self._by_id = {entry.preamble.id: entry for kind in self._kinds.values() for entry in kind.values()}

    @classmethod
    def load(cls, path: Path) -> P4Info:
        """Read a P4Info text file.

        Raises:
            SwitchError: the file is missing or is not P4Info text.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise SwitchError(
                f"cannot read P4Info {path}: {error.strerror}; compile the program first with `catchment p4 compile`"
            ) from None
        message = p4info_pb2.P4Info()
        try:
            text_format.Parse(text, message, allow_unknown_field=True)
        except text_format.ParseError as error:
            raise SwitchError(f"{path}: not P4Info text: {error}") from None
        return cls(message, str(path))

    def names(self, kind: str) -> list[str]:
        """Full names of everything of one kind, sorted."""
        return sorted(self._kinds[kind])

    def find(self, kind: str, name: str) -> Any:
        """The P4Info object of a kind by full name, alias or unique suffix.

        Raises:
            SwitchError: there is none, or several match; names the candidates.
        """
        objects = self._kinds[kind]
        if name in objects:
            return objects[name]
        matches = [full for full in objects if full.endswith(f".{name}")]
        if len(matches) == 1:
            return objects[matches[0]]
        if matches:
            raise SwitchError(f"{kind} {name!r} is ambiguous: {', '.join(sorted(matches))}")
        have = ", ".join(self.names(kind)) or "none"
        raise SwitchError(f"no {kind} {name!r} in {self.source}; it has: {have}")

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
        """The shortest suffix of a name that is still unique among its kind."""
        parts = full.split(".")
        for count in range(1, len(parts)):
            suffix = ".".join(parts[-count:])
            if sum(n == suffix or n.endswith(f".{suffix}") for n in self._kinds[kind]) == 1:
                return suffix
        return full


def _by_name(objects: Iterable[Any]) -> dict[str, Any]:
    return {entry.preamble.name: entry for entry in objects}
