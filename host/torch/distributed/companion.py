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
from catchment.host.torch.distributed import kept

_INTERFACE: Final = "GLOO_SOCKET_IFNAME"
_END: Final = 1.0  # s
_MADE: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
"""Every gloo of this process."""


def _keep_for_ever() -> None:
    # A forked child has none of a gloo's threads, and whoever drops one waits for their end.
    atexit.unregister(kept.let_all_go)
    for gloo in tuple(_MADE):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(gloo))
    _MADE.clear()
    kept.forget_threads()


os.register_at_fork(after_in_child=_keep_for_ever)


@final
class Companion:
    """Gloo among the same ranks, made with the group and used when an operation needs it.

    Connections are made when they are first used, so a network that gloo cannot use harms nobody who does not need it.
    The end of a gloo waits for its threads, so that one that was given to torch's C++ side is kept (kept.py) until
    nobody there has it.
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

    def give_away(self, group: Any) -> Any:
        """The gloo group for torch's C++ side, which has it behind `group`, or None."""
        if self._gloo is not None:
            kept.keep(self._gloo)
            kept.over_with(group, self._gloo)
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
