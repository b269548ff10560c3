"""What a switch cannot do (point-to-point, types and operations beyond sums): gloo does it."""

from __future__ import annotations

import atexit
import os
from datetime import timedelta
from typing import Any, Final, final

import torch.distributed as dist
from torch._C._distributed_c10d import Store

from catchment.host.collectives import CollectiveError

_INTERFACE: Final = "GLOO_SOCKET_IFNAME"
_KEPT: Final[list[Any]] = []
atexit.register(_KEPT.clear)


@final
class Companion:
    """Gloo among the same ranks, made with the group and used when an operation needs it.

    Connections are made when they are first used, so a network that gloo cannot use harms nobody who does not need it.
    A gloo lives until the interpreter exits: its end waits for its threads, which may be waiting for Python's lock, and
    whoever drops the last reference (DDP's reducer, when a model outlives its group) may hold that lock.
    """

    def __init__(
        self, store: Store, rank: int, size: int, timeout: timedelta, address: str | None, *, wanted: bool
    ) -> None:
        """`address`: own IPv4 address that the others reach; the system's choice unless given."""
        self._gloo: Any = None
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

    @property
    def backend(self) -> Any:
        """The gloo group, or None."""
        return self._gloo


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
    _KEPT.append(made)
    return made
