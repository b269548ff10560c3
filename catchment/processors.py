"""Tells for which processors P4 programs are compiled, and these from the processors of other machines."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Final
from urllib.parse import quote

MARCH: Final = "CATCHMENT_MARCH"
"""The environment's variable that names others than this machine's."""

_LONGEST: Final = 64
"""Characters of a name: a file's has 255 at most."""
_DESCRIPTION: Final = Path("/proc/cpuinfo")
_TELLING: Final = frozenset(
    {"vendor_id", "cpu family", "model", "flags", "CPU implementer", "CPU architecture", "CPU part", "Features"}
)


def march() -> str:
    """Give the compiler's -march: CATCHMENT_MARCH, `native` without it."""
    return os.environ.get(MARCH) or "native"


def processors() -> str:
    """Give a name for those that are compiled for, which fits into a file's name.

    A machine's own are named by what they can: a folder that machines share, or that moved, may have programs of
    others, which end at an instruction that this one lacks.
    """
    if march() != "native":
        name = quote(os.fsencode(march()), safe="")
        return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}-{_digest(name)}"
    try:
        with _DESCRIPTION.open(encoding="utf-8") as lines:
            told = _first(lines)
    except OSError:
        told = platform.machine()
    return f"native-{_digest(told)}"


def _digest(told: str) -> str:
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def _first(lines: Iterable[str]) -> str:
    """What tells about the first processor of a description."""
    fields = (line.partition(":") for line in takewhile(str.strip, lines))
    return "\n".join(f"{key.strip()}:{value.strip()}" for key, _, value in fields if key.strip() in _TELLING)
