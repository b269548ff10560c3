"""What runs on an end host: the endpoint and what is built on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catchment.host import build_path as _build_path
from catchment.host.lazy_exports import lazy_exports as _lazy_exports

if TYPE_CHECKING:
    from catchment.host.errors import EndpointError
    from catchment.host.transport.all_reducer import AllReducer, Reduction
    from catchment.host.transport.endpoint import Endpoint, Stall
    from catchment.host.transport.request import Request
    from catchment.host.transport.stream import Stream

__path__ = _build_path.extended(__path__)

# torch imports this package in every process (host/torch/distributed/registration.py).
__getattr__ = _lazy_exports(
    __name__,
    {
        "AllReducer": "transport.all_reducer",
        "Endpoint": "transport.endpoint",
        "EndpointError": "errors",
        "Reduction": "transport.all_reducer",
        "Request": "transport.request",
        "Stall": "transport.endpoint",
        "Stream": "transport.stream",
    },
)

__all__ = ["AllReducer", "Endpoint", "EndpointError", "Reduction", "Request", "Stall", "Stream"]
