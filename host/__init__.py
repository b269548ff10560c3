"""What runs on an end host: the endpoint and what is built on it."""

from __future__ import annotations

from catchment.host import build_path as _build_path
from catchment.host.all_reducer import AllReducer, Reduction
from catchment.host.endpoint import Endpoint, Stall
from catchment.host.errors import EndpointError
from catchment.host.request import Request
from catchment.host.stream import Stream

__path__ = _build_path.extended(__path__)

__all__ = ["AllReducer", "Endpoint", "EndpointError", "Reduction", "Request", "Stall", "Stream"]
