"""What runs on an end host: the endpoint and what is built on it."""

from __future__ import annotations

from host import build_path as _build_path
from host.all_reducer import AllReducer, Reduction
from host.endpoint import Endpoint, Stall
from host.errors import EndpointError
from host.request import Request
from host.stream import Stream

__path__ = _build_path.extended(__path__)

__all__ = ["AllReducer", "Endpoint", "EndpointError", "Reduction", "Request", "Stall", "Stream"]
