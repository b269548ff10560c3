"""One event kernel, one line, one model of faults: what every simulated or emulated network here runs on."""

from __future__ import annotations

from importlib.machinery import PathFinder

from catchment.checkout import NATIVE
from catchment.sim.world.errors import WorldError

_BUILT = str(NATIVE / "sim" / "world")
if PathFinder.find_spec("_world", [_BUILT]) is None:
    raise ImportError(f"the world is not built ({_BUILT} has no module _world): run `make native`")
__path__.append(_BUILT)

from catchment.sim.world._world import FOREVER, GAP_BYTES, BareLine, Fate, FaultStream, Line, World  # noqa: E402
from catchment.sim.world.faults import Burst, Faults  # noqa: E402

__all__ = ["FOREVER", "GAP_BYTES", "BareLine", "Burst", "Fate", "FaultStream", "Faults", "Line", "World", "WorldError"]
