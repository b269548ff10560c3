"""Which controller a request is meant for: it names the topology that it is about, and another's refuses it."""

from __future__ import annotations

from typing import Any

from catchment.controlplane.controller.errors import ControllerError

_KEY = "catchment-topology-bin"
_MOST_BYTES = 256

Metadata = tuple[tuple[str, bytes], ...]


def addressed_to(topology: str) -> Metadata:
    """What requests carry that are about a topology; nothing without a name: any controller may answer."""
    return ((_KEY, topology.encode()),) if topology else ()


def require_topology(context: Any, own: str) -> None:
    """Refuse a request that is about another topology than the controller's own.

    Raises:
        ControllerError: names both.
    """
    for key, value in context.invocation_metadata() or ():
        if key == _KEY and value != own.encode():
            asked = value.decode("utf-8", errors="replace") if len(value) <= _MOST_BYTES else "another one"
            raise ControllerError(
                f"topology {asked!r} was asked for, and the controller that answers is of {own}: it has taken the "
                f"address over; end that of {asked!r}, and start it with a --listen of its own"
            )
