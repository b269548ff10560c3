"""From a host's description in the plan to its endpoint."""

from __future__ import annotations

from typing import Any

from host import Endpoint, Stream
from sim.demo.errors import DemoError

MEMBERS = ("role", "wid", "local", "switch", "gradients", "parameters")


def open_endpoint(host: str, described: dict[str, Any], timeout: float) -> Endpoint:
    """Open the endpoint of `host` as the job describes it (see controlplane's JobPlan.describe).

    Raises:
        DemoError: the description lacks something. EndpointError: the socket cannot be opened.
    """
    missing = [member for member in MEMBERS if member not in described]
    if missing:
        raise DemoError(f"the plan's description of {host} lacks {', '.join(missing)}")
    common: dict[str, Any] = {
        "gradients": Stream(**described["gradients"]),
        "parameters": Stream(**described["parameters"]),
        "local": tuple(described["local"]),
        "switch": tuple(described["switch"]),
        "timeout": timeout,
    }
    if described["role"] == "root":
        return Endpoint.root(**common)
    return Endpoint.worker(wid=described["wid"], **common)
