"""A program compiled by the embedded compiler and run in this process."""

from __future__ import annotations

from pathlib import Path

from p4runtime_rows import Names
from scenarios import Build
from switch_rows import rows
from targets import Output

from catchment.sim.golden.switch_tables import Tables
from catchment.softswitch.build import CACHE, build
from catchment.softswitch.inprocess import Switch


class EmbeddedTarget:
    """One in-process switch with a fixed seed."""

    def __init__(self, size: Build, program: Path | None = None, cache: Path = CACHE) -> None:
        built = build(program or size.source, defines={k: str(v) for k, v in size.defines.items()}, cache_dir=cache)
        self.names = Names(built.p4info)
        self.switch = Switch(built)

    def load(self, tables: Tables) -> None:
        for group, ports in tables.groups.items():
            self.switch.multicast(group, ports)
        for row in rows(tables):
            action = self.names.action(row.table, row.action)
            params = {p.name: row.params[p.name] for p in action.params}
            if row.match:
                self.switch.insert(row.table, row.match, action.preamble.name, priority=row.priority, **params)
            else:
                self.switch.set_default(row.table, action.preamble.name, **params)

    def run(self, traffic: list[tuple[int, bytes]], expected: list[Output]) -> list[Output]:
        assert len(traffic) == len(expected)
        return [self.switch.inject(port, frame) for port, frame in traffic]

    def drops(self) -> dict[int, int]:
        counts = {index: self.switch.read_counter("drops", index)[0] for index in range(32)}
        return {index: count for index, count in counts.items() if count}

    def refused(self) -> dict[tuple[int, int], int]:
        counts = {index: self.switch.read_counter("refused", index)[0] for index in range(512 * 32)}
        return {divmod(index, 32): count for index, count in counts.items() if count}

    def job_packets(self) -> dict[tuple[int, int], int]:
        counts = {}
        for entry in self.switch.entries("jobs"):
            gen, port = entry.match["gen"], entry.match["port"]
            assert isinstance(gen, int) and isinstance(port, int) and entry.counter is not None
            if entry.counter[0]:
                counts[(gen, port)] = entry.counter[0]
        return counts

    def close(self) -> None:
        """Nothing to end: the process is ours."""
