"""P4Info ids by name: the back end takes them as they are and invents none, except for what P4Info hides."""

from __future__ import annotations

from typing import Any

HIDDEN = 0xFE000000


class Ids:
    """Looks names up in a P4Info message."""

    def __init__(self, p4info: Any) -> None:
        self._sections: dict[str, dict[str, Any]] = {}
        for section in (
            "tables",
            "actions",
            "action_profiles",
            "counters",
            "direct_counters",
            "meters",
            "direct_meters",
            "registers",
            "value_sets",
            "controller_packet_metadata",
        ):
            self._sections[section] = {m.preamble.name: m for m in getattr(p4info, section)}
        self._sections["digests"] = {m.preamble.name: m for m in p4info.digests}
        self._hidden = HIDDEN

    def find(self, section: str, name: str) -> Any | None:
        """The P4Info message of an object, or None if P4Info does not have it."""
        return self._sections[section].get(name)

    def id(self, section: str, name: str) -> int:
        """The id of an object; of a hidden one, an id that no controller will use."""
        found = self.find(section, name)
        if found is not None:
            return int(found.preamble.id)
        self._hidden += 1
        return self._hidden

    def parts(self, section: str, name: str, field: str, count: int) -> list[int]:
        """Ids of the match fields or parameters, in order."""
        found = self.find(section, name)
        if found is None:
            return list(range(1, count + 1))
        ids = [int(m.id) for m in getattr(found, field)]
        if len(ids) != count:
            raise AssertionError(f"P4Info has {len(ids)} {field} for {name}, the IR {count}")
        return ids
