"""A scenario's switch built with TAGS, with keys for some streams, as the golden model or as the compiled program."""

from __future__ import annotations

from collections.abc import Mapping

from embedded_target import EmbeddedTarget
from scenarios import Build

from catchment.sim.golden.switch_tables import Tables, TagKey, Worker


def key_all(tables: Tables, key: bytes, gens: set[int], apart: int = 0) -> None:
    """Tags for every port of these streams; workers say an index that is `apart` from their row's."""
    for (gen, port), row in tables.jobs.items():
        if gen in gens:
            tables.tags[gen, port] = TagKey(key, row.wid + apart if isinstance(row, Worker) else 0)


class KeyedSwitch:
    """The model, and the program if `embedded`, which then answers; `keys` by generation, `apart` as for `key_all`."""

    def __init__(
        self, build: Build, tables: Tables, keys: Mapping[int, bytes], *, embedded: bool, apart: int = 0
    ) -> None:
        self.keys = keys
        self.model = build.model()
        self.model.tables = tables
        for gen, key in keys.items():
            key_all(tables, key, {gen}, apart)
        self.target = EmbeddedTarget(build) if embedded else None
        if self.target is not None:
            self.target.load(tables)

    def inject(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        return self.model.inject(port, frame) if self.target is None else self.target.switch.inject(port, frame)

    def drops(self) -> dict[int, int]:
        return dict(self.model.drops) if self.target is None else self.target.drops()

    def refused(self) -> dict[tuple[int, int], int]:
        return dict(self.model.refused) if self.target is None else self.target.refused()
