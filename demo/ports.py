"""Makes a host's endpoint from its description in the plan: joined to the job at the controller, where there is one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from catchment.host import Endpoint, EndpointError, Stream
from catchment.host.membership import Credentials, Membership, MembershipError
from catchment.sim.lab.errors import LabError

MEMBERS = ("role", "wid", "local", "switch", "gradients", "parameters")
_NEWS_SECONDS = 2.0
_JOIN_SECONDS = 60.0


@contextlib.contextmanager
def open_endpoint(host: str, described: dict[str, Any], timeout: float) -> Iterator[Endpoint]:
    """The endpoint of `host` for the length of a block.

    A description with a `controller` (demo/switch_network.py) says where the job's controller is: the host joins, is
    told its part, beats for as long as the block lasts, and leaves. Any other is the part itself (JobPlan.describe).

    Raises:
        LabError: the description lacks something, or the controller refuses or has counted somebody out; says whom.
        EndpointError: the socket cannot be opened, or the run failed.
    """
    if "controller" in described:
        with _joined(host, described["controller"]) as member, member.endpoint(timeout=timeout) as endpoint:
            try:
                yield endpoint
            except EndpointError as error:
                raise _explained(member, error) from error
        return
    missing = [member for member in MEMBERS if member not in described]
    if missing:
        raise LabError(f"the plan's description of {host} lacks {', '.join(missing)}")
    common: dict[str, Any] = {
        "gradients": Stream(**described["gradients"]),
        "parameters": Stream(**described["parameters"]),
        "local": tuple(described["local"]),
        "switch": tuple(described["switch"]),
        "timeout": timeout,
    }
    if described["role"] == "root":
        endpoint = Endpoint.root(**common)
    else:
        endpoint = Endpoint.worker(wid=described["wid"], **common)
    with endpoint:
        yield endpoint


@contextlib.contextmanager
def _joined(host: str, place: dict[str, Any]) -> Iterator[Membership]:
    try:
        with Membership.join(
            controller=place["address"],
            job=place["job"],
            host=host,
            token=Path(place["token"]).read_text("ascii"),
            credentials=Credentials.of(Path(place["certificates"]), host),
            timeout=_JOIN_SECONDS,
        ) as member:
            yield member
    except MembershipError as error:
        raise LabError(str(error)) from error


def _explained(member: Membership, error: EndpointError) -> Exception:
    """The error with what the controller says: this host only knows that nothing moves."""
    with contextlib.suppress(MembershipError):
        member.superseded(_NEWS_SECONDS)
    said = str(member.error or "") or member.trouble or member.cause
    return LabError(f"{error}; the controller says: {said}") if said else error
