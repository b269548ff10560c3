"""Writes what ranks did as a trace that Perfetto's viewer (ui.perfetto.dev) opens: Chrome's JSON events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from catchment.sim.performance.steps.execute import Span


def write_timeline(path: Path, spans: Iterable[Span]) -> None:
    """A process for each rank, a thread for each of its streams; times in microseconds.

    Raises:
        OSError: it cannot be written.
    """
    events: list[dict[str, object]] = []
    threads: dict[tuple[int, str], int] = {}
    for span in spans:
        stream = span.task.stream or span.task.kind
        if (span.rank, stream) not in threads:
            number = threads[span.rank, stream] = 1 + sum(1 for rank, _ in threads if rank == span.rank)
            events.append({"ph": "M", "name": "process_name", "pid": span.rank, "args": {"name": f"rank {span.rank}"}})
            events.append(
                {"ph": "M", "name": "thread_name", "pid": span.rank, "tid": number, "args": {"name": str(stream)}}
            )
        events.append({
            "ph": "X", "name": span.task.name, "cat": str(span.task.kind), "pid": span.rank,
            "tid": threads[span.rank, stream], "ts": 1e6 * span.began, "dur": 1e6 * (span.ended - span.began),
            "args": {"bytes": span.task.size},
        })  # fmt: skip
    path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}), encoding="utf-8")
