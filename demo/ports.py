"""A host's endpoints, from its description in the plan: joined to the job at the controller, where there is one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from catchment.host import Endpoint, EndpointError, Stream
from catchment.host.membership import Credentials, Endpoints, Membership, MembershipError
from catchment.sim.lab import events
from catchment.sim.lab.errors import LabError

MEMBERS = ("role", "wid", "local", "switch", "gradients", "parameters")
_NEWS_SECONDS = 2.0
_JOIN_SECONDS = 60.0
_RETURN_SECONDS = 120.0
_LOOK_SECONDS = 0.5


class Seat(Protocol):
    """A host's place in the training's job."""

    @property
    def epoch(self) -> int:
        """How often the job has had new generations, from 1: each time that somebody was lost or came back."""

    def endpoints(self) -> AbstractContextManager[dict[str, Endpoint]]:
        """The endpoints of the present epoch: one for each optimizer node's job that the host is in, by its name."""

    def renewed(self) -> bool:
        """A run has failed: whether the job has new generations, or gets them soon; `endpoints` makes the next ones."""

    def explained(self, error: EndpointError) -> Exception:
        """The error with what is known of its cause: an endpoint only knows that nothing moves."""


@contextlib.contextmanager
def open_seat(host: str, described: dict[str, Any], roots: Sequence[str], timeout: float) -> Iterator[Seat]:
    """The place of `host` for the length of a block.

    A description with a `controller` (demo/switch_network.py) says where the job's controller is: the host joins, is
    told its part, beats for as long as the block lasts, and leaves. Any other is the part itself (JobPlan.describe).

    Raises:
        LabError: the description lacks something, or the controller refuses or has counted somebody out; says whom.
    """
    if "controller" not in described:
        yield _PlannedSeat(host, described, roots, timeout)
        return
    with _joined(host, described["controller"]) as member:
        yield _JoinedSeat(member, roots, timeout)


class _PlannedSeat:
    """A place that nobody looks after: what is lost is lost."""

    epoch = 1

    def __init__(self, host: str, described: dict[str, Any], roots: Sequence[str], timeout: float) -> None:
        self._host, self._described, self._roots, self._timeout = host, described, roots, timeout

    @contextlib.contextmanager
    def endpoints(self) -> Iterator[dict[str, Endpoint]]:
        parts = self._described.get("parts") or {"": self._described}
        makers = {label: partial(_open, self._host, part, self._timeout) for label, part in parts.items()}
        with Endpoints(makers) as endpoints:
            yield _in_order(endpoints, self._roots)

    def renewed(self) -> bool:
        return False

    def explained(self, error: EndpointError) -> Exception:
        return error


class _JoinedSeat:
    """A place that a controller keeps. After a loss it is the same one, in the next epoch."""

    def __init__(self, member: Membership, roots: Sequence[str], timeout: float) -> None:
        self._member, self._roots, self._timeout = member, roots, timeout

    @property
    def epoch(self) -> int:
        return self._member.epoch

    @contextlib.contextmanager
    def endpoints(self) -> Iterator[dict[str, Endpoint]]:
        with self._member.endpoints(timeout=self._timeout) as endpoints:
            if self.epoch > 1:
                self._await_all()
            yield _in_order(endpoints, self._roots)

    def renewed(self) -> bool:
        with contextlib.suppress(MembershipError):
            return self._member.superseded(_NEWS_SECONDS)
        return False

    def explained(self, error: EndpointError) -> Exception:
        said = str(self._member.error or "") or self._member.trouble or self._member.cause
        return LabError(f"{error}; the controller says: {said}") if said else error

    def _await_all(self) -> None:
        """Wait until everybody has endpoints of this epoch, or it is over; tell for whom."""
        member, told = self._member, ""
        deadline = time.monotonic() + _RETURN_SECONDS
        while not member.superseded():
            with contextlib.suppress(MembershipError):
                member.wait_complete(_LOOK_SECONDS)
                return
            if member.trouble not in ("", told):
                told = member.trouble
                events.tell(events.WAITING, text=told)
            if time.monotonic() > deadline:
                raise LabError(f"nobody came back in {_RETURN_SECONDS:g} s: {member.trouble}")


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
        "port": described.get("port"),
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
