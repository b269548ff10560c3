"""What the processes of a run tell the orchestrator: one JSON object per line on their standard output."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

from catchment.sim.lab.errors import LabError

READY, GO, PASS, SKIPPED, STALLED = "ready", "go", "pass", "skipped", "stalled"
WAITING, REJOINED = "waiting", "rejoined"
DONE, ERROR = "done", "error"


_writing = threading.Lock()


def tell(event: str, **facts: Any) -> None:
    """Write one event; threads may call it."""
    line = json.dumps({"event": event, **facts}) + "\n"
    with _writing:
        sys.stdout.write(line)
        sys.stdout.flush()


def parse(line: str) -> dict[str, Any]:
    """Read one event back; raises LabError for anything else."""
    try:
        event = json.loads(line)
    except json.JSONDecodeError as error:
        raise LabError(f"not an event: {line[:200]!r}") from error
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise LabError(f"not an event: {line[:200]!r}")
    return event


def await_go() -> None:
    """Say that this process is ready, and wait until all are; from then on, end when the orchestrator is gone."""
    tell(READY, pid=os.getpid())
    if sys.stdin.readline().strip() != GO:
        raise LabError("the orchestrator went away before the run began")
    threading.Thread(target=_end_with_orchestrator, name="watchdog", daemon=True).start()


def _end_with_orchestrator() -> None:
    sys.stdin.read()
    os._exit(3)
