"""The files of a module's netlist, for tests that run over it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from catchment.rtl.mapped import MissingModelError, mapped
from catchment.rtl.synth import Target

VENDORS = os.environ.get("CATCHMENT_CELL_MODELS")
"""The folder with the vendor's models of cells: docs/explanation/rtl-netlists.md."""


def netlist(target: Target) -> tuple[Path, ...]:
    """The files of the target's netlist; the test is skipped where nobody says what its cells do."""
    try:
        return tuple(mapped(target, Path(VENDORS) if VENDORS else None))
    except MissingModelError as error:
        if VENDORS:
            raise
        pytest.skip(f"{error}: CATCHMENT_CELL_MODELS names a folder of the vendor's (docs/explanation/rtl-netlists.md)")
