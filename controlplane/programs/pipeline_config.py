"""A compiled program as files: what compilers make and switches load."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """A compiled program.

    Attributes:
        p4info: P4Info file, text or (``.bin``) binary.
        device_config: what the target loads: the embedded switch's shared object, BMv2's JSON.
    """

    p4info: Path
    device_config: Path

    def cookie(self) -> int:
        """A number that tells this program from others; the switch keeps it with the program."""
        digest = hashlib.sha256(self.p4info.read_bytes())
        digest.update(self.device_config.read_bytes())
        return int.from_bytes(digest.digest()[:8], "big") | 1
