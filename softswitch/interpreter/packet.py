"""One packet on its way through the pipeline."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from catchment.softswitch.compiler import ir
from catchment.softswitch.interpreter.state import State
from catchment.softswitch.interpreter.steps import StepBudget
from catchment.softswitch.interpreter.trace import Trace


@dataclass(slots=True)
class Requests:
    """What a block asks of the pipeline; each is carried out after the block that asked."""

    clone: tuple[int, int] | None = None
    """(session, field list)."""
    resubmit: int | None = None
    """A field list; so is `recirculate`."""
    recirculate: int | None = None
    truncate: int | None = None
    """Bytes to keep."""


@dataclass(slots=True)
class Packet:
    """What every block sees of a packet besides its parameters."""

    program: ir.Program
    state: State
    trace: Trace
    dice: random.Random
    length: int
    """Bytes when it came in."""
    steps: StepBudget
    """Shared by all copies and passes of a frame."""
    now_us: int = 0
    payload: bytes = b""
    """What the parser left."""
    checksum_error: bool = False
    requests: Requests = field(default_factory=Requests)
    on_digest: Callable[[str, list[int]], None] | None = None
    on_log: Callable[[str], None] | None = None

    def log(self, text: str) -> None:
        self.trace.line(f"log: {text}")
        if self.on_log is not None:
            self.on_log(text)
