"""A host's endpoints, from its description in the plan: joined to the job at the controller, where there is one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from catchment.host import Endpoint, EndpointError, Stream
from catchment.host.membership import Credentials, Endpoints, Membership, MembershipError
from catchment.sim.lab.errors import LabError

MEMBERS = ("role", "wid", "local", "switch", "gradients", "parameters")
_NEWS_SECONDS = 2.0
_JOIN_SECONDS = 60.0


@contextlib.contextmanager
def open_endpoints(
    host: str, described: dict[str, Any], roots: Sequence[str], timeout: float
) -> Iterator[dict[str, Endpoint]]:
    """The endpoints of `host` for the length of a block: one for each optimizer node's job that it is in, by its name.

    A description with a `controller` (demo/switch_network.py) says where the job's controller is: the host joins, is
    told its part, beats for as long as the block lasts, and leaves. Any other is the part itself (JobPlan.describe).

    Raises:
        LabError: the description lacks something, or the controller refuses or has counted somebody out; says whom.
        EndpointError: the socket cannot be opened, or the run failed.
    """
    if "controller" in described:
        with _joined(host, described["controller"]) as member, member.endpoints(timeout=timeout) as endpoints:
            try:
                yield _in_order(endpoints, roots)
            except EndpointError as error:
                raise _explained(member, error) from error
        return
    parts = described.get("parts") or {"": described}
    makers = {label: partial(_open, host, part, timeout) for label, part in parts.items()}
    with Endpoints(makers) as endpoints:
        yield _in_order(endpoints, roots)


def _in_order(endpoints: Endpoints, roots: Sequence[str]) -> dict[str, Endpoint]:
    """Endpoints by the name of the optimizer node; the label of a job by itself is empty."""
    if set(endpoints) == {""}:
        return {roots[0]: endpoints[""]}
    return {name: endpoints[name] for name in roots if name in endpoints}


def _open(host: str, described: dict[str, Any], timeout: float) -> Endpoint:
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
        return Endpoint.root(**common)
    return Endpoint.worker(wid=described["wid"], **common)


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
