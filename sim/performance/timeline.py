"""Writes what happened when as a trace that Perfetto's viewer (ui.perfetto.dev) opens: Chrome's JSON events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that took a while; bars of one track do not overlap.

    Attributes:
        process: a host or a rank.
        track: of its.
        kind: what the viewer may filter by.
        began, ended: seconds.
        size: bytes that were moved.
    """

    process: str
    track: str
    name: str
    kind: str
    began: float
    ended: float
    size: int = 0


def write_timeline(path: Path, bars: Iterable[Bar]) -> None:
    """A process for each host or rank, in the order in which they come, a thread for each track; microseconds.

    Raises:
        OSError: it cannot be written.
    """
    events: list[dict[str, object]] = []
    processes: dict[str, int] = {}
    threads: dict[tuple[str, str], int] = {}
    for bar in bars:
        if bar.process not in processes:
            number = processes[bar.process] = len(processes)
            events.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": bar.process}})
        pid = processes[bar.process]
        track = (bar.process, bar.track)
        if track not in threads:
            tid = threads[track] = len(threads) + 1
            events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": bar.track}})
        events.append({
            "ph": "X", "name": bar.name, "cat": bar.kind, "pid": pid, "tid": threads[track],
            "ts": 1e6 * bar.began, "dur": 1e6 * (bar.ended - bar.began), "args": {"bytes": bar.size},
        })  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}), encoding="utf-8")
