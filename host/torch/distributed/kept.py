"""The gloos that torch's C++ side has: kept until nobody else has them, so that the last to let go is Python.

The end of a gloo waits for its threads, which may be waiting for Python's lock. Python drops one without the lock;
torch's C++ side may hold it (DDP's reducer, when a model outlives its group).
"""

from __future__ import annotations

import atexit
import importlib
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_MODULE: Final = "catchment.host._torch_group"
_KEPT: Final[list[Any]] = []
_OVER: Final[list[Any]] = []
"""Those of groups that Python has no more: whoever else has them is in C++."""
_CHANGING: Final = threading.Lock()
_PATIENCE: Final = 1.0  # s, for the C++ side of a group to go after its Python object
_SLICE: Final = 0.01  # s


def keep(gloo: Any) -> None:
    """Keep a gloo that a group is about to be given."""
    with _CHANGING:
        _KEPT.append(gloo)
    let_go()


def over_with(group: Any, gloo: Any) -> None:
    """Let go of a gloo when the Python object of its group, and then all of torch's C++ side, has gone."""
    weakref.finalize(group, _over, gloo).atexit = False


def let_go() -> bool:
    """Drop what nobody else has any more, which waits for what is under way there; True: all groups that are over."""
    owners = _owners()
    if owners is None:
        return True
    while True:
        with _CHANGING:
            alone = next((gloo for gloo in _OVER if owners(gloo) == 1), None)
            if alone is None:
                return not _OVER
            _remove(_OVER, alone)
            _remove(_KEPT, alone)
        del alone


def let_all_go() -> None:
    """Drop all, at the interpreter's end."""
    _OVER.clear()
    _KEPT.clear()


def forget_threads() -> None:
    """Give the lock back in a forked child, which has none of the threads: whoever had it is not there."""
    _CHANGING._at_fork_reinit()  # type: ignore[attr-defined]
    let_all_go()


def _remove(gloos: list[Any], gloo: Any) -> None:
    """Take one out, by its place: `_over` may add others behind it at any time."""
    for place, there in enumerate(gloos):
        if there is gloo:
            del gloos[place]
            return


def _over(gloo: Any) -> None:
    _OVER.append(gloo)  # no lock: this may be called at any time, in a thread that has it
    with suppress(RuntimeError):  # the interpreter ends, and starts no thread any more
        threading.Thread(target=_let_go_soon, name="end of gloo", daemon=True).start()


def _let_go_soon() -> None:
    until = time.monotonic() + _PATIENCE
    while not let_go() and time.monotonic() < until:
        time.sleep(_SLICE)


def _owners() -> Callable[[Any], int] | None:
    """Counts who has a gloo; None where the C++ that can is not built: then none is let go before the end."""
    try:
        found: Callable[[Any], int] | None = getattr(importlib.import_module(_MODULE), "owners", None)
    except ImportError:
        return None
    return found


atexit.register(let_all_go)
