"""What training on a cluster of thousands would take: docs/explanation/performance.md."""

from __future__ import annotations

from importlib.machinery import PathFinder

from catchment.checkout import NATIVE

_BUILT = str(NATIVE / "sim" / "performance")
if PathFinder.find_spec("_performance", [_BUILT]) is None:
    raise ImportError(
        f"the performance simulator is not built ({_BUILT} has no module _performance): run `make native`"
    )
__path__.append(_BUILT)
