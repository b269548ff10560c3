"""What a switch cannot do (point-to-point, types and operations beyond sums): gloo does it."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from datetime import timedelta
from typing import Any, Final, final

import torch.distributed as dist
from torch._C._distributed_c10d import Store

from catchment.host.collectives import CollectiveError

_INTERFACE: Final = "GLOO_SOCKET_IFNAME"
_END: Final = 1.0  # s
_KEPT: Final[list[Any]] = []
_MADE: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""Every gloo of this process."""


def _let_go() -> None:
    _KEPT.clear()


def _keep_for_ever() -> None:
    # A forked child has none of a gloo's threads, and whoever drops one waits for their end.
    atexit.unregister(_let_go)
    for gloo in tuple(_MADE):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(gloo))
    _MADE.clear()


atexit.register(_let_go)
os.register_at_fork(after_in_child=_keep_for_ever)


@final
class Companion:
    """Gloo among the same ranks, made with the group and used when an operation needs it.

    Connections are made when they are first used, so a network that gloo cannot use harms nobody who does not need it.
    The end of a gloo waits for its threads, which may be waiting for Python's lock.  Python drops one without the lock.
    torch's C++ side may hold the lock (DDP's reducer, when a model outlives its group), so a gloo that was given to it
    lives until the interpreter exits.
    """

    def __init__(
        self, store: Store, rank: int, size: int, timeout: timedelta, address: str | None, *, wanted: bool
    ) -> None:
        """`address`: own IPv4 address that the others reach; the system's choice unless given."""
        self.timeout = timeout.total_seconds()
        self._gloo: Any = None
        self._process = os.getpid()
        self._why = "it is turned off (CATCHMENT_COMPANION=0)"
        if wanted:
            try:
                self._gloo = _connect(store, rank, size, timeout, address)
            except RuntimeError as error:
                self._why = f"gloo is not available: {error}"

    def for_(self, operation: str) -> Any:
        """The backend that does `operation`.

        Raises:
            CollectiveError: kind ``unsupported``: there is none.
        """
        if self._gloo is None:
            raise CollectiveError(
                f"{operation} does not go through the switch, and there is no companion for it",
                kind="unsupported",
                hint=self._why,
            )
        return self._gloo

    def give_away(self) -> Any:
        """The gloo group for torch's C++ side, or None; it lives until the interpreter exits."""
        if self._gloo is not None:
            _KEPT.append(self._gloo)
        return self._gloo

    def close(self) -> None:
        """End gloo, unless it was given away; what is under way there is waited for in another thread."""
        gloo, self._gloo, self._why = self._gloo, None, "the group is closed"
        if os.getpid() != self._process:  # a forked child has none of the threads, and cannot wait for their end
            return
        graves = [gloo]
        del gloo
        end = threading.Thread(target=graves.clear, name="end of gloo", daemon=True)
        end.start()
        end.join(_END)


def _connect(store: Store, rank: int, size: int, timeout: timedelta, address: str | None) -> Any:
    gloo: Any = dist.ProcessGroupGloo
    options = gloo._Options()
    interface = os.environ.get(_INTERFACE)
    if interface:
        device = gloo.create_device(interface=interface.split(",")[0], lazy_init=True)
    elif address is not None:
        device = gloo.create_device(hostname=address, lazy_init=True)
    else:
        device = gloo.create_default_device(lazy_init=True)
    options._devices = [device]
    options._timeout = timeout
    made = gloo(store, rank, size, options)
    _MADE.add(made)
    return made
