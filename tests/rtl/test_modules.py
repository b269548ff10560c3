"""Every module is part of a top that is synthesized or driven: none is kept for its own tests."""

from __future__ import annotations

from catchment.rtl.sources import closure, modules
from catchment.rtl.synth import TARGETS

# A GLM worker behind its registers, as drivers see it; the worker alone is synthesized.
TOPS = {"glm_core", *(target.top for target in TARGETS)}


def test_every_module_is_part_of_a_top() -> None:
    used = {path.stem for top in TOPS for path in closure(top)}
    assert {path.stem for path in modules()} - used == set()
