"""What a NIC writes at a request's completion pointer (docs/reference/registers.md, "Completion record")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catchment.rtl.generated.nic_regs import COMPLETION_RECORD, Status
from catchment.wire.generated.constants import Flag

RECORD = np.dtype(list(COMPLETION_RECORD))


@dataclass(frozen=True, slots=True)
class Completion:
    """A request's end.

    Attributes:
        moved: bytes; less than asked for where a message did not fit its pull.
        flags: of the message's frames, ORed; SAT when somebody's value was cut or not finite.
        saturated: push: how many of its values were cut, NaN and infinities included.
        nonfinite: push: how many were NaN or infinite.
        exponent: the shared E of the message; of a block-scaled pull the largest of its vectors'.
        needed: push: the smallest E that holds all finite values of the message, -128 where all are zero.
        latency: clocks from the request to the record.
    """

    status: Status
    flags: Flag
    tag: int
    moved: int
    saturated: int
    nonfinite: int
    exponent: int
    needed: int
    latency: int

    @staticmethod
    def of(raw: bytes) -> Completion:
        """Parse a record's bytes."""
        row = np.frombuffer(raw, RECORD)[0]
        return Completion(
            Status(int(row["status"])), Flag(int(row["flags"])),
            *(int(row[name]) for name in ("tag", "bytes", "saturated", "nonfinite", "exponent", "needed", "latency")),
        )  # fmt: skip
